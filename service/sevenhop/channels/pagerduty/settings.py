"""Settings of a PagerDuty service."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from sevenhop.channels.spec import ChannelSettings
from sevenhop.durations import Duration

KEY_LENGTH = 32
"""Of integration keys and of orchestration keys alike (Events API v2)."""


def _is_key(key: SecretStr) -> SecretStr:
    text = key.get_secret_value()
    if len(text) != KEY_LENGTH or not text.isascii() or not text.isalnum():
        raise ValueError(f"expected the {KEY_LENGTH} letters and digits of an Events API v2 integration key")
    return key


def _is_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address such as https://events.pagerduty.com")
    return url.rstrip("/")


RoutingKey = Annotated[SecretStr, AfterValidator(_is_key)]


class PagerDutySettings(ChannelSettings):
    """A PagerDuty service, by the integration key of its Events API v2."""

    type: Literal["pagerduty"]
    routing_key: RoutingKey = Field(description="Integration key of the service, or of an event orchestration.")
    former_routing_keys: list[RoutingKey] = Field(
        default_factory=list,
        description=(
            "Keys that were used before: what is still open there is resolved there, for PagerDuty ignores a resolve "
            "that comes with another key."
        ),
    )
    base_url: Annotated[str, AfterValidator(_is_address)] = Field(
        "https://events.pagerduty.com", description="The European region is https://events.eu.pagerduty.com."
    )
    timeout: Duration = Field(timedelta(seconds=10), description="One call.")
