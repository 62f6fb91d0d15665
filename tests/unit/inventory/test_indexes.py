"""Small indexes: Services by pod labels, Events by object, appointments by time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.inventory.evidence import Evidence
from sevenhop.core.inventory.services import ServiceIndex
from sevenhop.core.inventory.wakes import Wakes
from tests.builders import at, endpoint_slice, kube_event, pod, service

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.sampled_from("pq"), st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))),
        st.tuples(
            st.just("service"), st.sampled_from("st"), st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))
        ),
        st.tuples(st.just("no pod"), st.sampled_from("pq"), st.just({})),
        st.tuples(st.just("no service"), st.sampled_from("st"), st.just({})),
    ),
    max_size=12,
)


@given(_STEPS)
def test_a_service_selects_what_its_selector_matches(steps: list[tuple[str, str, dict[str, str]]]) -> None:
    """
    Whatever came first; a Service without a selector selects nothing.
    """
    index = ServiceIndex()
    pods: dict[str, dict[str, str]] = {}
    services: dict[str, dict[str, str]] = {}
    for what, name, labels in steps:
        if what == "pod":
            pods[name] = labels
            index.put_pod(("prod", name), labels)
        elif what == "service":
            services[name] = labels
            index.put_service(service(name, selector=labels))
        elif what == "no pod":
            pods.pop(name, None)
            index.drop_pod(("prod", name))
        else:
            services.pop(name, None)
            index.drop_service(("prod", name))

    for name, selector in services.items():
        expected = {("prod", p) for p, labels in pods.items() if selector and selector.items() <= labels.items()}
        assert set(index.selects(("prod", name))) == expected
        assert {p for p in pods if ("prod", name) in index.of_pod(("prod", p))} == {p for _, p in expected}


def test_an_endpoint_that_says_nothing_is_ready() -> None:
    """
    A missing condition means ready, as Kubernetes defines it.
    """
    front, one = service("s", selector={"a": "1"}), pod("p", node="n")
    found = endpoint_slice(front, [one])
    found.endpoints[0].conditions.ready = None
    index = ServiceIndex()

    assert index.put_slice(None, found) == ("prod", "s")
    assert index.ready_endpoints(("prod", "s")) == 1
    index.put_slice(found, None)
    assert index.ready_endpoints(("prod", "s")) == 0


def test_events_of_an_earlier_pod_of_the_same_name_are_not_its() -> None:
    """
    The uid tells them apart.
    """
    old, new = pod("p", uid="old"), pod("p", uid="new")
    evidence = Evidence()
    evidence.put(None, kube_event(old, "Failed", "old", name="e1"))
    evidence.put(None, kube_event(new, "Failed", "new", name="e2"))

    assert [e.message for e in evidence.about("Pod", ("prod", "p"), "new")] == ["new"]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(5, None, id="before it began to wait"),
        pytest.param(15, "adding", id="since then"),
    ],
)
def test_only_what_an_autoscaler_says_of_this_wait(seen: float, expected: str | None) -> None:
    """
    Its word about an earlier wait is no word about this one.
    """
    waits = pod("p")
    evidence = Evidence()
    evidence.put(None, kube_event(waits, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2}]", seen=at(seen)))

    said = evidence.autoscaler(("prod", "p"), waits.metadata.uid, at(10))

    assert (said.word if said else None) == expected


def test_a_later_word_moves_an_appointment() -> None:
    """
    Only the last one counts; None cancels it.
    """
    wakes = Wakes()
    wakes.put("a", at(10))
    wakes.put("b", at(20))
    wakes.put("a", at(30))

    assert wakes.next() == at(20)
    assert wakes.due(at(25)) == {"b"}
    wakes.put("a", None)
    assert wakes.next() is None
    assert wakes.due(at(100)) == set()
