"""A mark that a plan's own step left behind is no loan of somebody else's."""

from __future__ import annotations

import pytest

from sevenhop.core.effects import Borrow
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow
from sevenhop.core.remediation.planning.donors import Donor, donor_of
from sevenhop.core.remediation.planning.reservations import Reservations
from sevenhop.core.remediation.view import view_of
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from tests.builders import Feed, at, deployment, node, pod_of, replicaset

MARK = encode_borrow(
    Borrow(plan="p1", hash="h", incident="i", workload="prod/chat", component="engine", before=2, after=1,
           until=at(7200), by="kim")
)  # fmt: skip


def marked(mark: str) -> Inventory:
    feed = Feed()
    server = deployment("chat", replicas=2, gpus=1, annotations={BORROWED: mark})
    replicas = replicaset(server)
    pods = [pod_of(replicas, str(n), node="gpu-0") for n in range(2)]
    made = Inventory("test", FRAMEWORKS, Policy())
    for event in [*feed.synced(), *feed.applied(node("gpu-0", gpus=4), server, replicas, *pods, seconds=10)]:
        made.apply(event)
    made.settle(at(20))
    return made


@pytest.mark.parametrize(
    ("mark", "own", "gives"),
    [(MARK, "p1", True), (MARK, "p2", False), (MARK, "", False), ("{", "p1", False)],
    ids=["its own", "of another plan", "no plan is looked at", "that nobody can read"],
)
def test_what_a_donor_with_a_mark_gives(mark: str, own: str, gives: bool) -> None:
    """Only the plan whose mark it is goes on where it was cut off."""
    state = marked(mark).state
    [slot] = [slot for slot in state.rows_of if slot[0] == ("prod", "chat")]

    assert isinstance(donor_of(state, slot, SCALING, Reservations(()), own), Donor) is gives


def test_the_object_itself_stays_as_it_is() -> None:
    """Looking past a mark changes nothing of what is known."""
    state = marked(MARK).state
    shown = view_of(state, "p1").get("Deployment.apps", "prod", "chat")
    known = state.objects.get("Deployment.apps", "prod", "chat")

    assert shown is not None
    assert known is not None
    assert BORROWED not in shown.metadata.annotations
    assert BORROWED in known.metadata.annotations
