"""Grove without Dynamo: PodCliqueSet, whose scaling groups are multi-node replicas."""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.templates import as_pod_spec, pod_component, repeated, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.reading import number, replicas, rows, spec_of, table, text, words
from sevenhop.frameworks.roles import role_in

ROOT = "PodCliqueSet.grove.io"
CLIQUE, GROUP = "PodClique.grove.io", "PodCliqueScalingGroup.grove.io"
_PART_OF, _MANAGED = "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by"
_CLIQUE_LABEL = "grove.io/podclique"
_GROUP_LABEL, _GROUP_INDEX = "grove.io/podcliquescalinggroup", "grove.io/podcliquescalinggroup-replica-index"
_SET_INDEX = "grove.io/podcliqueset-replica-index"


def read(found: Found) -> Reading:
    spec = spec_of(found.obj)
    sets = replicas(spec, "replicas", default=0)
    cliques = {text(row, "name"): row for row in rows(spec, "template", "cliques")}
    groups = rows(spec, "template", "podCliqueScalingGroups") or rows(spec, "template", "podCliqueScalingGroupConfigs")
    grouped = {name for group in groups for name in words(group, "cliqueNames")}
    components = [
        _component(
            found, text(group, "name"), [cliques[n] for n in words(group, "cliqueNames") if n in cliques], group, sets
        )
        for group in groups
    ]
    components += [_component(found, name, [row], None, sets) for name, row in cliques.items() if name not in grouped]
    models = [part.model for part in components if part.model.name]
    return Reading(components=tuple(components), model=models[0] if models else Model())


def _component(
    found: Found, name: str, cliques: list[dict[str, Any]], group: dict[str, Any] | None, sets: int
) -> Component:
    """A scaling group is one replica with all pods of its cliques; a clique alone scales pod by pod."""
    pods: list[PodSpec] = []
    for clique in cliques:
        pod = as_pod_spec(table(clique, "spec", "podSpec"))
        pods += repeated(pod, replicas(clique, "spec", "replicas") if group is not None else 1)
    engines = [engine for pod in pods if isinstance(engine := engine_of(pod), Engine)]
    said = [role_in(text(clique, "spec", "roleName")) for clique in cliques]
    role = role_in(name) or next((e.role for e in engines if e.role), "") or next(filter(None, said), "worker")
    model = engines[0].model if engines else Model()
    size = max(1, len(pods))
    where = found.ref.namespace
    part = pod_component(name, role, pods, model, size, namespace=where, get=found.get)
    stated = group if group is not None else table(cliques[0], "spec") if cliques else {}
    kind = GROUP if group is not None else CLIQUE
    # Grove names them <set>-<replica of the set>-<name>.
    scale = ScaleTarget(kind, where, f"{found.ref.name}-0-{name}", "spec.replicas", size, "through /scale")
    part = msgspec.structs.replace(
        part, desired=sets * replicas(stated, "replicas"), minimum=number(stated, "minAvailable"), scale=scale
    )
    return with_intended_zero(part)


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:
    labels = meta.labels
    group = labels.get(_GROUP_LABEL, "")
    index = labels.get(_SET_INDEX, "0")
    prefix = f"{found.ref.name}-{index}-"
    if group:
        name = group.removeprefix(prefix)
        return Place(name, role_in(name) or _engine_role(spec), f"{group}-{labels.get(_GROUP_INDEX, '0')}")
    name = labels.get(_CLIQUE_LABEL, found.ref.name).removeprefix(prefix)
    return Place(name, role_in(name) or _engine_role(spec))


def _engine_role(spec: PodSpec) -> str:
    engine = engine_of(spec)
    return (engine.role if isinstance(engine, Engine) else "") or "worker"


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    if meta.labels.get(_MANAGED) == "grove-operator" and meta.labels.get(_PART_OF):
        return RootRef(ROOT, meta.namespace, meta.labels[_PART_OF])
    return None


SPEC = FrameworkSpec(
    framework=Framework.GROVE,
    docs="Grove: a PodCliqueSet of cliques; a scaling group of cliques is one replica.  Below Dynamo it is Dynamo's.",
    roots=(ROOT,),
    below=(GROUP, CLIQUE),
    labels=(_PART_OF, _CLIQUE_LABEL, _GROUP_LABEL, _GROUP_INDEX),
    scale="`/scale` of the PodCliqueScalingGroup, or of a PodClique outside of any.",
    read=read,
    place=place,
    model=model_of_pod,
    join=join,
)
