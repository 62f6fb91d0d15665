"""The table of the benchmarks says plainly which aims are met, missed, and what was skipped."""

from __future__ import annotations

import msgspec
import pytest

from bench.diagnose import bundle_objects
from bench.engines import Feed, new_engine
from bench.figures import Figure, Result, Skipped, percentile, table_of
from bench.lines import cluster_objects
from bench.rulebook import rulebook_of
from bench.rules import queue_objects


def _figure(value: float, aim: float | None, *, less: bool = False) -> Figure:
    return Figure(bench="b", what="w", value=value, unit="s", aim=aim, better="less" if less else "more")


@pytest.mark.parametrize(
    ("figure", "ratio", "is_met"),
    [
        pytest.param(_figure(12.0, 10.0), 1.2, True, id="more is better, met"),
        pytest.param(_figure(5.0, 10.0), 0.5, False, id="more is better, missed"),
        pytest.param(_figure(5.0, 10.0, less=True), 2.0, True, id="less is better, met"),
        pytest.param(_figure(20.0, 10.0, less=True), 0.5, False, id="less is better, missed"),
        pytest.param(_figure(0.0, 1.0, less=True), float("inf"), True, id="nothing at all"),
        pytest.param(_figure(5.0, None), None, True, id="no aim"),
    ],
)
def test_ratio_to_the_aim(figure: Figure, ratio: float | None, is_met: bool) -> None:
    """A ratio of 1 or more is met, whichever way is better."""
    assert (figure.ratio, figure.is_met) == (ratio, is_met)


def test_the_table_names_what_is_missed_and_skipped() -> None:
    """Nobody has to look for the bad news."""
    found = table_of([_figure(5.0, 10.0), _figure(12.0, 10.0), Skipped(bench="peers", what="kopf", why="no pip")])
    assert "1 of 2 aims are met." in found
    assert "- MISSED b: w: 5 s, aim ≥ 10 s" in found
    assert "- SKIPPED peers: kopf: no pip" in found


def test_results_survive_the_way_from_their_process() -> None:
    """Each benchmark runs in a process of its own and hands over JSON."""
    results: list[Result] = [_figure(5.0, None), Skipped(bench="peers", what="kopf", why="no pip")]
    assert msgspec.json.decode(msgspec.json.encode(results), type=list[Figure | Skipped]) == results


@pytest.mark.parametrize(("percent", "expected"), [(50, 50), (99, 99), (100, 100), (1, 1)])
def test_percentile(percent: float, expected: float) -> None:
    """The smallest value that so many percent do not exceed."""
    assert percentile([float(number) for number in range(100, 0, -1)], percent) == expected


def test_there_are_a_hundred_rules_and_none_has_problems() -> None:
    """Generated ones pass the same checks as the shipped ones."""
    book = rulebook_of(100)
    assert sum(rule.enabled for rule in book.rules) == 100
    assert sum(rule.id.startswith("generated-") for rule in book.rules) < 100


def test_the_cluster_is_healthy_and_the_queue_waits() -> None:
    """The engine sees what the benchmarks say: nothing fires in the one, what has no node waits in the other."""
    engine = new_engine()
    Feed().list_all(engine, cluster_objects(10, 5, 8))
    assert len(engine.inventory.state.rows) == 40
    assert engine.alerts.snapshot() == []
    engine = new_engine()
    Feed().list_all(engine, queue_objects(10, 30))
    rows = engine.inventory.state.rows.values()
    assert sum(row.waiting for row in rows) == 30
    assert {row.pending.cause for row in rows if row.pending is not None} == {"gpu-shortage"}


def test_the_bundle_has_as_many_objects_as_it_says() -> None:
    """300 means 300."""
    assert len(bundle_objects(300)) == 300
