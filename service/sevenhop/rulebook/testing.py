"""
Timeline tests of rules, in virtual time, through the very alert book that runs in production.

A stable rule needs a test that fires, one that stays quiet, and the exact second of firing and of resolving: an
expectation at that second and another one second earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Any

from msgspec.structs import replace
from pydantic import ValidationError

from sevenhop.core.alerts.alert import Alert, AlertChanged, AlertState
from sevenhop.core.alerts.book import AlertBook
from sevenhop.core.alerts.render import render
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.alerts.severity import severity_of
from sevenhop.core.facts.schema import LABELS, Facts, FactSpec, FactType, Unknown
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.rulebook.gpu_timeline import events_of
from sevenhop.rulebook.load import TEST_SUFFIX, Rulebook, is_hidden, read_files, schema_problems
from sevenhop.rulebook.names import visible_facts
from sevenhop.rulebook.problem import Problem, did_you_mean
from sevenhop.rulebook.schema import Status, format_duration, parse_duration
from sevenhop.rulebook.timeline import KEYS, Expectation, Moment, News, TestFile, Timeline
from sevenhop.rulebook.yaml_nodes import Document, read_document

START = datetime(2026, 1, 1, tzinfo=UTC)
"""Time 0 of every test."""
_SECOND = timedelta(seconds=1)
_KINDS: dict[FactType, tuple[type, ...]] = {
    FactType.BOOL: (bool,),
    FactType.INT: (int,),
    FactType.DOUBLE: (float, int),
    FactType.STRING: (str,),
    FactType.INT_LIST: (list,),
}


@dataclass(frozen=True, slots=True)
class TestResult:
    """
    One timeline; it passed if nothing is in `failures`.

    Attributes:
        fired: Whether the alert fired at any time.
    """

    __test__ = False  # not a test of ours

    rule_id: str
    name: str
    failures: tuple[Problem, ...]
    fired: bool = False


@dataclass(frozen=True, slots=True)
class TestReport:
    """
    Attributes:
        problems: Of the test files themselves, and of stable rules that lack a test.
    """

    __test__ = False

    results: tuple[TestResult, ...]
    problems: tuple[Problem, ...]

    @property
    def is_ok(self) -> bool:
        return not self.problems and not any(r.failures for r in self.results)


def test_files(paths: Iterable[Path]) -> list[Path]:
    """Test files below folders, beside rule files, and as they are named."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*" + TEST_SUFFIX) if not is_hidden(p, path))
        elif path.name.endswith(TEST_SUFFIX):
            found.append(path)
        elif (beside := path.with_name(path.stem + TEST_SUFFIX)).exists():
            found.append(beside)
    return list(dict.fromkeys(found))


test_files.__test__ = False  # type: ignore[attr-defined]


def run_tests(book: Rulebook, paths: Iterable[Path], facts: Mapping[str, FactSpec]) -> TestReport:
    """Run every test file below `paths` against the rules of `book`."""
    texts, problems = read_files(test_files(paths))
    report = run_test_texts(book, texts, facts)
    return TestReport(report.results, tuple(sorted([*problems, *report.problems])))


def run_test_texts(book: Rulebook, texts: Mapping[str, str], facts: Mapping[str, FactSpec]) -> TestReport:
    """Run tests from path → content; reads no files."""
    results: list[TestResult] = []
    problems: list[Problem] = []
    tested: set[str] = set()
    for path, text in sorted(texts.items()):
        document = read_document(path, text)
        written, found = _read(document, book, facts)
        problems += found
        if written is None:
            tested |= {written_rule(document.data)}
            continue
        rule = book.rule(written.rule)
        assert rule is not None, "checked while reading"
        tested.add(rule.id)
        of_rule = [_run(rule, test, i, document, facts) for i, test in enumerate(written.tests)]
        results += of_rule
        if rule.status == Status.STABLE:
            problems += _lacking(rule, written, of_rule, document)
    for rule in book.rules:
        if rule.status == Status.STABLE and rule.id not in tested:
            text = f"the stable rule {rule.id} needs {rule.id}{TEST_SUFFIX} beside it"
            problems.append(Problem(rule.path, 0, "test-missing", text))
    return TestReport(tuple(results), tuple(sorted(problems)))


def written_rule(data: object) -> str:
    """The rule that a test file names, as far as that can be read."""
    name = data.get("rule") if isinstance(data, dict) else None
    return name if isinstance(name, str) else ""


def _read(document: Document, book: Rulebook, facts: Mapping[str, FactSpec]) -> tuple[TestFile | None, list[Problem]]:
    problems = list(document.problems)
    if document.data is None:
        return None, problems
    try:
        written = TestFile.model_validate(document.data)
    except ValidationError as error:
        return None, problems + schema_problems(document, error, KEYS, "test")
    rule = book.rule(written.rule)
    if rule is None and any(PurePath(p.path).stem == written.rule for p in book.problems):
        return None, problems  # the rule has problems of its own, told there
    if rule is None:
        hint = did_you_mean(written.rule, [r.id for r in book.rules])
        text = f"there is no rule {written.rule}{hint}"
        problems.append(Problem(document.path, document.line(("rule",)), "test-unknown-rule", text))
        return None, problems
    if PurePath(document.path).name != written.rule + TEST_SUFFIX:
        text = f"tests of {written.rule} belong into {written.rule}{TEST_SUFFIX}"
        problems.append(Problem(document.path, document.line(("rule",)), "test-file-name", text))
    visible = visible_facts(facts, rule.subject)
    for i, test in enumerate(written.tests):
        problems += _name_problems(document, test, i, visible)
    return (None if problems else written), problems


def _name_problems(document: Document, test: Timeline, i: int, visible: Mapping[str, FactSpec]) -> list[Problem]:
    problems = []

    def unknown(name: str, known: Iterable[str], *where: str | int) -> None:
        text = f"{name} is not known here{did_you_mean(name, known)}"
        problems.append(Problem(document.path, document.line(("tests", i, *where)), "test-unknown-name", text))

    for label in test.labels:
        if label not in LABELS:
            unknown(label, LABELS, "labels", label)
    for m, moment in enumerate(test.facts):
        for name, value in moment.set.items():
            where = ("facts", m, "set", name)
            if name not in visible:
                unknown(name, visible, *where)
            elif (said := _value(visible[name], value)[1]) is not None:
                problems.append(Problem(document.path, document.line(("tests", i, *where)), "test-wrong-value", said))
        for name in moment.unknown:
            if name not in visible:
                unknown(name, visible, "facts", m, "unknown", name)
    for e, expected in enumerate(test.expect):
        for name in expected.unknown or ():
            if name not in visible:
                unknown(name, visible, "expect", e, "unknown")
    return problems


def _value(spec: FactSpec, value: Any) -> tuple[Any, str | None]:
    """A fact's value as written in a test, or what is wrong with it."""
    wanted = f"{spec.name} is {'an' if spec.type.value[0] in 'aeiou' else 'a'} {spec.type}, got {value!r}"
    if spec.type is FactType.TIME:
        try:
            back = isinstance(value, str) and value.startswith("-")
            length = parse_duration(value[1:] if back else value)
            return START + (-length if back else length), None
        except ValueError:
            return None, f"{wanted}; write a time since the start, such as 0s or -5m"
    if not isinstance(value, _KINDS[spec.type]) or (isinstance(value, bool) and spec.type is not FactType.BOOL):
        return None, wanted
    if spec.values and value and value not in spec.values:
        return None, f"{spec.name} is never {value!r}{did_you_mean(str(value), spec.values)}"
    return (float(str(value)) if spec.type is FactType.DOUBLE else value), None


def _run(rule: Rule, test: Timeline, i: int, document: Document, facts: Mapping[str, FactSpec]) -> TestResult:
    if test.gpus is not None:
        return _run_samples(rule, test, i, document)
    labels = {"cluster": "test", **test.labels}
    subject = _subject(rule.subject, labels)
    visible = visible_facts(facts, rule.subject)
    # Like the inventory: what does not arise has its value, what nobody tells is absent.
    now: Facts = {n: spec.not_applicable for n, spec in visible.items() if spec.not_applicable is not None}
    now.update(labels)
    book = AlertBook([_on(rule)], "test")
    failures = []
    moments, told = list(test.facts), list[AlertChanged]()
    for e, expected in enumerate(test.expect):
        while moments and moments[0].at <= expected.at:
            told += _live(book, subject, now, moments.pop(0), visible)
        at = START + expected.at
        told += book.tick(at)
        line = document.line(("tests", i, "expect", e))
        for said in _differences(rule, book.alert(rule.id, subject), expected, [c for c in told if c.at == at]):
            text = f"{test.name}: at {format_duration(expected.at)} {said}"
            failures.append(Problem(document.path, line, "test-failed", text))
    for moment in moments:
        told += _live(book, subject, now, moment, visible)
    fired = any(c.alert.state is AlertState.FIRING for c in told)
    return TestResult(rule.id, test.name, tuple(failures), fired)


def _run_samples(rule: Rule, test: Timeline, i: int, document: Document) -> TestResult:
    """The same for a story that GPU agents tell: an inventory makes the facts of it."""
    assert test.gpus is not None, "asked by the caller"
    labels = {"node": "node-1", "gpu_uuid": "GPU-node-1-0", "product": test.gpus.product, **test.labels}
    subject = _subject(rule.subject, labels)
    book, inventory = AlertBook([_on(rule)], "test"), Inventory("test", ())
    failures: list[Problem] = []
    told: list[AlertChanged] = []
    try:
        events = list(events_of(test.gpus, test.samples, START, test.end))
    except ValueError as error:
        line = document.line(("tests", i, "samples"))
        return TestResult(rule.id, test.name, (Problem(document.path, line, "test-wrong-value", str(error)),))

    def settle(at: datetime) -> None:
        settled = inventory.settle(at)
        changed = {subject: settled.changed[subject]} if subject in settled.changed else {}
        told.extend(book.evaluate(changed, settled.gone & {subject}, at))

    def live_until(at: datetime) -> None:
        while True:
            wake = inventory.next_wake
            next_at = min((t for t in (events[0].at if events else None, wake) if t is not None), default=None)
            if next_at is None or next_at > at:
                return
            while events and events[0].at <= next_at:
                inventory.apply(events.pop(0))
            settle(next_at)

    for e, expected in enumerate(test.expect):
        at = START + expected.at
        live_until(at)
        told += book.tick(at)
        line = document.line(("tests", i, "expect", e))
        for said in _differences(rule, book.alert(rule.id, subject), expected, [c for c in told if c.at == at]):
            text = f"{test.name}: at {format_duration(expected.at)} {said}"
            failures.append(Problem(document.path, line, "test-failed", text))
    live_until(START + test.end)
    fired = any(c.alert.state is AlertState.FIRING for c in told)
    return TestResult(rule.id, test.name, tuple(failures), fired)


def _on(rule: Rule) -> Rule:
    """A rule that is off by default is tested as whoever turns it on will have it."""
    return replace(rule, enabled=True)


def _live(
    book: AlertBook, subject: Subject, now: Facts, moment: Moment, visible: Mapping[str, FactSpec]
) -> list[AlertChanged]:
    at = START + moment.at
    if moment.gone:
        return book.evaluate({}, [subject], at)
    for name, written in moment.set.items():
        value, _ = _value(visible[name], written)
        assert value is not None, "checked while reading"
        now[name] = value
    for name, reason in moment.unknown.items():
        now[name] = Unknown(reason)
    return book.evaluate({subject: dict(now)}, (), at)


def _subject(kind: SubjectKind, labels: Mapping[str, str]) -> Subject:
    """A subject named by its labels, as the inventory names it."""
    if kind is SubjectKind.COMPONENT:
        name = f"{labels.get('workload') or 'workload'}/{labels.get('component') or 'component'}"
    elif kind is SubjectKind.POOL:
        name = labels.get("product") or "product"
    elif kind is SubjectKind.GPU:
        name = labels.get("gpu_uuid") or "gpu"
    else:
        name = labels.get(kind.value) or kind.value
    return Subject(kind, labels.get("namespace", ""), name)


def _differences(rule: Rule, alert: Alert | None, expected: Expectation, told: list[AlertChanged]) -> Iterable[str]:
    state = alert.state if alert else AlertState.INACTIVE
    if state is not expected.state:
        yield f"expected {expected.state}, is {state}"
    if expected.notify is not None and (news := _news(told)) is not expected.notify:
        yield f"expected to hear {expected.notify}, heard {news}"
    if expected.unknown is not None:
        blind = sorted(text.split(":", 1)[0] for text in alert.missing) if alert else []
        if blind != sorted(expected.unknown):
            yield f"expected to be blind for {expected.unknown}, is for {blind}"
    if expected.severity is not None:
        severity = severity_of(rule, alert.labels, alert.values) if alert else None
        if severity is not expected.severity:
            yield f"expected {expected.severity}, is {severity}"
    if expected.summary is not None:
        summary = render(rule.annotations["summary"], alert.labels, alert.values) if alert else None
        if summary != expected.summary:
            yield f"expected the summary {expected.summary!r}, is {summary!r}"


def _news(told: list[AlertChanged]) -> News:
    news = News.NOTHING
    for change in told:
        if change.was is not change.alert.state:
            if change.alert.state is AlertState.FIRING:
                news = News.FIRES
            elif change.was is AlertState.FIRING:
                news = News.RESOLVES
    return news


def _lacking(rule: Rule, written: TestFile, results: list[TestResult], document: Document) -> list[Problem]:
    """What a stable rule's tests do not show."""
    missing = []
    if not any(_has_exact(t, News.FIRES, AlertState.FIRING, rule.hold) for t in written.tests):
        missing.append("one that fires: `notify: fires` at the exact second, and a second earlier not firing")
    if not any(_has_exact(t, News.RESOLVES, AlertState.INACTIVE, rule.keep_firing) for t in written.tests):
        missing.append("one that resolves: `notify: resolves` at the exact second, and a second earlier still firing")
    if all(result.fired for result in results):
        missing.append("one that stays quiet: nothing in it fires")
    line = document.line(("tests",))
    return [Problem(document.path, line, "test-incomplete", f"a stable rule needs {what}") for what in missing]


def _has_exact(test: Timeline, news: News, state: AlertState, waits: timedelta) -> bool:
    for expected in test.expect:
        if expected.notify is not news or expected.state is not state:
            continue
        before = [e for e in test.expect if e.at == expected.at - _SECOND]
        if news is News.FIRES and expected.at == timedelta(0) and not waits:
            return True
        if any((e.state is AlertState.FIRING) is (news is News.RESOLVES) for e in before):
            return True
    return False
