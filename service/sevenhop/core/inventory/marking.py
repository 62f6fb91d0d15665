"""What has to be looked at again because something happened?"""

from __future__ import annotations

from sevenhop.core.inventory.blocked import TOLD_BY_NAME
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_service import SLICES
from sevenhop.core.inventory.state import Dirty, State
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement.devices import SLICES as DEVICE_SLICES


def sight_changed(state: State, dirty: Dirty, kind: str) -> None:
    """A kind can be seen now, or no longer: what is derived from it becomes known, or unknown."""
    if kind == "Event":
        dirty.pools |= all_pools(state)
        return
    reread_everything(state, dirty)
    state.placement.epoch += 1  # why pods wait names the state of what cannot be seen
    if kind in ("Pod", "Node", DEVICE_SLICES):
        dirty.nodes.update(name for _, name in state.objects.nodes())
    if kind in ("Pod", SLICES):
        dirty.pod_facts.update(state.rows)


def reread_everything(state: State, dirty: Dirty) -> None:
    """Every component and what depends on it; pods and nodes only as far as their own facts then change."""
    # In one go: of an edge that fell silent seventy kinds are told at once.
    dirty.workloads.update(state.workloads)
    dirty.slots.update((key, name) for key, names in state.slots_of.items() for name in names)
    dirty.services.update(state.services.services)
    dirty.pools |= all_pools(state)
    rules_on_pods_changed(state, dirty, "")


def reread_workload(state: State, dirty: Dirty, key: Key) -> None:
    dirty.workloads.add(key)
    dirty.slots.update((key, name) for name in state.slots_of.get(key, ()))


def reread_namespace(state: State, dirty: Dirty, namespace: str) -> None:
    for key in state.workloads_in.get(namespace, ()):
        reread_workload(state, dirty, key)


def controller_moved(state: State, dirty: Dirty, kind: str, key: Key) -> None:
    """A controller's spec or status changed: a rollout may have begun or ended, pods may have been refused."""
    dirty.controllers.add((kind, key))
    dirty.slots |= state.families.get((key[0], f"{kind}/{key[1]}"), set())


def rules_on_pods_changed(state: State, dirty: Dirty, namespace: str) -> None:
    """What may forbid a pod of this namespace changed; of every namespace, if it is empty."""
    spaces = [namespace] if namespace else list(state.lacking)
    for space in spaces:
        dirty.controllers |= state.lacking.get(space, set())


def pod_came_or_went(state: State, dirty: Dirty, pod: Pod) -> None:
    """A controller that lacked pods may lack one less now, or one more."""
    owner = pod.metadata.controller()
    if owner is None:
        return
    # Events about the owner count for as long as no pod came after them.
    is_told_of = owner.kind in TOLD_BY_NAME and state.evidence.has((owner.kind, pod.metadata.namespace, owner.name))
    found = state.objects.by_uid(owner.uid) if state.lacking or is_told_of else None
    if found is not None:
        where = (found[0], found[1].metadata.key)
        if is_told_of or where in state.lacking.get(pod.metadata.namespace, ()):
            dirty.controllers.add(where)


def all_pools(state: State) -> set[str]:
    return {*state.ledger.pools(), *state.waiting_in}
