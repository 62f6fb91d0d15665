"""Label selectors, node selectors and tolerations."""

from __future__ import annotations

import pytest

from sevenhop.core.objects.base import LabelSelector, SelectorRequirement
from sevenhop.core.objects.pod import NodeSelector, NodeSelectorTerm
from sevenhop.core.placement.selectors import compile_node_selector, compile_selector, meets, node_matches
from sevenhop.core.placement.taints import Tolerance

LABELS = {"app": "decode", "gen": "9", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("app", "In", ("decode", "x"), True),
        ("app", "In", ("x",), False),
        ("absent", "In", ("x",), False),
        ("app", "NotIn", ("decode",), False),
        ("absent", "NotIn", ("x",), True),
        ("empty", "Exists", (), True),
        ("absent", "Exists", (), False),
        ("absent", "DoesNotExist", (), True),
        ("gen", "Gt", ("8",), True),
        ("gen", "Gt", ("9",), False),
        ("gen", "Lt", ("10",), True),
        ("app", "Gt", ("1",), False),
        ("gen", "Gt", ("eight",), False),
        ("absent", "Lt", ("10",), False),
        ("gen", "Near", ("9",), False),
    ],
)
def test_each_operator_reads_labels_as_kubernetes_does(
    key: str, operator: str, values: tuple[str, ...], expected: bool
) -> None:
    """Absent labels meet NotIn and DoesNotExist; Gt and Lt compare whole numbers, not text."""
    assert meets(LABELS, (key, operator, values)) is expected


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    """The two are opposites, and easily mixed up."""
    assert not compile_selector(None).matches(LABELS)
    assert compile_selector(LabelSelector()).matches(LABELS)
    assert compile_selector(LabelSelector()).is_everything
    assert not compile_selector(None).is_everything


def test_all_parts_of_a_selector_must_hold() -> None:
    """Labels and expressions are joined by and."""
    both = LabelSelector(
        match_labels={"app": "decode"},
        match_expressions=[SelectorRequirement(key="gen", operator="NotIn", values=["9"])],
    )
    assert not compile_selector(both).matches(LABELS)


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([], False, id="no terms match nothing"),
        pytest.param([NodeSelectorTerm()], False, id="an empty term matches nothing"),
        pytest.param(
            [
                NodeSelectorTerm(match_expressions=[SelectorRequirement(key="app", operator="In", values=["x"])]),
                NodeSelectorTerm(match_expressions=[SelectorRequirement(key="app", operator="Exists")]),
            ],
            True,
            id="one of the terms is enough",
        ),
        pytest.param(
            [NodeSelectorTerm(match_fields=[SelectorRequirement(key="metadata.name", operator="In", values=["n1"])])],
            True,
            id="by the node's name",
        ),
        pytest.param(
            [
                NodeSelectorTerm(
                    match_expressions=[SelectorRequirement(key="app", operator="Exists")],
                    match_fields=[SelectorRequirement(key="metadata.name", operator="NotIn", values=["n1"])],
                )
            ],
            False,
            id="labels and fields of one term must both hold",
        ),
    ],
)
def test_node_selector_terms_are_alternatives(terms: list[NodeSelectorTerm], expected: bool) -> None:
    """Terms are joined by or, their parts by and."""
    assert node_matches(compile_node_selector(NodeSelector(node_selector_terms=terms)), "n1", LABELS) is expected


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [
        pytest.param(Tolerance("gpu", "Exists", "", ""), True, id="exists"),
        pytest.param(Tolerance("gpu", "Equal", "present", "NoSchedule"), True, id="equal"),
        pytest.param(Tolerance("gpu", "Equal", "", ""), False, id="equal without a value is not exists"),
        pytest.param(Tolerance("gpu", "", "present", ""), True, id="no operator means equal"),
        pytest.param(Tolerance("gpu", "Exists", "", "NoExecute"), False, id="another effect"),
        pytest.param(Tolerance("", "Exists", "", ""), True, id="everything"),
        pytest.param(Tolerance("", "Equal", "present", ""), False, id="equal needs a key"),
        pytest.param(Tolerance("other", "Exists", "", ""), False, id="another key"),
    ],
)
def test_a_toleration_covers_a_taint(tolerance: Tolerance, expected: bool) -> None:
    """Against the taint gpu=present:NoSchedule."""
    assert tolerance.covers("gpu", "present", "NoSchedule") is expected
