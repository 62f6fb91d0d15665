"""
CEL as rules use it: typed names, reads known beforehand, unknown kept apart from false and from broken.

A thin wrapper around cel-expr-python, so that another implementation can stand in.  What was found by trying (0.1.3):

- A variable that is left out of the activation is an error value, and ``&&``, ``||``, ``!``, ``?:`` treat errors as
  strong Kleene logic treats unknown.  The error's text is never read.
- A checked expression's reference map names what it reads.  `has(a.b)` of a declared ``a.b`` is *checked into the plain
  variable*, so `has` has to be found before the check.
- Comparing int with double is refused when types are declared; an int is accepted as the value of a double.
- Lists must be `list`; a date is a `datetime` with a time zone.
- An activation copies what it is given: 2 µs for three names, 18 µs for eighty.  Hence exactly the names read, and an
  expression remembers its answer for the values it has seen: most subjects look alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from cel_expr_python import cel

from sevenhop.core.alerts.rule import Evaluation, Verdict
from sevenhop.core.facts.schema import LABELS, Facts, FactSpec, FactType, FactValue, Unknown, UnknownReason
from sevenhop.core.subject import SubjectKind
from sevenhop.rulebook.lint import Finding, lint, ways_to_be_true
from sevenhop.rulebook.names import KNOWN, visible_facts
from sevenhop.rulebook.tree import parsed_tree, references

_TYPES: dict[FactType, cel.Type] = {
    FactType.BOOL: cel.Type.BOOL,
    FactType.INT: cel.Type.INT,
    FactType.DOUBLE: cel.Type.DOUBLE,
    FactType.STRING: cel.Type.STRING,
    FactType.INT_LIST: cel.Type.List(cel.Type.INT),
    FactType.TIME: cel.Type.TIMESTAMP,
}
_TRUE = Evaluation(Verdict.TRUE)
_FALSE = Evaluation(Verdict.FALSE)
_ABSENT = Unknown(UnknownReason.NO_SOURCE, "nothing publishes it")
_REMEMBERED = 1024
_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


class ExpressionError(ValueError):
    """An expression that cannot be a rule's; `findings` says why, all at once."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(f.message for f in findings))
        self.findings = findings


class Compiled:
    """
    One checked expression.

    Attributes:
        reads: Facts and labels that decide it; a fact behind `known.` too.
        needs: Smallest sets of facts of which one must be observable for it ever to be true.
    """

    __slots__ = ("_answers", "_facts", "_known", "_labels", "_names", "_program", "_specs", "expr", "needs", "reads")

    def __init__(
        self,
        expr: str,
        program: cel.Expression,
        specs: Mapping[str, FactSpec],
        names: Iterable[str],
        needs: tuple[frozenset[str], ...],
    ) -> None:
        names = sorted(names)
        self.expr = expr
        self.needs = needs
        self._program = program
        self._facts = tuple(n for n in names if n in specs)
        self._known = tuple(n.removeprefix(KNOWN) for n in names if n.startswith(KNOWN))
        self._labels = tuple(n for n in names if n in LABELS)
        self._specs = {n: specs[n] for n in (*self._facts, *self._known)}
        self._names = (*self._facts, *self._known, *self._labels)
        self.reads = frozenset(self._names)
        self._answers: dict[tuple[object, ...], Evaluation] = {}

    def evaluate(self, facts: Facts) -> Evaluation:
        """
        What the expression says of these facts.  Total: never raises.

        A fact that is `Unknown` or absent is left out; an error is then UNKNOWN with what is missing, and BROKEN
        where nothing is.
        """
        values = tuple([facts.get(name) for name in self._names])
        try:
            answer = self._answers.get(values)
        except TypeError:  # a list of ints cannot be a key
            return self._ask(facts)
        if answer is None:
            answer = self._ask(facts)
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            self._answers[values] = answer
        return answer

    def _ask(self, facts: Facts) -> Evaluation:
        given: dict[str, Any] = {}
        missing: list[tuple[str, Unknown]] = []
        for name in self._facts:
            value = facts.get(name, _ABSENT)
            if isinstance(value, Unknown):
                missing.append((name, value))
            elif (fitting := _fit(value, self._specs[name].type)) is None:
                return Evaluation(Verdict.BROKEN, error=_wrong_type(name, value, self._specs[name]))
            else:
                given[name] = fitting
        for name in self._known:
            given[KNOWN + name] = not isinstance(facts.get(name, _ABSENT), Unknown)
        for name in self._labels:
            given[name] = facts.get(name, "")
        try:
            value = self._program.eval(data=given).value()
        except (RuntimeError, TypeError, ValueError, OverflowError) as problem:
            return Evaluation(Verdict.BROKEN, error=f"{type(problem).__name__}: {problem}")
        if value is True:
            return _TRUE
        if value is False:
            return _FALSE
        if missing:
            return Evaluation(Verdict.UNKNOWN, missing=tuple(missing))
        return Evaluation(Verdict.BROKEN, error=str(value))


class Expressions:
    """
    Compiles expressions over one table of facts, with one typed environment per subject.

    >>> from sevenhop.core.facts.schema import FactSpec
    >>> ready = FactSpec(name="node.ready", subject=SubjectKind.NODE, type=FactType.BOOL, doc="")
    >>> rule = Expressions({"node.ready": ready}).compile("!node.ready", SubjectKind.NODE)
    >>> rule.evaluate({"node.ready": False}).verdict.value, rule.evaluate({}).verdict.value
    ('true', 'unknown')
    """

    def __init__(self, facts: Mapping[str, FactSpec]) -> None:
        self.facts = facts
        self._environments: dict[SubjectKind, cel.Env] = {}

    def compile(self, expr: str, subject: SubjectKind) -> Compiled:
        """
        Check an expression and find out what it reads.

        Raises:
            ExpressionError: With every finding: unknown names, forbidden forms, wrong types, not a Boolean.
        """
        environment = self._environment(subject)
        try:
            tree = parsed_tree(environment.compile(expr, disable_check=True).serialize())
        except RuntimeError as problem:
            raise ExpressionError(_from_compiler(str(problem), "expr-syntax")) from None
        findings = lint(tree, expr, self.facts, subject)
        try:
            program = environment.compile(expr)
        except RuntimeError as problem:
            if not findings:
                findings = _from_compiler(str(problem), "expr-wrong-type")
            raise ExpressionError(findings) from None
        if program.return_type() != cel.Type.BOOL:
            text = f"expected a condition (bool), got {program.return_type().name().lower()}"
            findings.append(Finding(1, 1, "expr-not-bool", text))
        if findings:
            raise ExpressionError(findings)
        specs = visible_facts(self.facts, subject)
        declared = {*specs, *LABELS, *(KNOWN + name for name in specs)}
        names = references(program.serialize()) & declared
        return Compiled(expr, program, specs, names, ways_to_be_true(tree, specs))

    def _environment(self, subject: SubjectKind) -> cel.Env:
        if subject not in self._environments:
            variables = dict.fromkeys(LABELS, cel.Type.STRING)
            for name, spec in visible_facts(self.facts, subject).items():
                variables[name] = _TYPES[spec.type]
                variables[KNOWN + name] = cel.Type.BOOL
            self._environments[subject] = cel.NewEnv(variables=variables)
        return self._environments[subject]


def _fit(value: object, wanted: FactType) -> FactValue | None:
    """
    The value as its fact's type, None if it is of another.

    Numbers that are equal fit alike, for Python cannot tell them apart as keys: the answer must not depend on which
    of 1, 1.0 and True was seen first.
    """
    if isinstance(value, (bool, int, float)):
        if wanted is FactType.BOOL:
            return bool(value) if value in (0, 1) else None
        if wanted is FactType.DOUBLE:
            return float(value)
        return int(value) if wanted is FactType.INT and value == value // 1 else None
    fits = {FactType.STRING: str, FactType.INT_LIST: list, FactType.TIME: datetime}
    return value if wanted in fits and isinstance(value, fits[wanted]) else None  # type: ignore[return-value]


def _wrong_type(name: str, value: object, spec: FactSpec) -> str:
    return f"{name} should be {spec.type}, is {type(value).__name__}"


def _from_compiler(text: str, code: str) -> list[Finding]:
    """CEL's messages at load, one finding each, said for people who do not know CEL's overloads."""
    findings = []
    for line, column, message in _ERROR.findall(text):
        if "*error*" in message:  # follows from another error
            continue
        kind, said = code, message.removesuffix(" [INVALID_ARGUMENT]")
        overload = re.search(r"no matching overload for '(\S+)' applied to '\((.*)\)'", said)
        if overload:
            kind, said = _overload(overload[1], overload[2])
        elif said.startswith("undeclared reference to '"):
            kind, said = "expr-unknown-function", f"there is no function {said.split(chr(39))[1]}"
        elif said.startswith("Syntax error: "):
            said = said.removeprefix("Syntax error: ").split(" expecting {")[0]
        findings.append(Finding(int(line), int(column), kind, said))
    return findings or [Finding(1, 1, code, text.splitlines()[0] if text else "cannot be compiled")]


def _overload(operator: str, types: str) -> tuple[str, str]:
    name = operator.replace("_", "").replace("@", "") or operator
    if set(types.split(", ")) == {"int", "double"}:
        return "expr-mixed-numbers", f"{name} compares int with double; write 1.0 for 1, or double(x)"
    return "expr-wrong-type", f"{name} does not take ({types})"
