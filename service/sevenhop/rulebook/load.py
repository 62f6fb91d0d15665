"""Files to compiled rules: every problem at once, and an old rulebook that survives a bad edit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError

from sevenhop.core.alerts.render import counted_names, is_well_formed, template_names
from sevenhop.core.alerts.rule import Rule, SeverityPolicy
from sevenhop.core.alerts.severity import SEVERITY_FACTS
from sevenhop.core.facts.schema import LABELS, FactSpec, FactType
from sevenhop.core.subject import Hop, SubjectKind
from sevenhop.rulebook.cel import Compiled, ExpressionError, Expressions
from sevenhop.rulebook.names import all_names, visible_facts, where_else
from sevenhop.rulebook.problem import Problem, did_you_mean
from sevenhop.rulebook.schema import RuleFile, format_duration
from sevenhop.rulebook.yaml_nodes import Document, read_document

SELF = "self"
"""The folder of rules about ourselves, which have no hop."""
DEFAULT_DROPS = ("node.maintenance", "component.intended_zero")
TEST_SUFFIX = ".test.yaml"


@dataclass(frozen=True, slots=True)
class Rulebook:
    """
    Attributes:
        rules: By id, in order; those that have no problem.
        problems: In the order of files and lines.
    """

    rules: tuple[Rule, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def digest(self) -> str:
        """Names exactly these rules, texts included."""
        parts = [f"{r.id}\0{r.digest}\0{r.enabled}\0{r.severity}\0{sorted(r.annotations.items())}" for r in self.rules]
        return sha256("\0\0".join(parts).encode()).hexdigest()[:16]

    def rule(self, rule_id: str) -> Rule | None:
        return next((r for r in self.rules if r.id == rule_id), None)


def load_rulebook(
    paths: Iterable[Path], facts: Mapping[str, FactSpec], playbooks: Collection[str] | None = None
) -> Rulebook:
    """
    Load rules from folders (searched through) and files.

    Never raises for what is in the files, or for files that are not there: that is in `problems`.

    Args:
        playbooks: Names that a rule's `playbook:` may have; None where they are not known, and not checked.
    """
    texts, problems = read_files(rule_files(paths))
    for path in paths:
        if path.is_dir() and not any(rule_files([path])):
            problems.append(Problem(str(path), 0, "rule-none", "no rules here; expected HOP/ID.yaml"))
    return _with_problems(load_texts(texts, facts, playbooks), problems)


def reload_rulebook(
    current: Rulebook,
    paths: Iterable[Path],
    facts: Mapping[str, FactSpec],
    playbooks: Collection[str] | None = None,
) -> Rulebook:
    """The new rulebook, or, with any problem, the rules of the current one and the problems of the new."""
    new = load_rulebook(list(paths), facts, playbooks)
    return Rulebook(current.rules, new.problems) if new.problems else new


def load_texts(
    texts: Mapping[str, str], facts: Mapping[str, FactSpec], playbooks: Collection[str] | None = None
) -> Rulebook:
    """Load rules from path → content; reads no files."""
    expressions = Expressions(facts)
    rules: dict[str, Rule] = {}
    problems: list[Problem] = []
    for path, text in sorted(texts.items()):
        rule, found = load_rule(path, text, expressions, playbooks)
        problems += found
        if rule is None:
            continue
        if rule.id in rules:
            problems.append(Problem(path, 1, "rule-duplicate-id", f"{rule.id} is also in {rules[rule.id].path}"))
        else:
            rules[rule.id] = rule
    return Rulebook(tuple(rules[i] for i in sorted(rules)), tuple(sorted(problems)))


def load_rule(
    path: str, text: str, expressions: Expressions, playbooks: Collection[str] | None = None
) -> tuple[Rule | None, list[Problem]]:
    """One file: its rule, or None, and every problem in it."""
    document = read_document(path, text)
    problems = list(document.problems)
    if document.data is None:
        return None, problems
    try:
        written = RuleFile.model_validate(document.data)
    except ValidationError as error:
        problems += schema_problems(document, error, RuleFile.model_fields, "rule")
        problems += _parts_that_can_be_checked(document, expressions)
        return None, problems
    compiled, found = _check(document, written, expressions)
    problems += found + _playbook_problems(document, written, playbooks)
    if problems or compiled is None:
        return None, problems
    return _rule(path, written, compiled, _drops(written, expressions.facts)), []


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """
    Rule files below folders, and files as they are named; tests are not rules.

    Hidden folders are passed by: a mounted ConfigMap shows its files as links into one (``..2026_11_30_…``), and each
    rule would be there twice.
    """
    found: list[Path] = []
    for path in paths:
        below = sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")]) if path.is_dir() else [path]
        found += [p for p in below if not p.name.endswith(TEST_SUFFIX) and not is_hidden(p, path)]
    return list(dict.fromkeys(found))


def is_hidden(file: Path, folder: Path) -> bool:
    """Whether the file lies in, or is, something below the folder whose name begins with a dot."""
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def read_files(paths: Iterable[Path]) -> tuple[dict[str, str], list[Problem]]:
    """Path → content of those that can be read."""
    texts: dict[str, str] = {}
    problems = []
    for path in paths:
        try:
            texts[str(path)] = path.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            problems.append(Problem(str(path), 0, "file-not-utf8", f"byte {error.start} is not UTF-8"))
        except OSError as error:
            problems.append(Problem(str(path), 0, "file-unreadable", (error.strerror or str(error)).lower()))
    return texts, problems


def schema_problems(document: Document, error: ValidationError, known: Iterable[str], prefix: str) -> list[Problem]:
    """
    Pydantic's errors with lines and suggestions.

    Args:
        known: Keys that the top level may have, by Python name; an alias is shown as people write it.
        prefix: Of the codes: ``rule`` or ``test``.
    """
    keys = ["for" if key == "hold" else key for key in known]
    problems = []
    for detail in error.errors():
        where = tuple(part for part in detail["loc"] if part != "[key]")
        name = ".".join(str(part) for part in where)
        line = document.line(where)
        if detail["type"] == "extra_forbidden":
            hint = did_you_mean(str(where[-1]), keys)
            problems.append(Problem(document.path, line, f"{prefix}-unknown-key", f"{name} is not used here{hint}"))
        elif detail["type"] == "missing":
            problems.append(Problem(document.path, line, f"{prefix}-missing-key", f"{name} is required"))
        else:
            code = f"{prefix}-wrong-type" if detail["type"].endswith(("_type", "_parsing")) else f"{prefix}-bad-value"
            said = detail["msg"].removeprefix("Value error, ")
            if ", got " not in said and isinstance(detail["input"], (str, int, float, bool)):
                said += f", got {detail['input']!r}"
            problems.append(Problem(document.path, line, code, f"{name}: {said}" if name else said))
    return problems


def _with_problems(book: Rulebook, problems: Iterable[Problem]) -> Rulebook:
    return Rulebook(book.rules, tuple(sorted({*problems, *book.problems})))


def _parts_that_can_be_checked(document: Document, expressions: Expressions) -> list[Problem]:
    """A file with a misspelt key still learns what is wrong with its expression."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("expr"), str):
        return []
    if data.get("subject") not in list(SubjectKind):
        return []
    return _compile(document, data["expr"], SubjectKind(data["subject"]), expressions)[1]


def _check(document: Document, written: RuleFile, expressions: Expressions) -> tuple[Compiled | None, list[Problem]]:
    path, facts = document.path, expressions.facts
    problems = _place_problems(document, written)
    problems += _since_problems(document, written, facts)
    problems += _text_problems(document, written, facts)
    drops = _drops(written, facts)
    visible = visible_facts(facts, written.subject)
    for i, name in enumerate(written.drops or ()):
        if name not in visible or visible[name].type is not FactType.BOOL:
            flags = [n for n, spec in visible.items() if spec.type is FactType.BOOL]
            hint = where_else(name, facts, written.subject) or did_you_mean(name, flags).removeprefix("; ")
            text = f"{name} is not a Boolean fact of {written.subject}" + (f"; {hint}" if hint else "")
            problems.append(Problem(path, document.line(("drops", i)), "rule-unknown-fact", text))
    compiled, found = _compile(document, written.expr, written.subject, expressions)
    problems += found
    if compiled is not None and drops and not problems:
        compiled = expressions.compile(effective_expr(written.expr, drops), written.subject)
    return compiled, problems


def effective_expr(expr: str, drops: Iterable[str]) -> str:
    """
    The expression as it is evaluated.

    >>> effective_expr("node.ready", ["node.maintenance"])
    '(node.ready) && !node.maintenance'
    """
    expr = expr.strip()
    if "//" in expr:
        expr += "\n"  # the line may end in a comment
    return "".join([f"({expr})" if list(drops) else expr, *(f" && !{name}" for name in drops)])


def _drops(written: RuleFile, facts: Mapping[str, FactSpec]) -> tuple[str, ...]:
    if written.drops is not None:
        return tuple(written.drops)
    visible = visible_facts(facts, written.subject)
    return tuple(name for name in DEFAULT_DROPS if name in visible)


def _compile(
    document: Document, expr: str, subject: SubjectKind, expressions: Expressions
) -> tuple[Compiled | None, list[Problem]]:
    try:
        return expressions.compile(expr, subject), []
    except ExpressionError as error:
        first = document.text_lines.get(("expr",), document.line(("expr",)))
        return None, [Problem(document.path, first + f.line - 1, f.code, f.message) for f in error.findings]


def _place_problems(document: Document, written: RuleFile) -> list[Problem]:
    place = PurePath(document.path)
    problems = []
    if place.stem != written.id:
        text = f"{written.id} should equal the file's name, {place.stem}"
        problems.append(Problem(document.path, document.line(("id",)), "rule-id-not-file-name", text))
    hops = [*Hop, SELF]
    if place.parent.name not in hops:
        hint = did_you_mean(place.parent.name, hops)
        text = f"the folder names the hop: one of {', '.join(hops)}; got {place.parent.name or '.'}{hint}"
        problems.append(Problem(document.path, 1, "rule-folder-not-hop", text))
    return problems


def _since_problems(document: Document, written: RuleFile, facts: Mapping[str, FactSpec]) -> list[Problem]:
    if not written.since:
        return []
    visible = visible_facts(facts, written.subject)
    line = document.line(("since",))
    times = [name for name, spec in visible.items() if spec.type is FactType.TIME]
    if written.since not in visible:
        said = where_else(written.since, facts, written.subject) or f"{written.since} is no fact of {written.subject}"
        return [Problem(document.path, line, "rule-unknown-fact", said + did_you_mean(written.since, times))]
    if written.since not in times:
        text = f"since: expected a timestamp, {written.since} is of type {visible[written.since].type}"
        return [Problem(document.path, line, "rule-since-not-a-time", text)]
    return []


def _playbook_problems(document: Document, written: RuleFile, playbooks: Collection[str] | None) -> list[Problem]:
    name = written.playbook
    if name is None or playbooks is None or name in playbooks:
        return []
    hint = did_you_mean(name, playbooks) or f"; there are {', '.join(sorted(playbooks)) or 'none'}"
    line = document.line(("playbook",))
    return [Problem(document.path, line, "rule-unknown-playbook", f"there is no playbook {name}{hint}")]


def _text_problems(document: Document, written: RuleFile, facts: Mapping[str, FactSpec]) -> list[Problem]:
    names = all_names(facts, written.subject)
    problems = []
    if "summary" not in written.annotations:
        line = document.line(("annotations",))
        problems.append(Problem(document.path, line, "rule-missing-key", "annotations.summary is required"))
    for key, template in written.annotations.items():
        line = document.text_lines.get(("annotations", key), document.line(("annotations", key)))
        if not is_well_formed(template):
            problems.append(Problem(document.path, line, "rule-template", f"annotations.{key}: {{{{ without }}}}"))
        for name in template_names(template):
            if name not in names:
                text = f"annotations.{key}: {name!r} is neither a fact of {written.subject} nor a label"
                hint = did_you_mean(name, names)
                if "(" in name:
                    hint = "; a count is written count(fact, 'pod'), or count(fact, 'man', 'men')"
                problems.append(Problem(document.path, line, "rule-template", text + hint))
        for name in counted_names(template):
            if name in names and (name not in facts or facts[name].type is not FactType.INT):
                text = f"annotations.{key}: {name} is no whole number, so it cannot be counted"
                problems.append(Problem(document.path, line, "rule-template", text))
    return problems


def _rule(path: str, written: RuleFile, compiled: Compiled, drops: tuple[str, ...]) -> Rule:
    folder = PurePath(path).parent.name
    shown = {name for text in written.annotations.values() for name in template_names(text)} - set(LABELS)
    if written.severity is SeverityPolicy.BY_TIER and written.subject is SubjectKind.COMPONENT:
        shown |= SEVERITY_FACTS
    return Rule(
        id=written.id,
        status=written.status,
        hop=None if folder == SELF else Hop(folder),
        subject=written.subject,
        expr=written.expr,
        reads=compiled.reads,
        evaluate=compiled.evaluate,
        hold=written.hold,
        keep_firing=written.keep_firing_for,
        since=written.since,
        severity=written.severity,
        cause=written.cause or written.subject,
        annotations=dict(written.annotations),
        digest=_digest(written, compiled.expr),
        description=" ".join(written.description.split()),
        false_positives=tuple(written.false_positives),
        triage=written.triage,
        playbook=written.playbook or "",
        enabled=written.enabled,
        path=path,
        drops=drops,
        shows=frozenset(shown),
        needs=compiled.needs,
    )


def _digest(written: RuleFile, expr: str) -> str:
    parts: list[Any] = [written.subject, " ".join(expr.split()), written.since]
    parts += [format_duration(written.hold), format_duration(written.keep_firing_for)]
    return sha256("\0".join(str(part) for part in parts).encode()).hexdigest()[:16]
