"""Settings of a Slack channel."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from sevenhop.channels.spec import ChannelSettings
from sevenhop.durations import Duration


def _is_id(channel: str) -> str:
    if not (channel[:1] in {"C", "D", "G"} and channel.isalnum() and channel == channel.upper()):
        raise ValueError(
            f"expected a channel id such as C0123456789 (in Slack: channel name, About, at the end), got {channel!r}"
        )
    return channel


class SlackSettings(ChannelSettings):
    """
    A Slack channel, through an app with chat:write and, to find a message again after a crash, channels:history
    (groups:history for a private channel).  Buttons also need usergroups:read where a user group may approve, and
    users:read with users:read.email to know one person under two names.
    """

    type: Literal["slack"]
    token: SecretStr = Field(description="Bot token (xoxb-…).")
    channel: Annotated[str, AfterValidator(_is_id)] = Field(
        description="Channel id, such as C0123456789; a name cannot be edited in."
    )
    app_token: SecretStr | None = Field(
        None,
        description=(
            "App-level token (xapp-…, scope connections:write): buttons work over Socket Mode, nothing listens."
        ),
    )
    signing_secret: SecretStr | None = Field(
        None,
        description=(
            "Signing secret of the app: buttons work over HTTP, at /slack/actions and /slack/commands of the address "
            "in `web`."
        ),
    )
    base_url: str = Field("https://slack.com/api/", description="Slack's Web API; another one only for tests.")
    timeout: Duration = Field(
        timedelta(seconds=10), description="One call to Slack; afterwards its outcome is uncertain."
    )

    @property
    def is_interactive(self) -> bool:
        """Whether somebody hears a click: else a message has no buttons."""
        return self.app_token is not None or self.signing_secret is not None
