"""Taking kube-scheduler verdicts apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.hops.scheduler_text import classify_scheduler_message, read_scheduler_message

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


@pytest.mark.parametrize(
    ("text", "total", "counts"),
    [
        pytest.param(
            (
                "No nodes are available that match all of the predicates: Insufficient cpu (3), "
                "PodToleratesNodeTaints (1)."
            ),
            None,
            {"Insufficient cpu": 3, "PodToleratesNodeTaints": 1},
            id="up to 1.10",
        ),
        pytest.param(
            (
                "0/7 nodes are available: 3 node(s) had taints that the pod didn't tolerate, 4 node(s) didn't "
                "match node selector."
            ),
            7,
            {"node(s) had taints that the pod didn't tolerate": 3, "node(s) didn't match node selector": 4},
            id="1.17",
        ),
        pytest.param(
            "0/3 nodes are available: 1 node(s) had taint {a: b, c}, that the pod didn't tolerate, 2 Insufficient cpu.",
            3,
            {"node(s) had taint {a: b, c}, that the pod didn't tolerate": 1, "Insufficient cpu": 2},
            id="1.19: a comma inside a reason",
        ),
        pytest.param(
            (
                f"0/5 nodes are available: 5 Insufficient nvidia.com/gpu. preemption: 0/5 nodes are available: 5 "
                f"{NO_VICTIMS}.."
            ),
            5,
            {"Insufficient nvidia.com/gpu": 5},
            id="1.27: two final dots",
        ),
        pytest.param(
            "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. 4 pod has unbound immediate "
            "PersistentVolumeClaims. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling..",
            4,
            {"pod has unbound immediate PersistentVolumeClaims": None},
            id="1.26: PreFilter text said twice",
        ),
        pytest.param(
            "Origin reason is task-0: 0/9 nodes are unavailable: 9 node(s) resource fit failed.",
            9,
            {"node(s) resource fit failed": 9},
            id="Volcano, inside another text",
        ),
        pytest.param("0 / 2 nodes are available: 2 Too many pods", 2, {"Too many pods": 2}, id="blanks in the head"),
        pytest.param("0/3 nodes are available: no idea what", 3, {"no idea what": None}, id="no count"),
        pytest.param("0/3 nodes are available.", 3, {}, id="no reason"),
    ],
)
def test_counts_of_every_era(text: str, total: int | None, counts: dict[str, int | None]) -> None:
    """
    Total and reasons are read whatever the version wrote around them.
    """
    message = read_scheduler_message(text)

    assert message is not None
    assert message.total_nodes == total
    assert message.counts == counts


def test_preemption_is_no_cause() -> None:
    """
    What preemption says stands apart from the reasons.
    """
    message = read_scheduler_message(
        f"0/6 nodes are available: 6 Insufficient amd.com/gpu. no new claims to deallocate, preemption: 0/6 nodes are "
        f"available: 2 {NO_VICTIMS}, 4 {NOT_HELPFUL}."
    )

    assert message is not None
    assert message.preemption is not None
    assert (message.preemption.no_victims, message.preemption.not_helpful) == (2, 4)
    assert message.counts == {"Insufficient amd.com/gpu": 6}
    assert message.post_filter == ("no new claims to deallocate",)
    assert message.recent


def test_not_eligible_for_preemption() -> None:
    """
    The reason why preemption was not tried is kept, in words.
    """
    message = read_scheduler_message(
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.."
    )

    assert message is not None
    assert message.preemption is not None
    assert message.preemption.not_eligible == "preemptionPolicy=Never."
    assert "preemptionPolicy=Never" in str(message.preemption)


def test_a_cut_note_is_marked() -> None:
    """
    A note that was cut says so, and its whole reasons are still read.
    """
    message = read_scheduler_message("0/40 nodes are available: 10 Insufficient cpu, 30 node(s) had untole ...")

    assert message is not None
    assert message.truncated
    assert message.counts["Insufficient cpu"] == 10


@pytest.mark.parametrize("text", ["", "pulled image", "couldn't assign flavors to pod set main: no"])
def test_other_texts_are_no_verdict(text: str) -> None:
    """
    A text without a verdict gives None.
    """
    assert read_scheduler_message(text) is None


_PIECES = st.sampled_from(
    [
        "0/3 nodes are available: ",
        "3 Insufficient nvidia.com/gpu",
        ", ",
        ". ",
        "preemption: ",
        "1 ",
        "{",
        "not found",
        "...",
    ]
)


@given(st.one_of(st.text(), st.lists(_PIECES, max_size=12).map("".join)))
def test_total_on_any_text(text: str) -> None:
    """
    No text makes the reader or the classifier raise.
    """
    read_scheduler_message(text)
    classify_scheduler_message(text)
    classify_scheduler_message(text, wants_gpu=True)


_REASONS = ("Insufficient cpu", "node(s) were unschedulable", "node(s) had untolerated taint {a: b}", "Too many pods")


@given(st.dictionaries(st.sampled_from(_REASONS), st.integers(1, 5000), min_size=1), st.integers(1, 5000))
def test_what_is_written_is_read(counts: dict[str, int], total: int) -> None:
    """
    Reasons written as the scheduler writes them come back with their numbers.
    """
    text = f"0/{total} nodes are available: " + ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items())) + "."

    message = read_scheduler_message(text)

    assert message is not None
    assert message.total_nodes == total
    assert message.counts == counts
