"""What is shown of a line from the cluster."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.hops.failures import classify_text
from sevenhop.core.hops.failures_quote import MASK, SHOWN_CHARS, mask, quote

_LETTERS = string.ascii_letters + string.digits
_BODY = st.text(_LETTERS, min_size=16, max_size=60)
_HALVES = (
    "hf" + "_",
    "gh" + "p_",
    "sk" + "-",
    "glpat" + "-",
    "nvapi" + "-",
    "xoxb" + "-",
    "AKI" + "A",
    "github" + "_pat_",
)
_NAMES = (
    "HF_TOKEN",
    "api_key",
    "password",
    "--hf-token",
    "AWS_SECRET_ACCESS_KEY",
    "client_secret",
    "aws_session_token",
)
_FORMS = ("{name}={secret}", "{name}: {secret}", '"{name}": "{secret}"', "{name}='{secret}'", "{name} = {secret}")
_URLS = (
    "https://user:{secret}@registry.example.com/v2/",
    "https://bucket.s3.amazonaws.com/m?X-Amz-Signature={secret}&X-Amz-Expires=60",
    "Authorization: Bearer {secret}",
    "authorization: Basic {secret}=",
)


@given(st.sampled_from(_HALVES), _BODY, st.text(" =:/'\"(),abcxyz", max_size=20))
def test_tokens_with_a_known_beginning(beginning: str, body: str, around: str) -> None:
    """
    A token that can be told by how it begins never gets through, whatever stands around it.
    """
    assert body not in mask(f"{around} {beginning}{body} {around}")


@given(st.sampled_from(_NAMES), st.sampled_from(_FORMS), _BODY)
def test_values_of_promising_names(name: str, form: str, secret: str) -> None:
    """
    The value of a variable, key or flag whose name promises a secret is masked.
    """
    shown = mask("error: " + form.format(name=name, secret=secret) + " is refused")

    assert secret not in shown
    assert "is refused" in shown


@given(st.sampled_from(_URLS), _BODY)
def test_credentials_of_requests(form: str, secret: str) -> None:
    """
    Credentials in URLs and headers are masked.
    """
    assert secret not in mask(form.format(secret=secret))


@given(st.sampled_from(_HALVES), _BODY, st.integers(0, 300))
def test_cutting_does_not_uncover(beginning: str, body: str, padding: int) -> None:
    """
    Wherever the cut falls, no part of a token that is long enough to be used is shown.
    """
    line = quote("x" * padding + f" {beginning}{body} CUDA out of memory " + "y" * 300)

    assert body[:12] not in line
    assert len(line) <= SHOWN_CHARS


@pytest.mark.parametrize(
    "text",
    [
        'secret "hub-token" not found',
        "couldn't find key HF_TOKEN in Secret prod/hub",
        "max_num_batched_tokens=8192 is smaller than max_model_len=16384",
        "no basic auth credentials",
        "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "Can't load tokenizer for 'org/Meta-Llama-3.1-70B-Instruct'",
    ],
)
def test_names_are_kept(text: str) -> None:
    """
    Names of secrets, numbers and digests are what a person needs, and no secrets.
    """
    assert mask(text) == text


def test_the_match_is_in_the_cut() -> None:
    """
    A long line is cut around what matched, not at its beginning.
    """
    found = classify_text("a" * 900 + " torch.OutOfMemoryError: CUDA out of memory. " + "b" * 900)

    assert found is not None
    assert "OutOfMemoryError" in found.line
    assert len(found.line) <= SHOWN_CHARS


def test_control_characters_are_dropped() -> None:
    """
    Colours, line breaks and marks that reverse the reading direction do not reach a terminal.
    """
    assert quote("\x1b[31mred\x1b[0m\nline\u202e end") == "red line  end"


def test_a_classified_line_shows_no_token() -> None:
    """
    What a classifier found is masked before anybody sees it.
    """
    secret = "hf" + "_abcdefghijklmnopqrstuvwxyz"
    found = classify_text(f"401 Client Error for huggingface.co with token {secret}")

    assert found is not None
    assert secret not in found.line
    assert MASK in found.line


@pytest.mark.parametrize(
    "text", ["GET /m?sv=2024&sig={secret}&se=1 failed", "curl -u admin:{secret} x", "curl --user=me:{secret} x"]
)
def test_signatures_and_users_of_curl(text: str) -> None:
    """
    A signed path without its host, and a user's password on a command line, are masked.
    """
    assert "s3cr3tP4ss" not in mask(text.format(secret="s3cr3tP4ss"))
