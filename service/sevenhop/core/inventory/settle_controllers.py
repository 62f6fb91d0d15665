"""Controllers, operators and queues in one pass of the inventory: which pods they cannot make, and why."""

from __future__ import annotations

from sevenhop.core.inventory.blocked import TOLD_KINDS, lacks, read_refused, read_said
from sevenhop.core.inventory.marking import reread_workload
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import Dirty, State


def read_controllers(state: State, dirty: Dirty) -> None:
    """What dirty controllers may not create, and what operators and queues say."""
    todo, dirty.controllers = dirty.controllers, set()
    for kind, key in sorted(todo):
        if kind in TOLD_KINDS:
            _read_said(state, dirty, kind, key)
        else:
            _read_refused(state, dirty, kind, key)


def _read_refused(state: State, dirty: Dirty, kind: str, key: Key) -> None:
    _note_lacking(state, kind, key, is_lacking=lacks(state, kind, key))
    before = state.refused.get((kind, key))
    after = read_refused(state, kind, key)
    if before == after:
        return
    if after is None:
        del state.refused[(kind, key)]
    else:
        state.refused[(kind, key)] = after
    dirty.slots.update(found[0] for found in (before, after) if found is not None)


def _read_said(state: State, dirty: Dirty, kind: str, key: Key) -> None:
    before = state.said.get((kind, key))
    after = read_said(state, kind, key)
    _note_lacking(state, kind, key, is_lacking=after is not None)
    if before == after:
        return
    if before is not None:
        del state.said[(kind, key)]
        if before.workload is not None:
            here = state.told[before.workload]
            here.discard((kind, key))
            if not here:
                del state.told[before.workload]
    if after is not None:
        state.said[(kind, key)] = after
        if after.workload is not None:
            state.told.setdefault(after.workload, set()).add((kind, key))
    for said in (before, after):
        if said is not None and said.workload is not None:
            reread_workload(state, dirty, said.workload)


def _note_lacking(state: State, kind: str, key: Key, *, is_lacking: bool) -> None:
    here = state.lacking.setdefault(key[0], set())
    (here.add if is_lacking else here.discard)((kind, key))
    if not here:
        del state.lacking[key[0]]
