"""
What rules and verdicts cost.

One rule whose facts changed, with values it has seen before and with new ones; rules whose facts did not change; and
2,000 pods that wait on 5,000 full nodes: every verdict, and a question of what if.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from datetime import timedelta

from bench.engines import START, Feed, new_engine
from bench.figures import Figure, Result, median
from bench.generate import deployment, line, node, pod
from bench.rulebook import rulebook_of
from sevenhop.core.alerts.book import AlertBook
from sevenhop.core.alerts.rule import Rule, Verdict
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event
from sevenhop.core.facts.schema import Facts
from sevenhop.core.placement.what_if import what_if_on
from sevenhop.core.subject import Subject, SubjectKind

ROUNDS = 7
PODS_A_DEPLOYMENT = 10
GPUS_A_NODE = 8


def measure(*, quick: bool) -> list[Result]:
    """Rules by themselves, then the queue; a tenth of it when `quick`."""
    nodes, waiting = (500, 200) if quick else (5_000, 2_000)
    return [*_rule_costs(), *_queue(nodes, waiting)]


def _rule_costs() -> list[Result]:
    rules = [rule for rule in rulebook_of(100).rules if rule.subject is SubjectKind.COMPONENT]
    facts = _component_facts()
    seen = [_with(facts, ready) for ready in (1, 2)]
    fresh = [_with(facts, 100 + number) for number in range(2_000)]
    reading = [rule for rule in rules if "component.ready" in rule.reads and rule.evaluate(facts).verdict is not None]
    known_us = _per_call_us(reading, seen * 500)
    new_us = _per_call_us(reading, fresh)
    return [
        Figure(bench="rules", what="a rule whose facts changed, values seen before", value=known_us, unit="µs", aim=5.0,
               better="less", note=f"{len(reading)} rules that read component.ready"),
        Figure(bench="rules", what="the same, values never seen: one activation each", value=new_us, unit="µs",
               note="the aim leaves activations out"),
        Figure(bench="rules", what="a subject whose facts did not change, all its rules",
               value=_idle_us(rules, facts), unit="µs", note=f"{len(rules)} rules"),
    ]  # fmt: skip


def _component_facts() -> Facts:
    """The facts of a component as the inventory derives them."""
    engine, feed = new_engine(), Feed()
    objects = [node(0), *deployment(0, 2, gpus=2)]
    objects += [pod(number, 0, gpus=2, node_name="node-00000") for number in range(2)]
    feed.list_all(engine, objects)
    return next(facts for subject, facts in engine.inventory.facts.items() if subject.kind is SubjectKind.COMPONENT)


def _with(facts: Facts, ready: int) -> Facts:
    return {**facts, "component.ready": ready}


def _per_call_us(rules: list[Rule], versions: list[Facts]) -> float:
    """Median over rounds of versions; the best is what the machine can do, but new values are new only once."""
    if not rules:
        raise ValueError("no rule reads component.ready")
    rounds = [versions[number::ROUNDS] for number in range(ROUNDS)]
    found = []
    for part in rounds:
        begin = time.process_time()
        for facts in part:
            for rule in rules:
                if rule.evaluate(facts).verdict is Verdict.BROKEN:
                    raise ValueError(f"{rule.id} is broken")
        found.append((time.process_time() - begin) / len(part) / len(rules) * 1e6)
    return median(found)


def _idle_us(rules: list[Rule], facts: Facts) -> float:
    book = AlertBook(rules, "bench")
    subjects = {
        Subject(SubjectKind.COMPONENT, "team", f"model-{number}/engine"): dict(facts) for number in range(1_000)
    }
    book.evaluate(subjects, (), START)
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        book.evaluate(subjects, (), START)
        found.append((time.process_time() - begin) / len(subjects) * 1e6)
    return median(found)


def _queue(nodes: int, waiting: int) -> list[Result]:
    engine, feed = new_engine(), Feed()
    feed.list_all(engine, queue_objects(nodes, waiting))
    gc.collect()
    gc.freeze()
    victims = [("team-0", "model-00000-aaaaa-000000")]
    name = f"{waiting:,} pods Pending on {nodes:,} nodes"
    current_s = median(_moved(engine, feed, number, waiting) for number in range(1, 4))
    ask_s = median(_seconds(lambda: what_if_on(engine.inventory.state.placement, victims)) for _ in range(3))
    return [
        Figure(bench="rules", what=f"{name}: all verdicts current after a node changed", value=current_s, unit="s",
               aim=1.0, better="less"),
        Figure(bench="rules", what=f"{name}: what if one pod was gone, for all of them", value=ask_s, unit="s",
               aim=1.0, better="less"),
    ]  # fmt: skip


def queue_objects(nodes: int, waiting: int) -> list[dict[str, object]]:
    """Full nodes of 8 GPUs, and pods of twelve sizes and priorities, ten a Deployment, that wait for them."""
    made: list[dict[str, object]] = [node(number) for number in range(nodes)]
    placed = nodes * GPUS_A_NODE // 2
    for of in range((placed + waiting) // PODS_A_DEPLOYMENT):
        made += deployment(of, PODS_A_DEPLOYMENT, gpus=2)
    for number in range(placed):
        of, host = number // PODS_A_DEPLOYMENT, f"node-{number // 4:05}"
        made.append(pod(number, of, gpus=2, node_name=host, priority=1000))
    for number in range(placed, placed + waiting):
        of = number // PODS_A_DEPLOYMENT
        made.append(pod(number, of, gpus=(1, 2, 4, 8)[of % 4], node_name="", priority=(0, 100, 1000)[of % 3]))
    return made


def _moved(engine: Engine, feed: Feed, number: int, waiting: int) -> float:
    """Seconds until every verdict takes into account that a node lost two GPUs."""
    changed = node(number, gpus=6)
    changed["metadata"]["resourceVersion"] = str(number + 1)
    events: list[Event] = []
    at = START + timedelta(seconds=60 * number)
    feed.kinds["Node"].line(line("MODIFIED", changed)[:-1], at, events)
    begin = time.process_time()
    engine.handle(events, at)
    pending = engine.inventory.state.pending
    while (due := pending.due_at()) is not None:
        engine.handle((), max(at, due))
    took_s = time.process_time() - begin
    verdicts = [pending.verdict(key) for key, row in engine.inventory.state.rows.items() if not row.node]
    if len(verdicts) != waiting or None in verdicts:
        raise ValueError(f"{len(verdicts)} verdicts, {verdicts.count(None)} of them missing; {waiting} pods wait")
    return took_s


def _seconds(what: Callable[[], object]) -> float:
    begin = time.process_time()
    what()
    return time.process_time() - begin
