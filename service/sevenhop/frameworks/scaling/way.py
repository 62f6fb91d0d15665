"""
What a framework's module finds out about one component: the object that rules it, and how a change is written.

What all frameworks share (autoscalers, queues, rollouts, owners' words, …) is looked for afterwards, in `conflicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.workloads import Component, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit, ObjectRef, Test
from sevenhop.core.remediation.reduction import Conflict, Ruler, View

_MOST_OWNERS = 8
"""Above a pod; the longest chain that is known, Knative below KServe, has six."""

Also = tuple[ObjectRef, tuple[Edit, ...], tuple[Test, ...]]


class Change(NamedTuple):
    """What is written to get to a number of replicas."""

    edits: tuple[Edit, ...]
    tests: tuple[Test, ...] = ()
    also: tuple[Also, ...] = ()


class Way(NamedTuple):
    """
    Attributes:
        marked: The object that carries `sevenhop.dev/borrowed`: the one that its owner edits, or one below it where
            its controller hands annotations down to the pods.
        change: From (replicas after, victims in order) to what is written; both directions.
        obeys: Autoscalers that one of these objects makes read their limits from it, so they are no conflict.
        stated: Where it is said what rules the replicas, beside the target: looked at for rollouts, opt-outs and the
            like.
    """

    ruler: Ruler
    marked: ObjectRef
    change: Callable[[int, Sequence[Pod]], Change | Conflict]
    subresource: str = ""
    version: str = ""
    obeys: tuple[ObjectRef, ...] = ()
    stated: tuple[ObjectRef, ...] = ()


Find = Callable[[View, Workload, Component, Sequence[Pod]], Way | Conflict]
"""Must not need the pods to say what is written: they are there to say who chooses the victims."""


class Line(NamedTuple):
    """
    The objects between pods and their topmost owner.

    Attributes:
        objects: (kind, key) to the object, the pods not among them.
        strangers: Owners of a kind that we do not know, as ``Kind name``.
    """

    objects: dict[tuple[str, Key], Object]
    strangers: tuple[str, ...]


def line_of(view: View, below: Sequence[Object]) -> Line:
    """Every owner above these objects, as far as it can be seen."""
    objects: dict[tuple[str, Key], Object] = {}
    strangers: dict[str, None] = {}
    for start in below:
        at: Object = start
        for _ in range(_MOST_OWNERS):
            owner = at.metadata.controller()
            if owner is None:
                break
            row = kind_of(owner.api_version, owner.kind)
            if row is None:
                strangers[f"{owner.kind} {owner.name}"] = None
                break
            key = (at.metadata.namespace if row.namespaced else "", owner.name)
            if (row.name, key) in objects:
                break
            found = view.get(row.name, *key)
            if found is None or (owner.uid and found.metadata.uid and found.metadata.uid != owner.uid):
                break
            if not isinstance(found, Pod):  # a leader between two StatefulSets of a LeaderWorkerSet
                objects[row.name, key] = found
            at = found
    return Line(objects, tuple(strangers))


def in_namespace(view: View, kind: str, namespace: str) -> list[tuple[str, Object]]:
    """(name, object) of a kind, in order."""
    # Of thousands a few are here: sorting comes after picking.
    found = [(key[1], obj) for key, obj in view.of(kind).items() if key[0] == namespace]
    return sorted(found, key=lambda each: each[0])


def ref_of(kind: str, obj: Object) -> ObjectRef:
    meta = obj.metadata
    return ObjectRef(kind, meta.namespace, meta.name, meta.uid)


def pointer(*steps: str | int) -> str:
    """
    RFC 6901, with the two characters escaped that mean something.

    >>> pointer("metadata", "annotations", "autoscaling.knative.dev/min-scale")
    '/metadata/annotations/autoscaling.knative.dev~1min-scale'
    """
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def called(ref: ObjectRef) -> str:
    """
    As people read it within its namespace.

    >>> called(ObjectRef("Deployment.apps", "prod", "web"))
    'Deployment web'
    """
    return f"{ref.kind.partition('.')[0]} {ref.name}"


class Range(NamedTuple):
    """
    Least and most replicas, as an autoscaler's owner states them.

    Attributes:
        least, most: What stands in the fields; None where they are absent.
        default_least: What the absent field means.
        is_open: Whether an absent most means no limit; else it means the least.
    """

    least: int | None
    most: int | None
    default_least: int = 1
    is_open: bool = False

    @property
    def bottom(self) -> int:
        return self.default_least if self.least is None else self.least

    @property
    def top(self) -> int | None:
        """None without a limit."""
        if self.most is None:
            return None if self.is_open else self.bottom
        return max(self.most, self.bottom)

    def is_left(self, replicas: int) -> bool:
        """Whether so many are not within it: then its autoscaler is still at work."""
        return replicas < self.bottom or (self.top is not None and replicas > self.top)

    def __str__(self) -> str:
        return f"{self.bottom}–{'' if self.top is None else self.top}"

    def floor(self, replicas: int, lowest: int) -> int:
        """
        Below which the owner's own words would have to be taken back.

        A least that is smaller than what runs is the floor that the owner gave.  Where it equals what runs, it only
        says how many are meant to run, and the floor is the lowest that the framework can do.

        >>> Range(2, 8).floor(5, lowest=1), Range(4, 4).floor(4, lowest=1)
        (2, 1)
        """
        return self.bottom if lowest < self.bottom < replicas else lowest

    def edits(self, after: int, at_least: str, at_most: str) -> tuple[Edit, ...]:
        """
        Cap it at `after`: an autoscaler would go back up to `most`, and never goes below `least`.

        Giving back undoes these very edits, so nothing is raised here.
        """
        edits = []
        if self.bottom > after:
            edits.append(Edit(at_least, self.least, after))
        if self.most is not None and self.most > after:
            edits.append(Edit(at_most, self.most, after))
        return tuple(edits)
