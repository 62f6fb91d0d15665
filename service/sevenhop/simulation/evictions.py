"""The eviction subresource: a deletion that asks the PodDisruptionBudgets first (pkg/registry/core/pod/storage)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sevenhop.simulation.store import Data, Store, StoreError

PDB = "PodDisruptionBudget.policy"


def evict(store: Store, namespace: str, name: str, eviction: Data, *, dry_run: bool) -> None:
    """
    Delete the pod if its budget allows it.

    Raises:
        StoreError: 404; 409 another incarnation; 429 a budget keeps it.
    """
    pod = store.get("Pod", namespace, name)
    options = eviction.get("deleteOptions") or {}
    dry_run = dry_run or options.get("dryRun") == ["All"]
    if not pod["metadata"].get("deletionTimestamp"):
        for budget in store.all(PDB, namespace) if store.serves(PDB) else ():
            if _selects(budget, pod):
                _ask(store, budget, pod)
    uid = str((options.get("preconditions") or {}).get("uid", ""))
    store.delete("Pod", namespace, name, uid=uid, grace_s=options.get("gracePeriodSeconds"), dry_run=dry_run)


def _ask(store: Store, budget: Data, pod: Data) -> None:
    meta, spec = budget["metadata"], budget["spec"]
    pods = [p for p in store.all("Pod", meta["namespace"]) if _selects(budget, p)]
    healthy = sum(map(_is_healthy, pods))
    if "maxUnavailable" in spec:
        needed = len(pods) - _share(spec["maxUnavailable"], len(pods), math.ceil)
    else:
        needed = _share(spec.get("minAvailable", 0), len(pods), math.ceil)
    # A pod that is not ready may go while the others are enough (IfHealthyBudget, the default).
    if healthy - (1 if _is_healthy(pod) else 0) < needed:
        raise StoreError(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
            causes=(f"The disruption budget {meta['name']} needs {needed} healthy pods and has {healthy} currently",),
        )


def _is_healthy(pod: Data) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return is_ready and not pod["metadata"].get("deletionTimestamp")


def _selects(budget: Data, pod: Data) -> bool:
    wanted = ((budget["spec"].get("selector") or {}).get("matchLabels")) or {}
    labels = pod["metadata"].get("labels") or {}
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())


def _share(amount: Any, whole: int, rounding: Callable[[float], int]) -> int:
    if isinstance(amount, str) and amount.endswith("%"):
        return rounding(int(amount[:-1]) * whole / 100)
    return int(amount)
