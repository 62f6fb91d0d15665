"""
Show one line from the cluster without its secrets.

Logs carry prompts and credentials: only the line that matched is ever shown, masked first and cut afterwards.
"""

from __future__ import annotations

import re

MASK = "****"
SHOWN_CHARS = 200

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CURLED = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")

# Longer than this is cut before masking, so that no line makes it slow; the remainder is never shown.
_MAX_CHARS = 4_000

_PROMISING_NAMES = (
    r"(?:token(?!s\b|iz|_id)|secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key|credential"
    r"|signature|client[_-]?id|cookie|session[_-]?id)"
)
_BEGINNINGS = (
    r"(?:hf_|api_org_|sk-|sk_|pk_|rk_|gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|nvapi-|npm_|pypi-|dop_v1_"
    r"|shpat_|AIza|ya29\.|AKIA|ASIA|AROA|hvs\.|eyJ)"
)

_RULES = (
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*", MASK),
    # Credentials before a host.
    (r"(?i)([a-z0-9]://)[^\s/@]+@", rf"\1{MASK}@"),
    # Everything in a query may be a signature.
    (r"(?i)(\bhttps?://[^\s?\"'<>]{1,2000}\?)[^\s\"'<>]+", rf"\1{MASK}"),
    (r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?)(?:(?:bearer|basic|token)\s+)?[^\s\"',;}]+", rf"\1{MASK}"),
    (r"(?i)\b(bearer|basic)(\s+)[\w.~+/=-]{8,}", rf"\1\2{MASK}"),
    # A name that promises a secret, and what follows it.
    (rf"(?i)({_PROMISING_NAMES}[\w-]{{0,40}}[\"']?\s*(?:=>|[:=])\s*[\"']?)[^\s\"',;}}&]+", rf"\1{MASK}"),
    (rf"(?i)(--[\w-]{{0,40}}{_PROMISING_NAMES}\s+)[^\s\"',;-][^\s\"',;]*", rf"\1{MASK}"),
    # A signed URL without its host; curl's user and password.
    (r"(?i)([?&](?:sig|hmac|x-amz-[\w-]{1,40})=)[^\s\"'&]+", rf"\1{MASK}"),
    (r"((?:^|\s)(?:-u|--user)[\s=]+[\"']?[^\s:\"'=]{1,100}:)[^\s\"']+", rf"\1{MASK}"),
    # Tokens that can be told by how they begin, wherever they stand.
    (rf"{_BEGINNINGS}[A-Za-z0-9_.~+/=-]{{8,}}", MASK),
    # What is long and mixes all kinds of letters is a key rather than a name; hashes are lower-case hexadecimal.
    (
        r"\b(?=[A-Za-z0-9+_]*[a-z])(?=[A-Za-z0-9+_]*[A-Z])(?=[A-Za-z0-9+_]*\d)[A-Za-z0-9+_]{32,}={0,2}",
        MASK,
    ),
)
_SECRETS = tuple((re.compile(pattern), replacement) for pattern, replacement in _RULES)


def mask(text: str) -> str:
    """
    Replace what looks like a token, key, password or signed URL.

    >>> mask("HF_TOKEN=hf_abcdefghijklmnop for https://me:pw@host/x")
    'HF_TOKEN=**** for https://****@host/x'
    """
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def clean(text: str) -> str:
    """Masked and without control characters, whole: for sentences of ours with names from the cluster in them."""
    return mask(_plain(text[:_MAX_CHARS]))


def quote(text: str, at: int = 0) -> str:
    """
    One line of at most 200 characters, masked, without control characters, with the place `at` in it.

    Args:
        at: Where in `text` the match begins; the cut is made around it.
    """
    begin = max(0, at - _MAX_CHARS // 2)
    # Only whole words are masked reliably: begin at a blank.
    if begin:
        blank = text.find(" ", begin, begin + 200)
        begin = blank + 1 if blank >= 0 else begin
    window = text[begin : begin + _MAX_CHARS]
    before, after = _plain(window[: max(0, at - begin)]), _plain(window[max(0, at - begin) :])
    line = mask(before + after)
    if len(line) <= SHOWN_CHARS:
        return line.strip()
    start = 0
    if len(before) > SHOWN_CHARS // 2:
        start = max(0, min(len(line) - SHOWN_CHARS, len(mask(before)) - SHOWN_CHARS // 3))
    end = start + SHOWN_CHARS
    if start:
        start += 1
    shown = line[start : end - 1 if end < len(line) else end].strip()
    return ("…" if start else "") + shown + ("…" if end < len(line) else "")


def as_printed(text: str) -> str:
    """
    Without what colours a terminal, and with the quotes that programs print; people's editors and chats curl them.

    >>> as_printed("\\x1b[31mERROR\\x1b[0m can’t")
    "ERROR can't"
    """
    return text if text.isascii() and "\x1b" not in text else _ANSI.sub("", text).translate(_CURLED)


def _plain(text: str) -> str:
    return _CONTROL.sub(" ", _ANSI.sub("", text))
