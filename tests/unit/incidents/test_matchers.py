"""Matchers, routes and silences mean what they mean in Alertmanager."""

from __future__ import annotations

import pytest

from sevenhop.core.events import Silenced
from sevenhop.core.incidents.matchers import Matcher, Op, all_match, parse_matcher, parse_matchers, says_something
from sevenhop.core.incidents.routing import Route, receivers_of
from sevenhop.core.incidents.silences import silence_of, silencing
from tests.unit.incidents.scene import NOON, at

PROD = {"namespace": "prod", "tier": "critical"}


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        pytest.param("namespace=prod", PROD, True, id="equal"),
        pytest.param('namespace="prod"', PROD, True, id="equal, quoted"),
        pytest.param("namespace = pro", PROD, False, id="equal is not a prefix"),
        pytest.param("namespace!=prod", PROD, False, id="not equal"),
        pytest.param("node!=gpu-01", PROD, True, id="a missing label is empty, so it differs"),
        pytest.param('node=""', PROD, True, id="a missing label equals the empty string"),
        pytest.param("namespace=~pr.*", PROD, True, id="regex"),
        pytest.param("namespace=~pr", PROD, False, id="a regex matches the whole value"),
        pytest.param("namespace=~dev|prod", PROD, True, id="alternatives are anchored as a whole"),
        pytest.param("namespace!~dev|prod", PROD, False, id="not regex"),
        pytest.param("node=~.*", PROD, True, id="a regex that takes the empty string takes a missing label"),
        pytest.param("node=~.+", PROD, False, id="one that does not, does not"),
        pytest.param('owner="a=b, \\"c\\""', {"owner": 'a=b, "c"'}, True, id="quotes hold commas and signs"),
    ],
)
def test_matcher(text: str, labels: dict[str, str], expected: bool) -> None:
    """Each operator compares as Alertmanager does."""
    assert parse_matcher(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param("namspace=prod", "did you mean namespace", id="a misspelt label never matches silently"),
        pytest.param("namespace", "expected a matcher", id="no operator"),
        pytest.param("namespace=~(", "not a regular expression", id="broken regex"),
        pytest.param('namespace="a', "expected a matcher", id="open quote"),
    ],
)
def test_matcher_that_cannot_be_read(text: str, part: str) -> None:
    """What is wrong is named, with a way out."""
    with pytest.raises(ValueError, match=part):
        parse_matcher(text)


def test_several_matchers_in_one_text() -> None:
    """Commas outside of quotes separate; the text of a matcher reads as the same matcher."""
    found = parse_matchers(['{tier="critical", namespace=~"a|b,c"}', "node!=x"])

    assert [str(m) for m in found] == ['tier="critical"', 'namespace=~"a|b,c"', 'node!="x"']
    assert parse_matchers([str(m) for m in found]) == found


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], False),
        (["node=~.*"], False),
        (["node!=x"], False),
        (["namespace=prod"], True),
        (["node=~.*", "namespace=~.+"], True),
    ],
)
def test_a_silence_of_everything_is_refused(texts: list[str], expected: bool) -> None:
    """Matchers that would take a subject without labels say nothing."""
    assert says_something(parse_matchers(texts)) is expected
    event = Silenced(
        at=NOON, silence_id="s", matchers={}, author="kim", comment="", expires_at=at(60), where=tuple(texts)
    )
    if expected:
        assert silence_of(event).matchers == parse_matchers(texts)
    else:
        with pytest.raises(ValueError, match="needs a matcher"):
            silence_of(event)


def test_a_silence_ends_on_the_dot() -> None:
    """It holds from its start to just before its end, and the one that lasts longest is named."""
    short = silence_of(
        Silenced(at=NOON, silence_id="a", matchers={"tier": "critical"}, author="k", comment="", expires_at=at(60))
    )
    long = silence_of(
        Silenced(
            at=NOON, silence_id="b", matchers={}, author="k", comment="", expires_at=at(90), where=("namespace=~p.*",)
        )
    )

    assert silencing([short, long], PROD, at(59)) is long
    assert silencing([short], PROD, at(59)) is short
    assert silencing([short], PROD, at(60)) is None
    assert silencing([short, long], {"namespace": "dev"}, at(1)) is None


def _on(receiver: str, *matchers: str, go_on: bool = False, routes: tuple[Route, ...] = ()) -> Route:
    return Route(matchers=parse_matchers(matchers), receiver=receiver, go_on=go_on, routes=routes)


TREE = _on(
    "default",
    routes=(
        _on("pager", "tier=critical", go_on=True),
        _on("team-a", "namespace=a", routes=(_on("", "node=gpu-1"), _on("a-night", "node=gpu-2"))),
        _on("team-ab", "namespace=~a|b"),
    ),
)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ("default",), id="nothing matches: the root takes it"),
        pytest.param({"namespace": "a"}, ("team-a",), id="the first that matches takes it"),
        pytest.param({"namespace": "b"}, ("team-ab",), id="a later one, where the first does not match"),
        pytest.param({"namespace": "a", "tier": "critical"}, ("pager", "team-a"), id="continue goes on"),
        pytest.param({"tier": "critical"}, ("pager",), id="continue without another match does not add the root"),
        pytest.param({"namespace": "a", "node": "gpu-1"}, ("team-a",), id="a child without receiver inherits"),
        pytest.param({"namespace": "a", "node": "gpu-2"}, ("a-night",), id="the deepest match takes it"),
    ],
)
def test_routing_tree(labels: dict[str, str], expected: tuple[str, ...]) -> None:
    """Depth first, first match, unless it says continue."""
    assert receivers_of(TREE, labels, ("everyone",)) == expected


def test_without_a_receiver_everyone_is_told() -> None:
    """A tree that names nobody tells all receivers."""
    assert receivers_of(Route(), PROD, ("console", "slack")) == ("console", "slack")


def test_all_of_a_list_must_match() -> None:
    """One matcher that does not hold is enough."""
    matchers = (Matcher("namespace", Op.EQUAL, "prod"), Matcher("tier", Op.EQUAL, "batch"))
    assert not all_match(matchers, PROD)
    assert all_match(matchers[:1], PROD)
