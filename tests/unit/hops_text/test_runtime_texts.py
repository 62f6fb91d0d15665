"""Which failure a text of another runtime, hub or engine speaks of, and which lines speak of none."""

from __future__ import annotations

import pytest

from sevenhop.core.hops.failures import Context, classify_text
from sevenhop.core.hops.failures_text import classify_lines
from tests.unit.hops_text.runtime_texts import ENGINES, FAILURES_AT_ERROR, NO_FAILURES, OPERATORS, RUNTIMES, Row

_ALL = (*RUNTIMES, *ENGINES, *OPERATORS)


@pytest.mark.parametrize("row", _ALL, ids=[f"{i}-{row[4]}" for i, row in enumerate(_ALL)])
def test_cause_of_text(row: Row) -> None:
    """
    Each text leads to its hop, category and cause.
    """
    context, text, hop, category, cause = row

    found = classify_text(text, context=context)

    assert found is not None
    assert (found.cause.hop, found.cause.category, found.cause.slug) == (hop, category, cause)


@pytest.mark.parametrize("context", [Context.LOG, Context.TERMINATED])
@pytest.mark.parametrize("line", NO_FAILURES)
def test_information_is_no_failure(line: str, context: Context) -> None:
    """
    What a logger calls information names no cause, in a log and where its end became a termination message.
    """
    assert [found for found in classify_lines(line, context=context) if not found.cause.is_symptom] == []


@pytest.mark.parametrize("line", FAILURES_AT_ERROR)
def test_an_error_is_one_in_every_form(line: str) -> None:
    """
    The same forms at level ERROR are read.
    """
    found = classify_text(line, context=Context.LOG)

    assert found is not None
    assert found.cause.slug == "gpu-oom"


@pytest.mark.parametrize("word", ["Marking for deletion", "Cancelling deletion of"])
def test_a_cancelled_eviction_is_none(word: str) -> None:
    """
    The taint manager says too that it will not evict a pod after all.
    """
    found = classify_text(f"TaintManagerEviction: {word} Pod prod/llama-0", context=Context.EVENT)

    assert (found is not None and found.cause.slug == "evicted") is word.startswith("Marking")


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        pytest.param(
            (
                "CUDA error: an illegal memory access was encountered",
                "terminate called after throwing an instance of 'c10::DistBackendError'",
                "  what():  [PG ID 2 Rank 0] Process group watchdog thread terminated with exception: CUDA error",
            ),
            "cuda-error",
            id="the watchdog dies of it",
        ),
        pytest.param(
            (
                "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 MiB.",
                "Possible solutions:",
                "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
            ),
            "gpu-oom",
            id="a list of what might help",
        ),
    ],
)
def test_what_follows_a_cause_is_none(lines: tuple[str, ...], cause: str) -> None:
    """
    Later lines repeat it, or advise.
    """
    found = classify_text("\n".join(lines), context=Context.LOG)

    assert found is not None
    assert found.cause.slug == cause


@pytest.mark.parametrize(
    ("status_line", "cause"),
    [
        pytest.param("401 Client Error. (Request ID: x)", "hf-unauthorized", id="no token"),
        pytest.param(
            "403 Client Error. Access to model org/llm is restricted, ask for access", "hf-gated", id="not granted"
        ),
    ],
)
def test_a_gated_repository_is_told_by_its_status(status_line: str, cause: str) -> None:
    """
    "Gated" alone does not say whether a token is missing or not enough.
    """
    text = f"OSError: You are trying to access a gated repo.\nGatedRepoError: {status_line}\nCannot access gated repo."

    found = classify_text(text, context=Context.TERMINATED)

    assert found is not None
    assert found.cause.slug == cause
