"""
Who clicked: a Slack user, verified with Slack itself, and the user groups that may decide.

Never from the payload alone: it names a user, and Slack says who that is and what groups it is in *now*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sevenhop.channels.channel import DeliveryError, PermanentDeliveryError
from sevenhop.channels.slack.api import SlackApi
from sevenhop.core.remediation.person import Person

USER = "slack:"
GROUP = "slack-group:"
EMAIL = "email:"

NOT_VERIFIED = "who you are could not be verified, so nothing was done"

FRESH_FOR = timedelta(seconds=5)
"""So long an answer counts as now: two clicks in a row do not use up the rate limit (20 a minute for groups)."""


class UnverifiedError(Exception):
    """Nobody can say who this is now; the text is for the person who clicked, and says what to do."""


class _Members(msgspec.Struct, frozen=True):
    at: datetime
    users: frozenset[str]


class SlackPeople:
    """
    Args:
        deciders: Ids and groups that any playbook allows; of these the Slack groups are looked up.
    """

    def __init__(self, api: SlackApi, deciders: Sequence[str], clock: Callable[[], datetime]) -> None:
        self._api = api
        self._groups = tuple(dict.fromkeys(each.removeprefix(GROUP) for each in deciders if each.startswith(GROUP)))
        self._clock = clock
        self._members: dict[str, _Members] = {}
        self._team = ""
        self._bot = ""
        self._app: str | None = None  # not known yet; empty where Slack will not say

    async def is_ours(self, team: str, app: str) -> bool:
        """
        Whether a click comes from the workspace that our token belongs to, and from a message of the same app.

        Args:
            app: `api_app_id` of the payload; empty if it names none.

        Raises:
            UnverifiedError: Slack does not say which workspace that is.
        """
        if not self._team:
            answer = await self._ask("auth.test")
            self._team, self._bot = str(answer.get("team_id") or ""), str(answer.get("bot_id") or "")
        if not team or team != self._team:
            return False
        return not app or await self._our_app() in ("", app)

    async def verified(self, user: str, name: str) -> Person:
        """
        Raises:
            UnverifiedError: Slack does not know this user as a member of the workspace, or does not answer.
        """
        told = await self._ask("users.info", user=user)
        known = told.get("user")
        if not isinstance(known, dict) or known.get("id") != user:
            raise UnverifiedError("Slack does not know you; nothing was done")
        if known.get("deleted") or known.get("is_bot") or not self._is_member(known):
            raise UnverifiedError("only members of this workspace can decide; nothing was done")
        groups = [f"{GROUP}{group}" for group in self._groups if user in await self._users_of(group)]
        profile = known.get("profile")
        email = str(profile.get("email") or "") if isinstance(profile, dict) else ""
        return Person(
            id=f"{USER}{user}",
            name=str(known.get("real_name") or known.get("name") or name or user),
            groups=tuple(groups),
            is_same_as=(f"{EMAIL}{email.lower()}",) if email else (),
            verified_at=self._clock(),
        )

    def _is_member(self, known: dict[str, Any]) -> bool:
        """Guests are; who comes from another company through a shared channel is not."""
        home, wider = known.get("team_id"), known.get("enterprise_user")
        teams = wider.get("teams") if isinstance(wider, dict) else None
        return not home or not self._team or home == self._team or (isinstance(teams, list) and self._team in teams)

    async def _our_app(self) -> str:
        """Empty where Slack does not say: then the signature, or the socket, is all that names the app, and enough."""
        if self._app is None:
            try:
                told = await self._api.call("bots.info", get=True, bot=self._bot) if self._bot else {}
            except PermanentDeliveryError:
                told = {}  # a token without users:read; it would be refused the next time as well
            except DeliveryError:
                return ""
            bot = told.get("bot")
            self._app = str(bot.get("app_id") or "") if isinstance(bot, dict) else ""
        return self._app

    async def _users_of(self, group: str) -> frozenset[str]:
        now = self._clock()
        known = self._members.get(group)
        if known is not None and now - known.at <= FRESH_FOR:
            return known.users
        answer = await self._ask("usergroups.users.list", usergroup=group)
        users = answer.get("users")
        members = _Members(now, frozenset(map(str, users)) if isinstance(users, list) else frozenset())
        self._members[group] = members
        return members.users

    async def _ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        try:
            return await self._api.call(method, get=True, **arguments)
        except DeliveryError as error:
            raise UnverifiedError(f"{NOT_VERIFIED}: {error}") from None
