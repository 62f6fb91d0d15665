"""What Slack's refusals mean, and what a person does about each (docs.slack.dev, errors of the methods used here)."""

from __future__ import annotations

import re

from sevenhop.channels.channel import (
    DeliveryError,
    PermanentDeliveryError,
    RetryableDeliveryError,
    UncertainDeliveryError,
)

_TOKEN = "give the receiver the bot token (xoxb-…) of an installed app"  # noqa: S105 - words, not a token
_REINSTALL = "reinstall the app in the workspace and give the receiver its new bot token"

FIXES: dict[str, str] = {
    "invalid_auth": _TOKEN,
    "not_authed": _TOKEN,
    "account_inactive": _REINSTALL,
    "token_revoked": _REINSTALL,
    "token_expired": _REINSTALL,
    "not_allowed_token_type": _TOKEN,
    "access_denied": "ask an administrator of the workspace to allow the app",
    "no_permission": "add the scope chat:write to the app and reinstall it",
    "missing_scope": "add the scope to the app (chat:write, and channels:history or groups:history) and reinstall it",
    "team_access_not_granted": "ask an administrator to grant the app access to this workspace",
    "ekm_access_denied": "an administrator of the workspace has suspended posting",
    "channel_not_found": "check the channel id, and invite the app to the channel if it is private",
    "not_in_channel": "invite the app to the channel: /invite @its-name",
    "is_archived": "choose a channel that is not archived",
    "restricted_action": "ask an administrator to let the app post in this channel",
    "restricted_action_read_only_channel": "choose a channel that the app may post in",
    "restricted_action_thread_locked": "unlock the thread",
    "restricted_action_non_threadable_channel": "choose a channel that has threads",
    "restricted_action_thread_only_channel": "choose a channel where top-level messages are allowed",
    "invalid_blocks": "this is a mistake of ours, please report it",
    "invalid_blocks_format": "this is a mistake of ours, please report it",
    "msg_blocks_too_long": "this is a mistake of ours, please report it",
    "msg_too_long": "this is a mistake of ours, please report it",
    "metadata_too_large": "this is a mistake of ours, please report it",
    "invalid_metadata_format": "this is a mistake of ours, please report it",
    "invalid_arguments": "this is a mistake of ours, please report it",
    "method_not_supported_for_channel_type": "choose another kind of channel",
}
"""Refusals that the same message will meet again, and what a person changes."""

NOT_NOW = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded", "request_timeout"})
NOT_NOW_EITHER = frozenset({"org_login_required", "team_added_to_org", "service_unavailable"})
"""Slack did nothing, and asks for patience."""

IN_DOUBT = frozenset({"internal_error", "fatal_error"})
"""Slack says of these that part of the operation may have been done."""

GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive", "thread_not_found"})
"""What was to be edited cannot be: deleted by a person, too old, or not ours."""

CLOSED = frozenset({"channel_not_found", "not_in_channel", "is_archived"})
"""The channel takes nothing from us any more: archived, or our app was removed from it."""

METADATA_REFUSED = frozenset({"metadata_too_large", "invalid_metadata_format"})
NOT_SHOWABLE = METADATA_REFUSED | {
    "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_arguments",
}  # fmt: skip
"""Slack takes no message that looks like this; it may take one that says the same in short."""

UNREADABLE = frozenset(
    {
        "missing_scope",
        "no_permission",
        "not_in_channel",
        "channel_not_found",
        "access_denied",
        "method_not_supported_for_channel_type",
        "not_allowed_token_type",
    }
)
"""The history may not be read; posting may still be allowed."""

_WORD = re.compile(r"[a-z0-9_]{1,64}")


class CannotEditError(PermanentDeliveryError):
    """The message that was to be edited is not there any more, or not ours to edit."""


class ClosedChannelError(PermanentDeliveryError):
    """The channel takes nothing from us; another one may."""


class NotShowableError(PermanentDeliveryError):
    """
    Slack does not take the message as it is built.

    Attributes:
        word: Slack's own for it.
    """

    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


def word(error: object) -> str:
    """Slack's own word for an error; what is not a plain word is not repeated."""
    text = str(error)
    return text if _WORD.fullmatch(text) else "an error that is not a word"


def refusal(method: str, error: object, retry_after: float | None, needed: object = None) -> DeliveryError:
    """The error to raise where Slack answered ``ok: false`` with this word."""
    name = word(error)
    said = f"slack: {method}: {name}"
    if name in NOT_NOW or name in NOT_NOW_EITHER:
        return RetryableDeliveryError(said, retry_after)
    if name in IN_DOUBT:
        return UncertainDeliveryError(said)
    if name in GONE:
        return CannotEditError(said)
    if name == "missing_scope" and re.fullmatch(r"[a-z:,. ]{1,100}", str(needed)):
        return PermanentDeliveryError(f"{said}; add the scope {needed} to the app and reinstall it")
    told = f"{said}; {FIXES.get(name, f'see the errors of {method} on docs.slack.dev')}"
    if name in NOT_SHOWABLE:
        return NotShowableError(told, name)
    return ClosedChannelError(told) if name in CLOSED else PermanentDeliveryError(told)


def bad_status(method: str, status: int, retry_after: float | None) -> DeliveryError:
    """The error to raise where the answer is not one of Slack's, by its HTTP status."""
    said = f"slack: {method}: HTTP {status}"
    if status in {408, 425, 429} or (status == 503 and retry_after is not None):
        return RetryableDeliveryError(said, retry_after)
    if status >= 500 or 200 <= status < 300:
        # A gateway that lost the answer, or an answer that cannot be read: Slack may have posted.  That includes a 503
        # that asks for no patience: Envoy says it of a connection that broke after the request was sent.
        return UncertainDeliveryError(f"{said}, no answer of Slack's")
    return PermanentDeliveryError(f"{said}, not Slack's Web API; check base_url and the proxy on the way")
