"""
Who somebody is, by the API server's own word: TokenReview for a bearer token that was sent to us.

API: authentication.k8s.io/v1, TokenReview; needs `create` on `tokenreviews.authentication.k8s.io`.
"""

from __future__ import annotations

from datetime import datetime

import aiohttp
import msgspec

from sevenhop.core.remediation.person import Person
from sevenhop.sources.kubernetes.api import ApiError, ApiServer, describe

USER = "kubernetes:"
GROUP = "kubernetes-group:"
EMAIL = "email:"

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
MAX_TOKEN = 16_384
REVIEW_S = 10.0


class UnverifiedError(Exception):
    """Nobody can say who this is now; one line that says why, and what to do.  Holds no token."""


class UnansweredError(UnverifiedError):
    """The API server could not be asked: the same token may do later."""


class UserInfo(msgspec.Struct, frozen=True):
    """
    Whom a token stands for, in the API server's words.

    Attributes:
        extra: What the authenticator adds.  Of a token that is bound to a pod:
            ``authentication.kubernetes.io/pod-name`` and, from Kubernetes 1.30 on, ``…/node-name``.
    """

    username: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: list[str] = []
    error: str = ""


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


async def review_token(api: ApiServer, token: str, now: datetime) -> Person:
    """
    The person, or the service account, that a token stands for.

    Raises:
        UnverifiedError: The API server does not know the token, or does not say.
    """
    user = await review_user(api, token)
    name = user.username
    return Person(
        id=f"{USER}{name}",
        name=name,
        groups=tuple(f"{GROUP}{group}" for group in user.groups),
        is_same_as=(f"{EMAIL}{name.lower()}",) if "@" in name else (),
        verified_at=now,
    )


async def review_user(api: ApiServer, token: str, audience: str = "") -> UserInfo:
    """
    User, groups and extras that a token stands for.

    Args:
        audience: For whom the token must have been made; empty is the API server itself.

    Raises:
        UnansweredError: The API server does not say now.
        UnverifiedError: The API server does not know the token, or it was made for somebody else.
    """
    if not token or len(token) > MAX_TOKEN or not token.isascii() or any(c.isspace() for c in token):
        raise UnverifiedError("the bearer token is not one; nothing was done")
    spec: dict[str, object] = {"token": token, **({"audiences": [audience]} if audience else {})}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    body = msgspec.json.encode(review)
    try:
        answer = await api.read(
            PATH, method="POST", headers={"Content-Type": "application/json"}, body=body, silence_s=REVIEW_S
        )
        status = msgspec.json.decode(answer, type=_Review).status
    except ApiError as error:
        if error.status == 403:
            raise UnansweredError(
                "who you are could not be verified, so nothing was done: grant the service `create` on "
                "tokenreviews.authentication.k8s.io"
            ) from None
        raise UnansweredError(f"who you are could not be verified, so nothing was done: {describe(error)}") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UnansweredError(f"who you are could not be verified, so nothing was done: {describe(error)}") from None
    except msgspec.MsgspecError:
        raise UnansweredError("the API server's answer about you cannot be read; nothing was done") from None
    if not status.authenticated or not status.user.username:
        raise UnverifiedError("the API server does not know your token (expired?); log in again")
    # An authenticator that knows no audiences names none: then nobody says that the token was made for us.
    if audience and audience not in status.audiences:
        raise UnverifiedError(f"the token was not made for the audience {audience!r}")
    return status.user
