"""Which failure a text speaks of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.hops.causes import CAUSES, Strength
from sevenhop.core.hops.failures import Context, classify_text
from tests.unit.hops_text.failure_texts import ALL, Row
from tests.unit.hops_text.more_texts import HEALTHY, HOPS_OF_TEXTS

_SYMPTOMS = [row for row in ALL if CAUSES[row[4]].is_symptom]
_CAUSES = [row for row in ALL if CAUSES[row[4]].strength is Strength.CAUSE and row[0] is Context.LOG]


@pytest.mark.parametrize("row", ALL, ids=[f"{i}-{row[4]}" for i, row in enumerate(ALL)])
def test_cause_of_text(row: Row) -> None:
    """
    Each text leads to its hop, category and cause.
    """
    context, text, hop, category, cause = row

    found = classify_text(text, context=context)

    assert found is not None
    assert (found.cause.hop, found.cause.category, found.cause.slug) == (hop, category, cause)


@pytest.mark.parametrize("change", [str.upper, str.lower, lambda text: f"  {text}  "], ids=["upper", "lower", "blanks"])
def test_spelling_does_not_matter(change: object) -> None:
    """
    Capitals and blanks around a text change nothing, but for the few words where capitals tell.
    """
    assert callable(change)
    for context, text, _, _, cause in ALL:
        if cause != "missing-environment":
            found = classify_text(change(text), context=context)
            assert found is not None
            assert found.cause.slug == cause, text


@given(st.text(max_size=400), st.sampled_from(list(Context)))
def test_total_on_any_text(text: str, context: Context) -> None:
    """
    No text makes the classifier raise, and what it shows is one short line.
    """
    found = classify_text(text, context=context)

    assert found is None or (len(found.line) <= 200 and "\n" not in found.line)


@given(st.sampled_from(_CAUSES), st.lists(st.sampled_from(_SYMPTOMS), min_size=1, max_size=4), st.integers(0, 4))
def test_a_symptom_never_wins(row: Row, symptoms: list[Row], at: int) -> None:
    """
    Whatever the order of the lines, the one that names a cause is reported.
    """
    lines = [symptom[1] for symptom in symptoms]
    lines.insert(min(at, len(lines)), row[1])

    found = classify_text("\n".join(lines), context=Context.LOG)

    assert found is not None
    assert found.cause.slug == row[4]


@pytest.mark.parametrize("row", _SYMPTOMS, ids=[f"{i}-{row[4]}" for i, row in enumerate(_SYMPTOMS)])
def test_a_symptom_alone_says_where_to_look(row: Row) -> None:
    """
    Where nothing else is known the symptom is named as one, with a next step.
    """
    found = classify_text(row[1], context=row[0])

    assert found is not None
    assert found.cause.is_symptom
    assert found.cause.next_steps


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(
            (
                "INFO 11-30 06:00:00 [config.py:1] trust_remote_code=False, quantization=None, "
                "tensor_parallel_size=2, max_model_len=8192"
            ),
            id="configuration dump",
        ),
        pytest.param('INFO:     10.0.0.7:41234 - "GET /health HTTP/1.1" 200 OK', id="access log"),
        pytest.param(
            "INFO 11-30 06:00:00 [loader.py:2] Loading safetensors checkpoint shards: 25% Completed", id="progress"
        ),
        pytest.param(
            "INFO 11-30 06:00:00 [x.py:3] user asked: CUDA out of memory, what is it?",
            id="a prompt that speaks of errors",
        ),
        pytest.param("Loaded 401 tokens of vocabulary into the model", id="a number that is no status"),
    ],
)
def test_what_is_no_failure_is_not_called_one(line: str) -> None:
    """
    Lines of a healthy start say nothing.
    """
    assert classify_text(line, context=Context.LOG) is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        pytest.param(
            "max seq len (9000) is larger than the maximum number of tokens that can be stored in KV cache (4096).",
            "4096",
            id="the number in brackets",
        ),
        pytest.param(
            (
                "16 GiB KV cache is needed, which is larger than the available. the estimated maximum model "
                "length is 61440."
            ),
            "61440",
            id="the estimate",
        ),
        pytest.param(
            (
                "User-specified max_model_len (9000) is greater than the derived max_model_len "
                "(max_position_embeddings=8192)."
            ),
            "8192",
            id="the model's own limit",
        ),
    ],
)
def test_the_number_is_the_next_step(text: str, hint: str) -> None:
    """
    Where the engine computed the value that would work, it is the first step.
    """
    found = classify_text(text)

    assert found is not None
    assert f"at most {hint}" in found.hint


def test_early_hops_explain_late_ones() -> None:
    """
    A lost GPU explains what the engine says after it.
    """
    found = classify_text("RuntimeError: CUDA error: unspecified launch failure\nnvml: GPU is lost\nCUDA out of memory")

    assert found is not None
    assert found.cause.slug == "gpu-lost"


@pytest.mark.parametrize(("context", "text", "hop"), HOPS_OF_TEXTS, ids=range(len(HOPS_OF_TEXTS)))
def test_hop_of_text(context: Context, text: str, hop: str) -> None:
    """
    Further texts of the same kinds lead to the hop that broke.
    """
    found = classify_text(text, context=context)

    assert found is not None
    assert found.cause.hop == hop


@pytest.mark.parametrize("line", HEALTHY, ids=range(len(HEALTHY)))
def test_a_healthy_start_says_nothing(line: str) -> None:
    """
    What engines print while they start well is no failure.
    """
    assert classify_text(line, context=Context.LOG) is None
