"""What a worker's report becomes for people."""

from __future__ import annotations

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
