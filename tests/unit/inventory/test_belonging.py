"""While the roots of workloads are not all listed, a pod may seem to belong to a part of its workload."""

from __future__ import annotations

import msgspec

from sevenhop.core.events import SyncState
from sevenhop.core.facts.schema import Unknown, UnknownReason
from sevenhop.core.objects.kinds import KINDS
from tests import builders as b
from tests.unit.inventory.scenes import SHORT, Scene

LATE = "RayService.ray.io"
POD = "component:prod/chat/engine"
POOL = f"pool:{b.H100}"


def scene() -> Scene:
    """All is listed but one kind of root."""
    of = b.deployment("chat", gpus=1)
    made = b.replicaset(of)
    holder = b.pod("holder", node="n", gpus=1, image="org/other:1", args=())
    here = Scene(b.node("n", gpus=1), of, made, holder, b.pod_of(made, "p", unschedulable=SHORT), synced=False)
    here.source(*(kind for kind in KINDS if kind != LATE), state=SyncState.SYNCED)
    return here


def test_nothing_is_said_of_what_waits_until_every_root_is_listed() -> None:
    """Who waits and for what is unknown, of components and of their pool, with the kind that is missing."""
    here = scene()
    for subject, fact in ((POD, "waiting"), (POOL, "waiting_gpus")):
        found = here.fact(subject, fact)
        assert isinstance(found, Unknown)
        assert (found.reason, found.detail) == (UnknownReason.NOT_SYNCED, LATE)
    here.source(LATE, state=SyncState.ABSENT)
    assert here.fact(POD, "waiting") == 1
    assert here.fact(POOL, "waiting_gpus") == 1


def test_a_kind_that_cannot_be_listed_holds_nobody_up() -> None:
    """Its failure is an answer too: the others go on with what can be seen."""
    here = scene()
    (event,) = here.feed.synced(LATE, state=SyncState.NOT_SYNCED, seconds=here.seconds)
    here.tell([msgspec.structs.replace(event, detail="HTTP 500")])
    assert here.fact(POD, "waiting") == 1
