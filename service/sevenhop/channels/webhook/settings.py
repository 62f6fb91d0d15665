"""Settings of a webhook."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, SecretStr

from sevenhop.addresses import SecretUrl
from sevenhop.channels.spec import ChannelSettings
from sevenhop.durations import Duration


class WebhookSettings(ChannelSettings):
    """A JSON POST to an address of yours."""

    type: Literal["webhook"]
    url: SecretUrl = Field(description="Where to post; may hold a token, so it is never shown.")
    secret: SecretStr | None = Field(None, description="Signs the body: X-Sevenhop-Signature, HMAC-SHA256.")
    timeout: Duration = Field(timedelta(seconds=10), description="One call.")
