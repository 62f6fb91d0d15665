"""CEL as rules use it: unknown is neither true nor false, and reads are known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.alerts.rule import Verdict
from sevenhop.core.facts.schema import Facts, FactSpec, FactType, FactValue, Unknown, UnknownReason
from sevenhop.core.subject import SubjectKind
from sevenhop.rulebook.cel import ExpressionError, Expressions

NODE = SubjectKind.NODE
STALE = Unknown(UnknownReason.STALE, "Node")

TYPES = {
    **dict.fromkeys(("node.a", "node.b", "node.c"), FactType.BOOL),
    **dict.fromkeys(("node.i", "node.j"), FactType.INT),
    **dict.fromkeys(("node.x", "node.y"), FactType.DOUBLE),
    **dict.fromkeys(("node.word", "node.other"), FactType.STRING),
    "node.list": FactType.INT_LIST,
    "node.since": FactType.TIME,
}
FACTS = {name: FactSpec(name=name, subject=NODE, type=kind, doc="") for name, kind in TYPES.items()}
FACTS["node.mode"] = FactSpec(name="node.mode", subject=NODE, type=FactType.STRING, doc="", values=("on", "off"))
FACTS["pool.free"] = FactSpec(name="pool.free", subject=SubjectKind.POOL, type=FactType.INT, doc="")
EXPRESSIONS = Expressions(FACTS)


def verdict(expr: str, facts: Facts) -> Verdict:
    return EXPRESSIONS.compile(expr, NODE).evaluate(facts).verdict


Kleene = bool | None


def k_not(a: Kleene) -> Kleene:
    return None if a is None else not a


def k_and(a: Kleene, b: Kleene) -> Kleene:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def k_or(a: Kleene, b: Kleene) -> Kleene:
    return k_not(k_and(k_not(a), k_not(b)))


def k_if(a: Kleene, b: Kleene, c: Kleene) -> Kleene:
    return None if a is None else (b if a else c)


SHAPES: dict[str, Callable[[Kleene, Kleene, Kleene], Kleene]] = {
    "node.a && node.b && node.c": lambda a, b, c: k_and(k_and(a, b), c),
    "node.a || node.b || node.c": lambda a, b, c: k_or(k_or(a, b), c),
    "node.a && (node.b || !node.c)": lambda a, b, c: k_and(a, k_or(b, k_not(c))),
    "(node.a || node.b) && (node.b || node.c)": lambda a, b, c: k_and(k_or(a, b), k_or(b, c)),
    "node.a ? node.b : node.c": k_if,
    "node.a == node.b || node.c": lambda a, b, c: k_or(None if a is None or b is None else a == b, c),
}
WORDS = {True: Verdict.TRUE, False: Verdict.FALSE, None: Verdict.UNKNOWN}


@pytest.mark.parametrize("expr", SHAPES)
@pytest.mark.parametrize("values", list(product((True, False, None), repeat=3)), ids=str)
def test_strong_kleene_logic(expr: str, values: tuple[Kleene, Kleene, Kleene]) -> None:
    """
    All 27 cases of three facts that are true, false or unknown.
    """
    facts: Facts = {}
    for name, value in zip("abc", values, strict=True):
        facts[f"node.{name}"] = STALE if value is None else value

    assert verdict(expr, facts) is WORDS[SHAPES[expr](*values)]


def conditions() -> st.SearchStrategy[str]:
    """Expressions over all types, with what may fail at run time among them."""
    atoms = st.sampled_from(
        [
            "true", "false", "node.a", "node.b", "node.c", "cluster == 'c'",
            "node.i > 2", "node.i + 1 == node.j", "node.j / node.i > 1", "double(node.i) > node.x",
            "node.x < node.y", "node.x / 2.0 > 0.5", "node.since < timestamp('2026-06-01T00:00:00Z')",
            "node.word == 'w'", "node.word.startsWith(node.other)", "node.word in ['w', node.other]",
            "int(node.word) > 1", "node.mode != 'on'", "node.word.matches('^w+$')",
            "node.list.exists(x, x > node.i)", "node.list.all(x, x < 3 || node.a)", "node.list[0] == node.i",
            "size(node.list) > node.i", "node.i in node.list", "node.list.exists_one(x, x == node.i)",
            "node.list.filter(x, x > node.i).size() > 0",
        ]
    )  # fmt: skip
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            inner.map(lambda a: f"!({a})"),
            st.tuples(inner, st.sampled_from(["&&", "||", "==", "!="]), inner).map(
                lambda t: f"({t[0]}) {t[1]} ({t[2]})"
            ),
            st.tuples(inner, inner, inner).map(lambda t: f"({t[0]}) ? ({t[1]}) : ({t[2]})"),
        ),
        max_leaves=6,
    )


VALUES: dict[str, st.SearchStrategy[FactValue]] = {
    **dict.fromkeys(("node.a", "node.b", "node.c"), st.booleans()),
    **dict.fromkeys(("node.i", "node.j"), st.integers(-1, 4)),
    **dict.fromkeys(("node.x", "node.y"), st.sampled_from([0.0, 0.5, 2.0])),
    **dict.fromkeys(("node.word", "node.other"), st.sampled_from(["", "w", "7"])),
    "node.mode": st.sampled_from(["on", "off"]),
    "node.list": st.lists(st.integers(-1, 4), max_size=3),
    "node.since": st.sampled_from([datetime(2026, m, 1, tzinfo=UTC) for m in (1, 12)]),
}


@settings(max_examples=150, deadline=None)
@given(conditions(), st.fixed_dictionaries(VALUES), st.data())
def test_unknown_is_monotone(expr: str, facts: Facts, data: st.DataObject) -> None:
    """
    Making known facts unknown may turn true or false into unknown, never into the other, and never breaks the rule.
    """
    compiled = EXPRESSIONS.compile(expr, NODE)
    before = compiled.evaluate(facts).verdict
    hidden = data.draw(st.sets(st.sampled_from(sorted(VALUES)), min_size=1))

    after = compiled.evaluate({**facts, **dict.fromkeys(hidden, STALE)})

    if before in (Verdict.TRUE, Verdict.FALSE):
        assert after.verdict in (before, Verdict.UNKNOWN)
    if after.verdict is Verdict.UNKNOWN:
        assert {name for name, _ in after.missing} == hidden & compiled.reads
    if not hidden & compiled.reads:
        assert after.verdict is before


@settings(max_examples=60, deadline=None)
@given(conditions(), st.lists(st.fixed_dictionaries(VALUES), min_size=2, max_size=5))
def test_what_was_asked_before_does_not_matter(expr: str, many: list[Facts]) -> None:
    """
    A remembered answer is the answer: one compiled expression, asked often, says what a fresh one says.
    """
    used = EXPRESSIONS.compile(expr, NODE)

    for facts in [*many, *many]:
        assert used.evaluate(facts) == EXPRESSIONS.compile(expr, NODE).evaluate(facts)


def test_remembered_answers_are_bounded() -> None:
    """
    A fact with ever new values does not fill the memory.
    """
    compiled = EXPRESSIONS.compile("node.i > 1", NODE)
    for i in range(3000):
        compiled.evaluate({"node.i": i})

    assert len(compiled._answers) <= 1024


@pytest.mark.parametrize(
    ("expr", "reads"),
    [
        pytest.param("node.a && node.i > 1", {"node.a", "node.i"}, id="facts"),
        pytest.param("node.a && cluster == 'x'", {"node.a", "cluster"}, id="label"),
        pytest.param("known.node.x && node.a", {"node.a", "node.x"}, id="a fact behind known"),
        pytest.param("node.list.exists(x, x > node.j)", {"node.list", "node.j"}, id="inside a macro, not its variable"),
        pytest.param("node.word == 'node.a'", {"node.word"}, id="a name in a string is no read"),
        pytest.param("// node.b\nnode.a", {"node.a"}, id="a name in a comment is no read"),
        pytest.param(".node.a", {"node.a"}, id="leading dot"),
        pytest.param("true", set(), id="nothing"),
    ],
)
def test_reads(expr: str, reads: set[str]) -> None:
    """
    The reads of an expression are exactly the facts and labels that it refers to.
    """
    assert EXPRESSIONS.compile(expr, NODE).reads == reads


@pytest.mark.parametrize(
    ("expr", "facts"),
    [
        pytest.param("1 / node.i > 1", {"node.i": 0}, id="division by zero"),
        pytest.param("node.list[3] == 1", {"node.list": [1]}, id="no such index"),
        pytest.param("int(node.word) == 1", {"node.word": "x"}, id="not a number"),
        pytest.param("node.i > 1", {"node.i": "seven"}, id="fact of the wrong type"),
        pytest.param("node.i > 1", {"node.i": 2**70}, id="number too large"),
        pytest.param("node.word == 'x'", {"node.word": "\ud800"}, id="text that is no text"),
    ],
)
def test_an_error_with_nothing_missing_breaks_the_rule(expr: str, facts: Facts) -> None:
    """
    Neither a match nor none, and not blindness: the rule itself is wrong, and says how.
    """
    found = EXPRESSIONS.compile(expr, NODE).evaluate(facts)

    assert found.verdict is Verdict.BROKEN
    assert found.error


def test_an_error_with_a_fact_missing_is_unknown() -> None:
    """
    What is missing is named with its reason, and the error's text is not looked at.
    """
    found = EXPRESSIONS.compile("node.i / 0 > 1 && node.a", NODE).evaluate({"node.i": 1, "node.a": STALE})

    assert found.verdict is Verdict.UNKNOWN
    assert found.missing == (("node.a", STALE),)


def test_a_fact_that_nobody_publishes_is_unknown() -> None:
    """
    Absent is unknown for want of a source, never false.
    """
    found = EXPRESSIONS.compile("!node.a", NODE).evaluate({})

    assert found.verdict is Verdict.UNKNOWN
    assert found.missing[0][1].reason is UnknownReason.NO_SOURCE


@pytest.mark.parametrize(("value", "expected"), [(True, Verdict.TRUE), (False, Verdict.TRUE), (STALE, Verdict.FALSE)])
def test_known_speaks_of_blindness(value: FactValue | Unknown, expected: Verdict) -> None:
    """
    `known.` of a fact is never unknown itself.
    """
    assert verdict("known.node.a", {"node.a": value}) is expected


def test_a_whole_number_is_a_ratio_too() -> None:
    """
    1 is accepted for a double, and equal numbers give equal answers in any order.
    """
    compiled = EXPRESSIONS.compile("node.x >= 1.0", NODE)

    assert [compiled.evaluate({"node.x": v}).verdict for v in (1, 1.0, True)] == [Verdict.TRUE] * 3


@pytest.mark.parametrize(
    ("expr", "code", "says"),
    [
        pytest.param("node.aa", "expr-unknown-fact", "did you mean node.a?", id="unknown fact"),
        pytest.param("known.node.lst", "expr-unknown-fact", "did you mean node.list?", id="unknown behind known"),
        pytest.param("node.word.nope == 'x'", "expr-unknown-fact", "node.word.nope", id="more than the fact"),
        pytest.param("node.zone == 'x'", "expr-unknown-fact", "node.zone", id="a label is no namespace"),
        pytest.param("clustr == 'x'", "expr-unknown-fact", "did you mean cluster?", id="unknown label"),
        pytest.param("pool.free > 1", "expr-fact-of-other-subject", "subject pool", id="fact of another subject"),
        pytest.param("has(node.a)", "expr-has", "known.node.a", id="has"),
        pytest.param("[node.a, node.b].exists(x, x)", "expr-macro-over-facts", "a || b", id="macro over facts"),
        pytest.param(
            "([node.a] + [node.b]).all(x, x)", "expr-macro-over-facts", "a || b", id="macro over joined lists"
        ),
        pytest.param("[1].map(y, [node.i]).exists(x, x == [1])", "expr-macro-over-facts", "a || b", id="nested"),
        pytest.param("node.list.exists(node, node > 1)", "expr-shadows", "call it x", id="variable hides a name"),
        pytest.param("node.i > 1.5", "expr-mixed-numbers", "double(x)", id="int and double"),
        pytest.param("node.x > 1", "expr-mixed-numbers", "1.0", id="double and int"),
        pytest.param("node.i > 'x'", "expr-wrong-type", "(int, string)", id="wrong type"),
        pytest.param("node.i + 1", "expr-not-bool", "got int", id="no condition"),
        pytest.param("dyn(node.a)", "expr-not-bool", "got dyn", id="anything"),
        pytest.param("node.a &&", "expr-syntax", "<EOF>", id="syntax"),
        pytest.param("(" * 80 + "node.a" + ")" * 80, "expr-syntax", "recursion", id="too deep"),
        pytest.param("lower(node.word) == 'x'", "expr-unknown-function", "lower", id="unknown function"),
        pytest.param("node.mode == 'onn'", "expr-unknown-value", "did you mean on?", id="value that never comes"),
        pytest.param("node.mode in ['on', 'of']", "expr-unknown-value", "did you mean off?", id="value in a list"),
    ],
)
def test_refused_at_load(expr: str, code: str, says: str) -> None:
    """
    What cannot be a rule's expression is refused with a code and a hint.
    """
    with pytest.raises(ExpressionError) as caught:
        EXPRESSIONS.compile(expr, NODE)

    assert [f.code for f in caught.value.findings if says in f.message] == [code]


def test_all_findings_at_once_with_their_places() -> None:
    """
    One look is enough to mend the whole expression.
    """
    with pytest.raises(ExpressionError) as caught:
        EXPRESSIONS.compile("node.aa &&\n  has(node.b) &&\n  node.mode == 'xx'", NODE)

    places = [(f.line, f.code) for f in caught.value.findings]
    assert places == [(1, "expr-unknown-fact"), (2, "expr-has"), (3, "expr-unknown-value")]


@pytest.mark.parametrize(
    ("expr", "needs"),
    [
        pytest.param("node.a && node.i > 1", [{"node.a", "node.i"}], id="both"),
        pytest.param("node.a || node.b", [{"node.a"}, {"node.b"}], id="either"),
        pytest.param("!(node.a && node.b)", [{"node.a"}, {"node.b"}], id="negated"),
        pytest.param("node.a ? node.b : node.c", [{"node.a", "node.b"}, {"node.a", "node.c"}], id="choice"),
        pytest.param("node.a || node.a && node.b", [{"node.a"}], id="the smallest only"),
        pytest.param("cluster == 'x'", [set()], id="labels are always there"),
    ],
)
def test_what_would_arm_a_rule(expr: str, needs: list[set[str]]) -> None:
    """
    The smallest sets of facts with which an expression can become true.
    """
    assert [set(way) for way in EXPRESSIONS.compile(expr, NODE).needs] == needs
