"""Services in one pass of the inventory: what is told of each, and which pods they list."""

from __future__ import annotations

from sevenhop.core.inventory.fact_changes import FactChanges
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.read_service import read_service
from sevenhop.core.inventory.state import Dirty, State
from sevenhop.core.subject import Subject, SubjectKind


def read_services(state: State, dirty: Dirty, told: FactChanges) -> None:
    """Facts of dirty services; pods that they list now, or no longer, are told anew."""
    todo, dirty.services = dirty.services, set()
    for key in sorted(todo):
        facts = read_service(state, key)
        told.put(Subject(SubjectKind.SERVICE, *key), facts)
        listed = frozenset(state.services.ready_pods(key)) if facts is not None else frozenset[Key]()
        dirty.pod_facts.update(pod for pod in listed ^ state.listed_ready.get(key, frozenset()) if pod in state.rows)
        if facts is None:
            state.listed_ready.pop(key, None)
            state.service_of.pop(key, None)
            _forget_served(state, key)
        else:
            state.listed_ready[key] = listed
            state.service_of[key] = (key[0], str(facts["workload"]))


def _forget_served(state: State, key: Key) -> None:
    if state.services.services.get(key) is None and state.served.pop(key, False):
        state.changed_histories.add(("served", "/".join(key)))
