"""Settings of a webhook."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from sevenhop.channels.spec import ChannelSettings
from sevenhop.durations import Duration


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


class WebhookSettings(ChannelSettings):
    """A JSON POST to an address of yours."""

    type: Literal["webhook"]
    url: Annotated[SecretStr, AfterValidator(_is_url)] = Field(
        description="Where to post; may hold a token, so it is never shown."
    )
    secret: SecretStr | None = Field(None, description="Signs the body: X-Sevenhop-Signature, HMAC-SHA256.")
    timeout: Duration = Field(timedelta(seconds=10), description="One call.")
