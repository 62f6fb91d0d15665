"""From one Service, its pods and its EndpointSlices to its facts, if it leads to an inference workload."""

from __future__ import annotations

from sevenhop.core.facts import service as facts
from sevenhop.core.facts.labels import labels, of_workload
from sevenhop.core.facts.schema import Facts, Unknown
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.ownership import Owners
from sevenhop.core.inventory.read_component import wants_to_run
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import State, component_subject
from sevenhop.core.inventory.workloads import Workload
from sevenhop.core.objects.cluster import Controller, Service

SLICES = "EndpointSlice.discovery.k8s.io"


def read_service(state: State, key: Key) -> Facts | None:
    """Labels and facts; None for a Service that is gone, or leads to no inference workload."""
    service = state.services.services.get(key)
    if service is None:
        return None
    rows = [row for pod in state.services.selects(key) if (row := state.rows.get(pod)) is not None]
    workload = workload_of(state, service, rows)
    if workload is None:
        return None
    pods = [
        pod
        for name in sorted(state.services.selects(key))
        if (pod := state.objects.pods().get(name)) is not None and not pod.is_finished
    ]
    reached = {row.component for row in rows} or {part.name for part in workload.components}
    parts = [part for part in workload.components if part.name in reached]
    slots = [(workload.key, part.name) for part in parts]
    meant_to_run = any(wants_to_run(part) for part in parts)
    ready = state.gate(SLICES) or state.services.ready_endpoints(key)
    own = facts.derive(
        service,
        pods,
        meant_to_run=meant_to_run,
        ready_endpoints=ready,
        starting=_is_starting(state, key, rows, ready, meant_to_run=meant_to_run),
        versions=len({row.version for row in rows if row.ready}),
        rolling=any(_is_true(state, slot, "rolling") or _is_true(state, slot, "canary") for slot in slots),
        pods_unknown=state.gate("Service", "Pod"),
        root_unknown=next((u for kind, _ in workload.roots if (u := state.gate(kind)) is not None), None),
    )
    of_its_workload = of_workload(state.cluster, workload, tier=state.tier(workload).value, owner=state.owner(workload))
    component = parts[0].name if len(parts) == 1 else ""
    return {**labels(state.cluster), **of_its_workload, "service": key[1], "component": component, **own}


def _is_starting(
    state: State, key: Key, rows: list[PodRow], ready: int | Unknown, *, meant_to_run: bool
) -> bool | Unknown:
    """
    Whether it is on the way to its first ready endpoint since it was last meant to run.

    What was there and is gone is an outage, however fast its pods come back.
    """
    if isinstance(ready, Unknown):
        return ready
    has_served = meant_to_run and (ready > 0 or key in state.served)
    if has_served != (key in state.served):
        if has_served:
            state.served[key] = True
        else:
            del state.served[key]
        state.changed_histories.add(("served", "/".join(key)))
    return meant_to_run and not has_served and any(comes_up(row) for row in rows)


def comes_up(row: PodRow) -> bool:
    """Whether nothing keeps a pod from becoming ready: it has a node, or nobody said that none takes it."""
    return row.live and row.failure is None and not row.load_overdue and not row.waiting


def _is_true(state: State, slot: tuple[Key, str], fact: str) -> bool:
    return state.facts.get(component_subject(slot), {}).get(f"component.{fact}") is True


def workload_of(state: State, service: Service, rows: list[PodRow]) -> Workload | None:
    """
    The workload that a Service leads to.

    The pods that it selects tell; else who owns it; else a root whose template it would select; else its name.  The
    last three keep a Service in sight that selects nothing, which is when it matters.
    """
    if rows:
        return state.workloads.get(min(row.workload for row in rows))
    meta = service.metadata
    for link in Owners(state.objects).above(meta):
        owner = state.workload_of_root.get((link.kind, (link.namespace, link.name)))
        if owner is not None:
            return state.workloads.get(owner)
    if not service.spec.selector:
        return None
    here = list(state.workloads_in.get(meta.namespace, {}).values())
    return next((w for w in here if _would_select(state, service, w)), None) or _by_name(meta.name, here)


def _would_select(state: State, service: Service, workload: Workload) -> bool:
    for kind, key in workload.roots:
        root = state.objects.get(kind, *key)
        if isinstance(root, Controller):
            labels_of_pods = root.spec.template.metadata.labels
            if all(labels_of_pods.get(label) == value for label, value in service.spec.selector.items()):
                return True
    return False


def _by_name(name: str, workloads: list[Workload]) -> Workload | None:
    """The longest name that the Service's begins with: frameworks call a Service by workload and component."""
    names = [(n, w) for w in workloads for n in {w.name, *(key[1] for _, key in w.roots)}]
    fitting = [(n, w) for n, w in names if name == n or name.startswith(f"{n}-")]
    return max(fitting, key=lambda found: (len(found[0]), found[0]), default=("", None))[1]
