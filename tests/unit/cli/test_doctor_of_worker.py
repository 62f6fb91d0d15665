"""What a worker's report becomes for people."""

from __future__ import annotations

import pytest

from sevenhop.cli.doctor import problems_of_worker, text_of_worker

WELL = {"partitions": {}, "lag": {}, "stalled": "", "dead_letters": {}}


def test_a_switch_that_only_redis_keeps() -> None:
    """It is a problem for as long as it is so: the cluster, why, and the right that is missing."""
    report = {**WELL, "switches_not_kept": {"prod": "TopicAuthorizationFailedError"}}
    [line] = problems_of_worker(report)
    assert "kill switch of prod" in line
    assert "TopicAuthorizationFailedError; workers need to write to the topic of objects" in line
    assert line in text_of_worker(report)
    assert problems_of_worker({**WELL, "switches_not_kept": {}}) == problems_of_worker(WELL) == []


CELL = {"blind": False, "term": 1, "stale_records": 0, "outbox": 0, "key": "", "failing": {}}


@pytest.mark.parametrize(
    ("its", "expected"),
    [
        ({}, []),
        (
            {"key": "the edge of prod signs nothing"},
            ["No plan can be carried out in prod: the edge of prod signs nothing"],
        ),
        (
            {"failing": {"cluster": "no answer", "slack": "no channel"}},
            [
                "A step in prod is not done yet, and is tried again: no answer",
                "Receiver slack fails for prod: no channel",
            ],
        ),
        (
            {"key": "it signs nothing", "failing": {"cluster": "it signs nothing; nothing was sent"}},
            ["No plan can be carried out in prod: it signs nothing"],
        ),
    ],
    ids=["well", "a key that differs", "what fails", "both of one reason"],
)
def test_what_keeps_a_plan_from_being_carried_out(its: dict[str, str], expected: list[str]) -> None:
    """A line of its cluster with the reason, for as long as it is so; a worker of before says nothing of it."""
    report = {**WELL, "partitions": {"0": {"ready": True, "clusters": {"prod": {**CELL, **its}}}}}
    assert problems_of_worker(report) == expected
    assert all(line in text_of_worker(report) for line in expected)
    older = {name: value for name, value in CELL.items() if name not in ("key", "failing")}
    assert problems_of_worker({**WELL, "partitions": {"0": {"ready": True, "clusters": {"prod": older}}}}) == []


def test_a_worker_without_a_key_says_that_nothing_is_signed() -> None:
    """Once, and as no problem: whoever trusts the brokers may have wanted that."""
    report = {**WELL, "unsigned": "runtime.decision_key is not set: orders are not signed"}
    assert text_of_worker(report).count("Not signed: runtime.decision_key is not set: orders are not signed.") == 1
    assert problems_of_worker(report) == []
    assert "Not signed" not in text_of_worker({**WELL, "unsigned": ""})
