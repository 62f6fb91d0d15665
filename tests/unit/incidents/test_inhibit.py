"""A cause hides only what it explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.alerts.rule import Rule
from sevenhop.core.hops.report import HopState
from sevenhop.core.incidents.cause import cause_of, family_of
from sevenhop.core.incidents.inhibit import Party, explained_by
from sevenhop.core.incidents.reach import Reach, reach_of
from sevenhop.core.subject import Hop, Subject, SubjectKind
from tests.unit.incidents.scene import (
    BLIND,
    FAILS_HERE,
    FEWER,
    H100,
    IMAGE,
    LIMITED,
    LOAD_FAILS,
    NO_ENDPOINTS,
    NOON,
    OVERDUE,
    RESTARTS,
    SHORT,
    alert,
    at,
    component,
    context,
    node,
    pool,
    service,
)

Broken = Mapping[Hop, Sequence[str]]


def party(
    rule: Rule,
    subject: Subject,
    broken: Broken | None = None,
    *,
    since: float = 0,
    home: str = "",
    places: Mapping[str, str] | None = None,
    unseen: bool = False,
) -> Party:
    seen = None if unseen else context(subject, broken, places=places)
    return Party(
        fingerprint=f"{rule.id}/{subject}",
        subject=subject,
        hop=rule.hop,
        since=at(since),
        home=home or f"{rule.id}/{subject}",
        reach=reach_of(subject, rule.hop, seen),
    )


PENDING: Broken = {Hop.SCHEDULING: ["d-1", "d-2"], Hop.SERVICE: ["d-1", "d-2"]}
LOADING: Broken = {Hop.MODEL: ["d-1"]}


@pytest.mark.parametrize(
    ("cause", "symptom", "expected"),
    [
        pytest.param(
            party(SHORT, component(), PENDING),
            party(NO_ENDPOINTS, service(), PENDING, since=5),
            True,
            id="waiting pods explain a Service without endpoints",
        ),
        pytest.param(
            party(SHORT, component(), PENDING),
            party(NO_ENDPOINTS, service(), PENDING, since=-1),
            False,
            id="not if the Service was empty before",
        ),
        pytest.param(
            party(SHORT, component(), {Hop.SCHEDULING: ["d-1"]}),
            party(NO_ENDPOINTS, service(), {Hop.SERVICE: ["d-1", "d-3"]}, since=5),
            False,
            id="not if one pod of the symptom is not covered",
        ),
        pytest.param(
            party(SHORT, component(), PENDING),
            party(NO_ENDPOINTS, service(namespace="dev"), PENDING, since=5),
            False,
            id="pods of the same name in another namespace are other pods",
        ),
        pytest.param(
            party(NO_ENDPOINTS, service(), PENDING),
            party(SHORT, component(), PENDING, since=5),
            False,
            id="a later hop never explains an earlier one",
        ),
        pytest.param(
            party(LOAD_FAILS, component(), LOADING),
            party(RESTARTS, component(), LOADING, since=5),
            True,
            id="a model that does not load explains the restarts",
        ),
        pytest.param(
            party(IMAGE, component(), {Hop.POD: ["d-9"]}),
            party(LOAD_FAILS, component(), LOADING, since=5),
            False,
            id="another pod of the same component explains nothing",
        ),
        pytest.param(
            party(FAILS_HERE, node(), places={"d-1": "gpu-05"}),
            party(LOAD_FAILS, component(), LOADING, since=5, places={"d-1": "gpu-05"}),
            True,
            id="a bad node explains what fails on it",
        ),
        pytest.param(
            party(FAILS_HERE, node(), places={"d-1": "gpu-05"}),
            party(LOAD_FAILS, component(), LOADING, since=5, places={"d-1": "gpu-06"}),
            False,
            id="and not a pod of that name on another node",
        ),
        pytest.param(
            party(FEWER, node(), places={"d-1": "gpu-05"}),
            party(IMAGE, component(), {Hop.POD: ["d-1"]}, since=5, places={"d-1": "gpu-05"}),
            False,
            id="a pod that got its GPUs fails of something else than missing GPUs",
        ),
        pytest.param(
            party(FEWER, node(), places={"d-1": "gpu-05"}),
            party(SHORT, component(), {Hop.DISCOVERY: ["d-1"]}, since=5, places={"d-1": "gpu-05"}),
            True,
            id="unless its own report says that it broke there",
        ),
        pytest.param(
            party(LIMITED, pool()), party(NO_ENDPOINTS, service(), PENDING, since=5), False, id="a pool covers no pods"
        ),
        pytest.param(
            party(SHORT, component()),
            party(NO_ENDPOINTS, service(), {}, since=5),
            False,
            id="what has no broken pods is explained by nothing",
        ),
        pytest.param(
            party(BLIND, Subject(SubjectKind.SOURCE, "", "Pod")),
            party(NO_ENDPOINTS, service(), PENDING, since=5),
            False,
            id="our own blindness explains nothing",
        ),
        pytest.param(
            party(SHORT, component(), PENDING, home="h"),
            party(NO_ENDPOINTS, service(), PENDING, since=5, home="h"),
            False,
            id="what is at home in one incident is a cause there",
        ),
    ],
)
def test_explains(cause: Party, symptom: Party, expected: bool) -> None:
    """It covers every broken pod of the symptom, and began no later."""
    found = explained_by(symptom, [cause])

    assert found.by == ((cause.fingerprint,) if expected else ())
    assert found.is_certain


def test_causes_of_one_incident_cover_together() -> None:
    """Prefill and decode wait for the same pool: together they explain the Service."""
    symptom = party(NO_ENDPOINTS, service(), {Hop.SERVICE: ["p-1", "d-1"]}, since=5)
    decode = party(SHORT, component("m/decode"), {Hop.SCHEDULING: ["d-1"]}, home="pool")
    prefill = party(SHORT, component("m/prefill"), {Hop.SCHEDULING: ["p-1"]}, home="pool")

    assert explained_by(symptom, [decode]).by == ()
    assert explained_by(symptom, [prefill, decode]).by == (decode.fingerprint, prefill.fingerprint)


def test_causes_of_two_incidents_do_not() -> None:
    """Half explained by each of two troubles is explained by neither."""
    symptom = party(NO_ENDPOINTS, service(), {Hop.SERVICE: ["p-1", "d-1"]}, since=5)
    decode = party(SHORT, component("m/decode"), {Hop.SCHEDULING: ["d-1"]}, home="one")
    prefill = party(SHORT, component("m/prefill"), {Hop.SCHEDULING: ["p-1"]}, home="two")

    assert explained_by(symptom, [prefill, decode]).by == ()


@pytest.mark.parametrize("which", ["cause", "symptom"])
def test_blindness_leaves_an_explanation_as_it_was(which: str) -> None:
    """What cannot be seen neither gains nor loses one."""
    cause = party(SHORT, component(), PENDING, unseen=which == "cause")
    symptom = party(NO_ENDPOINTS, service(), PENDING, since=5, unseen=which == "symptom")

    found = explained_by(symptom, [cause])

    assert found.by == ()
    assert not found.is_certain


def test_unknown_hops_are_unseen() -> None:
    """A report whose pods cannot be seen is no report of well pods."""
    blind = context(component(), {}, unknown=dict.fromkeys([Hop.SCHEDULING, Hop.POD, Hop.MODEL], "stale"))
    assert blind.report is not None
    assert blind.report.line(Hop.POD).state is HopState.UNKNOWN

    assert reach_of(component(), Hop.SCHEDULING, blind) is None
    assert reach_of(component(), Hop.SCHEDULING, None) is None


@pytest.mark.parametrize(
    ("rule", "subject", "expected"),
    [
        pytest.param(SHORT, component(), pool(), id="a shortage is about the pool"),
        pytest.param(LIMITED, pool(), pool(), id="so is a pool that does not grow"),
        pytest.param(LOAD_FAILS, component(), component(), id="a load failure about its component"),
        pytest.param(OVERDUE, Subject(SubjectKind.POD, "prod", "d-1"), component(), id="a pod's trouble too"),
        pytest.param(FEWER, node(), node(), id="a node about itself"),
    ],
)
def test_cause_object(rule: Rule, subject: Subject, expected: Subject) -> None:
    """The object is found by the rule's word and the alert's labels."""
    firing = alert(rule, subject)
    if subject.kind is SubjectKind.POD:
        firing = alert(rule, subject, workload="llama-70b", component="decode")
    assert cause_of(rule, firing) == expected


def test_where_labels_do_not_say_the_subject_is_the_cause() -> None:
    """A component in no known pool is its own incident; nothing is grouped under an empty name."""
    assert cause_of(SHORT, alert(SHORT, component(), product="")) == component()


def test_a_shortage_and_its_pool_are_one_family() -> None:
    """Else one shortage would be two incidents."""
    assert family_of(SHORT) == family_of(LIMITED) == "scheduling"
    assert family_of(BLIND) == "self"
    assert H100 in str(cause_of(SHORT, alert(SHORT, component())))


PODS = [f"p-{n}" for n in range(4)]
_pods = st.frozensets(st.sampled_from(PODS), max_size=4)


@st.composite
def parties(draw: st.DrawFn) -> Party:
    rule, subject = draw(
        st.sampled_from(
            [
                (SHORT, component("a/x")),
                (LOAD_FAILS, component("a/x")),
                (RESTARTS, component("a/x")),
                (IMAGE, component("a/y")),
                (NO_ENDPOINTS, service("a")),
                (FAILS_HERE, node("n-1")),
                (LIMITED, pool()),
            ]
        )
    )
    keys = frozenset(("prod", pod) for pod in draw(_pods))
    own = frozenset(("prod", pod) for pod in draw(_pods))
    reach = draw(
        st.one_of(
            st.none(),
            st.just(Reach(needs=keys, covers=own, has_own=bool(own), nodes={k: f"n-{k[1][-1]}" for k in keys | own})),
        )
    )
    return Party(
        fingerprint=f"f-{draw(st.integers(0, 50))}",
        subject=subject,
        hop=rule.hop,
        since=NOON + timedelta(seconds=draw(st.integers(0, 3))),
        home=f"h-{draw(st.integers(0, 3))}",
        reach=reach,
    )


@given(symptom=parties(), others=st.lists(parties(), max_size=5, unique_by=lambda p: p.fingerprint))
def test_nothing_is_hidden_that_is_not_covered(symptom: Party, others: list[Party]) -> None:
    """Whatever is said to explain covers every broken pod, began no later, and is of one other incident."""
    by = {party.fingerprint: party for party in others}
    found = explained_by(symptom, others)

    explaining = [by[fingerprint] for fingerprint in found.by]
    if explaining:
        assert symptom.reach is not None
        covered = frozenset().union(*(p.reach.covers for p in explaining if p.reach is not None))
        assert symptom.reach.needs
        assert symptom.reach.needs <= covered
        assert all(p.since <= symptom.since for p in explaining)
        assert {p.home for p in explaining} != {symptom.home}
        assert len({p.home for p in explaining}) == 1
