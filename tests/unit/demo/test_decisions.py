"""What the reader may do when a plan waits for a decision, and what comes of each."""

from __future__ import annotations

import re

import pytest

from sevenhop.demo.choices import NO, YES, Choice, scripted
from tests.unit.demo.telling import Told, tell


@pytest.fixture(scope="module")
def yes() -> Told:
    return tell("shortage", None, *YES)


@pytest.fixture(scope="module")
def no() -> Told:
    return tell("shortage", None, *NO)


@pytest.fixture(scope="module")
def silence() -> Told:
    return tell("shortage")


def places(told: Told, *patterns: str) -> list[int]:
    """Where each is told first; fails on one that is not."""
    found = [re.search(pattern, told.text) for pattern in patterns]
    assert all(found), [pattern for pattern, match in zip(patterns, found, strict=True) if match is None]
    return [match.start() for match in found if match is not None]


def test_the_whole_story_in_order(yes: Told) -> None:
    """Refused, overtaken, approved, tried, patched, scheduled, Ready, green, repaired, given back."""
    order = places(
        yes,
        r"CRITICAL",
        r"Told only to guest: “guest may not approve",
        r"Told only to you: “plan \w+ is superseded",
        r"✔ Told only to you: “plan \w+ is approved by you",
        r"dry-run done: the API server would accept it",
        r"apply done: docs/summarizer",
        r"kubectl shows the Event",
        r"is scheduled on gpu-\d+",
        r"✔ decode 4/4 Ready",
        r"✔ Goal met",
        r"🟢 RECOVERED · prod-eu · llama-70b/decode",
        r"gpu-05 is repaired",
        r"restore done: docs/summarizer predictor: InferenceService docs/summarizer 2 → 3",
        r"✔ Given back before the lease ended: docs/summarizer serves with 3 replicas",
        r"Audit +\d+ records, chain ok; with one byte of a copy changed: record \d+ was changed",
    )
    assert order == sorted(order)


def test_the_plan_that_was_overtaken_is_never_carried_out(yes: Told) -> None:
    """Kim's cut stays, and the new plan starts from it: 3 → 2, and back to 3."""
    first = re.search(r"PLAN (\w+)", yes.text)
    clicked = re.search(r"click Approve on plan (\w+)\. ", yes.text)
    assert first is not None
    assert clicked is not None
    assert first[1] != clicked[1]
    assert "summarizer 4 → 3" not in yes.after("The new plan")


def test_the_message_turns_green_and_is_not_posted_twice(yes: Told) -> None:
    """One post for the workload and one for the node; everything else is an edit."""
    assert [re.sub(r"^\S+ |(?<=gpus) .*", "", line)[:12] for line in yes.full_messages()] == [
        "🔴 CRITICAL · "[:12],
        "🟠 WARNING · p"[:12],
    ]
    assert yes.tally.repeated == 0


def test_a_no_changes_nothing(no: Told) -> None:
    """The donor keeps its replicas, nobody is asked again at once, and the pod waits for the repair."""
    told = no.after("click Reject")
    assert "✔ Told only to you: “plan" in told
    assert "is rejected (rejected by you); asked again after" in told
    assert "Nothing was changed: docs/summarizer serves with 4 replicas" in told
    assert "dry-run" not in told
    assert told.index("gpu-05 is repaired") < told.index("is scheduled on gpu-05") < told.index("🟢 RECOVERED")


def test_silence_is_no_yes(silence: Told) -> None:
    """A pipe explains what it would ask, takes neither answer, reminds once, and lets the plan expire."""
    told = silence.after("neither --yes nor --no was given")
    assert told.count("People were reminded once") == 1
    assert "expired: nobody decided in time; nothing was done" in told
    assert "Nothing was changed: docs/summarizer serves with 4 replicas" in told
    assert "approved" not in told
    assert "dry-run" not in told


def test_explaining_changes_nothing_and_may_be_asked_again() -> None:
    """Every line of the plan, its hash, and the same question once more."""
    told = tell("shortage", None, Choice.EXPLAIN, Choice.EXPLAIN, Choice.REJECT)
    assert told.text.count("What you agree to is the hash") == 2
    assert "Nothing was changed" in told.text


def test_what_was_tried_is_not_offered_twice() -> None:
    """The wrong person and the stale plan are played once each; explaining stays open."""
    seen: list[list[Choice]] = []
    script = scripted([Choice.WRONG_PERSON, Choice.STALE, Choice.REJECT])

    async def choose(open_now: object) -> Choice:
        assert isinstance(open_now, list)
        seen.append(list(open_now))
        return await script(open_now)

    tell("shortage", choose=choose)
    assert Choice.WRONG_PERSON in seen[0]
    assert Choice.WRONG_PERSON not in seen[1]
    assert seen[2] == [Choice.EXPLAIN, Choice.APPROVE, Choice.REJECT]


def test_approving_what_was_shown_first() -> None:
    """Without anybody in between the first plan is the one that runs, and the donor ends where it was."""
    told = tell("shortage", None, Choice.APPROVE)
    assert "✔ Given back before the lease ended: docs/summarizer serves with 4 replicas" in told.text
