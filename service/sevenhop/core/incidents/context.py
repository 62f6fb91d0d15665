"""What an incident's message needs to know of its subjects; the inventory answers, the incidents ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

import msgspec

from sevenhop.core.facts.schema import Facts
from sevenhop.core.hops.diagnosis import Diagnosis
from sevenhop.core.hops.report import HopReport
from sevenhop.core.inventory.capacity import Change, PoolCapacity
from sevenhop.core.subject import Subject


class SubjectContext(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One subject as it is now.

    Attributes:
        desired, ready, minimum: Of a component, in its unit; None where unknown or not applicable.
        diagnosis: Of its worst pod; None if nothing is wrong or nothing is known.
        pods: (pod name, node or "") of the pods that are not well; `pod_keys` are their (namespace, name).
        pool: The pool that it waits in or consists of.
        watching_since: When the first event came; None where that is not known.
        maintenance: Nodes under maintenance among itself and those that its pods are on.
        devices: Bad GPUs that account for what is wrong with a GPU, node or pool, by UUID; ``?`` for what they do not.
        hits: Of a GPU, or a node with bad ones: the components that it concerns, with their pods.
    """

    labels: dict[str, str]
    report: HopReport | None = None
    diagnosis: Diagnosis | None = None
    desired: int | None = None
    ready: int | None = None
    minimum: int | None = None
    pods: tuple[tuple[str, str], ...] = ()
    pod_keys: tuple[tuple[str, str], ...] = ()
    pool: PoolCapacity | None = None
    changes: tuple[Change, ...] = ()
    parents: tuple[Subject, ...] = ()
    watching_since: datetime | None = None
    maintenance: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    hits: tuple[str, ...] = ()


class Contexts(Protocol):
    """
    Answers from the inventory's current state; a subject that is gone has no context.

    A `brief` one is without pool and changes: they cost the most, and only messages show them.
    """

    def context(self, subject: Subject, now: datetime, *, brief: bool = False) -> SubjectContext | None: ...

    @property
    def facts(self) -> Mapping[Subject, Facts]:
        """Of every subject that is there."""
        ...

    def is_hidden(self, subject: Subject) -> bool:
        """Whether it cannot be known now how a subject is, or that it is gone: what it is made of is not listed."""
        ...
