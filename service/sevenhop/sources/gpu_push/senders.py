"""Which node a token may speak for; asked of the API server once in a while, not for every sample."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from sevenhop.sources.kubernetes.identity import UnansweredError, UnverifiedError, UserInfo

NODE = "authentication.kubernetes.io/node-name"
ACCOUNT = "system:serviceaccount:"

KEEP = timedelta(minutes=2)
"""2,000 nodes are 17 TokenReviews a second.  A token that is revoked (its pod was deleted) may speak for so long."""

KEEP_REFUSED = timedelta(seconds=10)
MAX_KEPT = 20_000
MAX_AT_ONCE = 8

ReviewUser = Callable[[str], Awaitable[UserInfo]]


class Refusal(StrEnum):
    """Why a sender is not heard; the same words in the answer, the log and the counters."""

    NO_TOKEN = "no_token"  # noqa: S105  a reason
    UNKNOWN_TOKEN = "unknown_token"  # noqa: S105  a reason
    OTHER_ACCOUNT = "other_account"
    NOT_BOUND = "not_bound"
    OTHER_NODE = "other_node"
    UNREADABLE = "unreadable"
    UNANSWERED = "unanswered"
    BEHIND = "behind"


class RefusedError(Exception):
    """`reason`, and a line for whoever reads the agent's log."""

    def __init__(self, reason: Refusal, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class _Kept(msgspec.Struct, frozen=True):
    until: datetime
    node: str = ""
    refused: Refusal | None = None
    text: str = ""


class Senders:
    """
    Args:
        review: Asks the API server; see `identity.review_user`.
        accounts: ``namespace/name`` of the agents' service accounts.
    """

    def __init__(self, review: ReviewUser, accounts: Iterable[str], clock: Callable[[], datetime]) -> None:
        self._review = review
        self._accounts = frozenset(ACCOUNT + account.replace("/", ":") for account in accounts)
        self._clock = clock
        self._kept: dict[bytes, _Kept] = {}
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def node_of(self, token: str) -> str:
        """
        The node that a token may speak for: the one that its pod runs on.

        Raises:
            RefusedError: None, or nobody can say now.
        """
        now = self._clock()
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()  # tokens are not kept
        kept = self._kept.get(key)
        if kept is None or kept.until <= now:
            async with self._slots:
                kept = self._kept.get(key)  # somebody else may have asked meanwhile
                if kept is None or kept.until <= now:
                    kept = await self._ask(token, now)
                    self._keep(key, kept, now)
        if kept.refused is not None:
            raise RefusedError(kept.refused, kept.text)
        return kept.node

    async def _ask(self, token: str, now: datetime) -> _Kept:
        try:
            user = await self._review(token)
        except UnansweredError as error:
            raise RefusedError(Refusal.UNANSWERED, str(error)) from None
        except UnverifiedError as error:
            return _Kept(now + KEEP_REFUSED, refused=Refusal.UNKNOWN_TOKEN, text=str(error))
        if user.username not in self._accounts:
            text = f"{user.username} is none of gpu_push.accounts"
            return _Kept(now + KEEP_REFUSED, refused=Refusal.OTHER_ACCOUNT, text=text)
        nodes = user.extra.get(NODE, [])
        if len(nodes) != 1 or not nodes[0]:
            text = "the token is not bound to a pod on a node (Kubernetes before 1.30, or a token made by hand)"
            return _Kept(now + KEEP_REFUSED, refused=Refusal.NOT_BOUND, text=text)
        return _Kept(now + KEEP, node=nodes[0])

    def _keep(self, key: bytes, kept: _Kept, now: datetime) -> None:
        if len(self._kept) >= MAX_KEPT:
            self._kept = {each: one for each, one in self._kept.items() if one.until > now}
            if len(self._kept) >= MAX_KEPT:  # a flood of made-up tokens: forgetting costs questions, not memory
                self._kept.clear()
        self._kept.pop(key, None)
        self._kept[key] = kept
