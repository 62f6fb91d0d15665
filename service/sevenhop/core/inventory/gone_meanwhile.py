"""What the store remembers, and went away while nobody looked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from sevenhop.core.events import SyncState
from sevenhop.core.inventory.state import Dirty, State
from sevenhop.core.objects.kinds import KINDS


def everything_listed(state: State) -> bool:
    """Whether each kind is listed, or known not to be there, or not to be seen by us."""
    states = state.objects.states
    blind = (SyncState.NOT_SYNCED, SyncState.STALE)
    return all(
        states[name] is SyncState.SYNCED if kind.essential else states[name] not in blind
        for name, kind in KINDS.items()
    )


def forget_gone(state: State, dirty: Dirty) -> None:
    """Let go of histories of what is not there; only once `everything_listed`."""
    pods, nodes = state.objects.pods(), state.objects.nodes()
    namespaces = tuple(f"{namespace}/" for namespace in state.workloads_in)
    for table, kept, is_known in (
        ("restarts", state.restarts, lambda key: key in pods),
        ("seen_gpus", state.seen_gpus, lambda name: ("", name) in nodes),
        ("spells", state.spells, lambda slot: slot[1] in state.slots_of.get(slot[0], ())),
        ("served", state.served, lambda key: key in state.services.services),
        ("loads", state.loads, lambda release: release.startswith(namespaces)),
    ):
        _forget(state, table, cast("dict[Any, object]", kept), is_known)
    dirty.agents |= {name for name in state.gpus.agents if ("", name) not in nodes}


def _forget(state: State, table: str, kept: dict[Any, object], is_known: Callable[[Any], bool]) -> None:
    for key in [key for key in kept if not is_known(key)]:
        del kept[key]
        flat = key if isinstance(key, str) else "/".join(_flat(key))
        state.changed_histories.add((table, flat))


def _flat(key: object) -> Iterable[str]:
    if isinstance(key, tuple):
        for part in key:
            yield from _flat(part)
    else:
        yield str(key)
