"""Addresses in settings that may hold a token: never shown, not even where they are wrong."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr


def _is_url(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(c.isspace() for c in text):
        raise ValueError("expected an address such as https://host/path")  # it may hold a token: not shown
    return url


SecretUrl = Annotated[SecretStr, AfterValidator(_is_url)]
