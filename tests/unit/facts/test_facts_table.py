"""The table of facts, and that derivations give what it promises."""

from __future__ import annotations

from datetime import datetime

import pytest

from sevenhop.core.facts import gpu, route
from sevenhop.core.facts.schema import LABELS, FactSpec, FactType, FactValue, Unknown, UnknownReason
from sevenhop.core.facts.table import FACTS, facts_of
from sevenhop.core.subject import SubjectKind
from tests.builders import at, deployment, node, pod_of, replicaset, service
from tests.unit.inventory.scenes import Scene

PYTHON: dict[FactType, type] = {
    FactType.BOOL: bool,
    FactType.INT: int,
    FactType.DOUBLE: float,
    FactType.STRING: str,
    FactType.INT_LIST: list,
    FactType.TIME: datetime,
}


def is_of(value: FactValue, spec: FactSpec) -> bool:
    """Python calls True an int; rules do not."""
    return type(value) is PYTHON[spec.type] and (not spec.values or value in ("", *spec.values))


def busy() -> Scene:
    """One of everything, pods that are ready, wait and fail among them."""
    app = deployment("app", replicas=3, gpus=2)
    rs = replicaset(app)
    pods = [
        pod_of(rs, "0", node="n"),
        pod_of(rs, "1", unschedulable="0/1 nodes are available: 1 Insufficient nvidia.com/gpu."),
        pod_of(rs, "2", node="n", waiting="CrashLoopBackOff", restarts=1, last_end=at(0), ready=False),
    ]
    return Scene(node("n", gpus=4), app, rs, *pods, service("app", selector={"app": "app"}))


@pytest.mark.parametrize("spec", FACTS.values(), ids=FACTS.keys())
def test_every_row_is_complete(spec: FactSpec) -> None:
    """
    A name that begins with its subject, a sentence, and a value where the question does not arise.
    """
    assert spec.name.startswith(f"{spec.subject}.")
    assert spec.doc.endswith(".")
    assert spec.source
    assert spec.not_applicable is None or is_of(spec.not_applicable, spec)


@pytest.mark.parametrize("kind", [k for k in SubjectKind if k not in (SubjectKind.GPU, SubjectKind.ROUTE)])
def test_every_subject_has_all_its_facts_of_the_promised_type(kind: SubjectKind) -> None:
    """
    Each fact is there, and is a value of its type or unknown; so is every label, as a string.
    """
    told = {subject: facts for subject, facts in busy().inventory.facts.items() if subject.kind is kind}

    assert told
    for facts in told.values():
        assert facts.keys() == {*facts_of(kind), *LABELS}
        assert all(isinstance(facts[label], str) for label in LABELS)
        for name, spec in facts_of(kind).items():
            value = facts[name]
            assert isinstance(value, Unknown) or is_of(value, spec), f"{name}: {value!r}"


def test_only_what_may_be_unknown_is() -> None:
    """
    With every kind listed, a fact is unknown only where its row says when.
    """
    for facts in busy().inventory.facts.values():
        for name, value in facts.items():
            if isinstance(value, Unknown):
                assert FACTS[name].unknown_when, f"{name}: {value}"


def test_without_an_agent_or_a_gateway_source_nothing_is_guessed() -> None:
    """
    Facts of GPUs and routes are unknown, all of them, for want of a source.
    """
    for kind, facts in ((SubjectKind.GPU, gpu.derive()), (SubjectKind.ROUTE, route.derive())):
        assert facts.keys() == facts_of(kind).keys()
        assert all(isinstance(v, Unknown) and v.reason is UnknownReason.NO_SOURCE for v in facts.values())
