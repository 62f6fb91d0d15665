"""The story of a decode worker that fits nowhere, as it is told in a pipe."""

from __future__ import annotations

import re

import pytest

from sevenhop.demo.choices import YES
from tests.unit.demo.telling import Told, tell


@pytest.fixture(scope="module")
def told() -> Told:
    return tell("shortage", None, *YES)


def test_two_messages_are_posted_and_none_repeated(told: Told) -> None:
    """The workload's and the node's; several changes of the cluster and of the plan are edits."""
    assert len(told.full_messages()) == 2
    assert (told.tally.posted, told.tally.repeated, told.tally.green) == (2, 0, 1)
    assert told.tally.edits >= 1
    assert re.search(
        rf"2 messages posted, {told.tally.edits} edits? in place, the last one green, 0 repeated", told.text
    )


def test_the_message_comes_after_for_and_group_wait_to_the_second(told: Told) -> None:
    """Pending at 03:00:00, `for: 2m`, five seconds of group wait."""
    title = told.full_messages()[0]
    assert title.startswith("03:02:05 🔴 CRITICAL · prod-eu · llama-70b/decode waits for 2 × NVIDIA-H100")


@pytest.mark.parametrize(
    ("label", "text"),
    [
        pytest.param(
            "First broken hop", r"scheduling  .*\? gpu .*✖ scheduling 3/4 .*\? gateway", id="first broken hop"
        ),
        pytest.param("Not seen", r"gpu unknown .*model unknown .*gateway unknown", id="what is not seen"),
        pytest.param("Who is hit", r"decode 3/4 ready \(minimum 4\)", id="for whom"),
        pytest.param(
            "Why",
            r"needs 2 × nvidia\.com/gpu on one node; of 6 nodes 2 carry none, 1 is full, 3 with 1 free .*fragmentation",
            id="the arithmetic",
        ),
        pytest.param("Not preempted", r"ranks lower", id="why the scheduler did not preempt"),
        pytest.param("Changed before", r"gpu-05 allocatable .*8 → .*7", id="changed before"),
        pytest.param("Capacity", r"28 of 31 GPUs bound · 3 free, largest block 1", id="capacity"),
        pytest.param("If you do nothing", r"3 of 4 serve", id="if you do nothing"),
        pytest.param("Owner", r"@llm-serving", id="owner"),
        pytest.param("PLAN", r"summarizer 4 → 3, frees 2 H100 on gpu-07", id="the plan"),
        pytest.param("Plan is", r"waits for a decision until 03:17:00 UTC", id="until when"),
        pytest.param("Look", r"kubectl -n chat describe pod llama-70b-decode-", id="one kubectl line"),
    ],
)
def test_the_message_says(told: Told, label: str, text: str) -> None:
    """Each line that a person needs stands in the message that is posted."""
    row = next(line for line in told.lines if line.startswith(f"  {label} "))
    assert re.search(text, row), row


def test_the_plan_asks_nobody_who_must_not_give(told: Told) -> None:
    """Same tier, under a budget, and a bare pod are refused by name, with the reason."""
    refused = next(line for line in told.lines if line.startswith("Refused"))
    for name, why in {
        "search/ranker/engine": "the same tier",
        "search/embed/engine": "PodDisruptionBudget embed lets 0",
        "1 other pod": "no inference workload",
    }.items():
        assert re.search(rf"{name} \([^)]*{why}", refused)


def test_the_plan_serves_whom_it_is_for(told: Told) -> None:
    """notebook-8 has waited longer for gpu-06: so another node's replica goes, steered."""
    plan = [line for line in told.lines if line.startswith("  PLAN")]
    assert any("steered by pod-deletion-cost" in line for line in plan)
    assert any("fits by simulation on gpu-07" in line for line in plan)


def test_it_turns_green_after_the_pod_is_ready(told: Told) -> None:
    """Scheduled, Ready, recovered, in this order; the green line is the last that Sevenhop says."""
    places = [told.text.index(words) for words in ("is scheduled on", "decode 4/4 Ready", "🟢 RECOVERED · prod-eu")]
    assert places == sorted(places)
    assert "CRITICAL" not in told.text[places[-1] :]


def test_where_the_plan_stands_is_in_the_message(told: Told) -> None:
    """Each edit says how far it is: approved, carried out, succeeded, restored."""
    edits = " ".join(line for line in told.lines if "changed:" in line)
    for word in ("approved by you", "carried out, approved by you", "succeeded: goal reached", "restored"):
        assert word in edits


def test_it_ends_with_the_readers_own_cluster(told: Told) -> None:
    """What to do next: look at it, watch it, ask why, another story."""
    tail = told.text[told.text.index("Your cluster") :]
    for command in (
        "sevenhop scan --context",
        "sevenhop run",
        "sevenhop explain",
        "sevenhop demo surge",
        "mode: approve",
    ):
        assert command in tail


def test_the_same_story_every_time(told: Told) -> None:
    """A slower clock, and another run, tell the same to the second."""
    again = tell("shortage", None, *YES, speed=2000)
    measured = re.compile(r"read in \S+ s|clock ×\S+")
    assert measured.sub("", again.text) == measured.sub("", told.text)
