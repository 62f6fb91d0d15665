"""
A cluster out of manifests, with the table of scaling set on it: what a test says of it, and what the table answers.

Scenes come from `tests.unit.frameworks.running`; here they get the statuses of controllers that are done.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sevenhop.actions.pointers import operations, steps
from sevenhop.core.facts.schema import Unknown
from sevenhop.core.inventory.discovery import Discovery
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.workloads import Component, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Action, Edit, ObjectRef, Scale, Test
from sevenhop.core.remediation.reduction import Conflict, Ruler
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from tests.unit.frameworks.running import NAMESPACE, Manifest, objects_of


class World:
    """
    Attributes:
        blind: Kind to why it cannot be seen.
    """

    def __init__(
        self, manifests: Iterable[Manifest], *, blind: Mapping[str, Unknown] | None = None, live: bool = False
    ) -> None:
        """`live`: As read from an API server; otherwise controllers are taken to be done."""
        found = list(manifests) if live else settled(manifests)
        self.manifests = {_address(manifest): manifest for manifest in found}
        self.blind = dict(blind or {})
        self.read()

    def read(self) -> None:
        """Look at the manifests anew."""
        self.objects = objects_of(self.manifests.values())
        self.discovery = Discovery(self.objects, FRAMEWORKS)
        self.discovery.settle()

    # View

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self.objects.get(kind, namespace, name)

    def of(self, kind: str) -> Mapping[Key, Object]:
        return self.objects.of(kind)

    def gate(self, *kinds: str) -> Unknown | None:
        return next((self.blind[kind] for kind in kinds if kind in self.blind), None)

    # What tests ask

    def find(self, component: str, workload: str = "") -> tuple[Workload, Component]:
        for key, found in sorted(self.discovery.workloads.items()):
            part = found.component(component)
            if part is not None and workload in ("", key[1]):
                return found, part
        raise LookupError(f"no {workload}/{component} in {sorted(self.discovery.workloads)}")

    def pods(self, component: str, workload: str = "") -> list[Pod]:
        found, part = self.find(component, workload)
        pods = self.objects.pods()
        place = ((key, self.discovery.membership(key)) for key in sorted(pods))
        return [pods[key] for key, m in place if m and (m.workload, m.component) == (found.key, part.name)]

    def rule(self, component: str, workload: str = "") -> Ruler | Conflict:
        found, part = self.find(component, workload)
        return SCALING[found.framework].rule(self, found, part, self.pods(component, workload))

    def act(
        self, component: str, after: int, victims: Sequence[Pod] | None = None, workload: str = ""
    ) -> tuple[Action, ...] | Conflict:
        """The victims are the last pods, unless others are given."""
        ruler = self.rule(component, workload)
        assert isinstance(ruler, Ruler), ruler
        found, part = self.find(component, workload)
        if victims is None:
            count = max(0, ruler.replicas - after) * ruler.unit_pods
            victims = self.pods(component, workload)[-count:] if count else []
        return SCALING[found.framework].actions(self, found, part, ruler, after, victims)

    def scale(self, component: str, after: int, workload: str = "") -> Scale:
        actions = self.act(component, after, workload=workload)
        assert not isinstance(actions, Conflict), actions
        (scale,) = (action for action in actions if isinstance(action, Scale))
        return scale

    def manifest(self, kind: str, name: str) -> Manifest:
        return next(m for (k, _, n), m in self.manifests.items() if (k, n) == (kind, name))

    def carry_out(self, scale: Scale) -> None:
        """What the API server would make of it; what controllers would do comes on top."""
        for ref, edits, tests in ((scale.target, scale.edits, scale.tests), *scale.also):
            live = self.manifests[(ref.kind.partition(".")[0], ref.namespace, ref.name)]
            apply(live, operations(live, edits, tests))
        self.read()


def settled(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Copies, in which every controller has seen and done what it is asked for."""
    done = []
    for manifest in copy.deepcopy(list(manifests)):
        replicas = manifest.get("spec", {}).get("replicas", 1)
        manifest["metadata"].setdefault("generation", 1)
        counts = {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas}
        if manifest["kind"] in ("Deployment", "StatefulSet", "LeaderWorkerSet"):
            manifest.setdefault("status", {**counts, "observedGeneration": manifest["metadata"]["generation"]})
        done.append(manifest)
    return done


def apply(data: Manifest, patch: Sequence[Mapping[str, Any]]) -> None:
    """
    A JSON patch, in place.

    Raises:
        AssertionError: A test in it fails.
    """
    for operation in patch:
        *way, last = steps(operation["path"])
        parent: Any = data
        for step in way:
            parent = parent[int(step)] if isinstance(parent, list) else parent.setdefault(step, {})
        index: Any = int(last) if isinstance(parent, list) else last
        if operation["op"] == "test":
            now = (parent[index] if index < len(parent) else None) if isinstance(parent, list) else parent.get(index)
            assert now == operation["value"], operation
        elif operation["op"] == "remove":
            del parent[index]
        elif operation["op"] == "add" and isinstance(parent, list):
            parent.insert(index, operation["value"])
        else:
            parent[index] = operation["value"]


def reversed_scale(scale: Scale) -> Scale:
    """The way back, field by field."""

    def back(edits: Sequence[Edit]) -> tuple[Edit, ...]:
        return tuple(Edit(edit.pointer, edit.after, edit.before) for edit in edits)

    also: tuple[tuple[ObjectRef, tuple[Edit, ...], tuple[Test, ...]], ...] = tuple(
        (ref, back(edits), tests) for ref, edits, tests in scale.also
    )
    return Scale(
        target=scale.target,
        subresource=scale.subresource,
        edits=back(scale.edits),
        tests=scale.tests,
        also=also,
        marked=scale.marked,
        workload=scale.workload,
        component=scale.component,
        before=scale.after,
        after=scale.before,
    )


def other(api_version: str, kind: str, name: str, *, owner: Manifest | None = None, **body: Any) -> Manifest:
    """An object beside the workload, such as an autoscaler; `labels` and `annotations` go into its metadata."""
    meta: Manifest = {"name": name, "namespace": NAMESPACE, "uid": f"{kind}:{name}"}
    for key in ("labels", "annotations"):
        if key in body:
            meta[key] = body.pop(key)
    if owner is not None:
        of = owner["metadata"]
        meta["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": of["name"],
                "uid": of["uid"],
                "controller": True,
            }
        ]
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}


def _address(manifest: Manifest) -> tuple[str, str, str]:
    row = kind_of(manifest["apiVersion"], manifest["kind"])
    assert row is not None, manifest["kind"]
    meta = manifest["metadata"]
    return (row.kind, meta.get("namespace", ""), meta["name"])
