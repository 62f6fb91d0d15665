"""The API server as the executor of actions sees it."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from sevenhop.actions.transport import AnsweredError, LostAnswerError, NotSentError
from sevenhop.sources.kubernetes.api import ApiError, ApiServer, ConnectError, describe

ANSWER_WITHIN_S = 15.0
"""Admission webhooks may take 10 s by default (`timeoutSeconds`), and some answer just before."""


class ApiTransport:
    """A `Transport` over the client that the sources use: the same credentials, renewed in the same way."""

    def __init__(self, api: ApiServer, *, answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self._api = api
        self._answer_within_s = answer_within_s

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """See `Transport.send`."""
        headers = {"Content-Type": content_type} if content_type else {}
        try:
            return await self._api.read(
                path, params, method=method, headers=headers, body=body, silence_s=self._answer_within_s
            )
        except ApiError as error:
            message = "" if str(error) == f"HTTP {error.status}" else str(error)
            raise AnsweredError(error.status, error.reason, message, error.causes, error.retry_after_s) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ConnectError) as error:
            raise NotSentError(describe(error, self._api.base_url)) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise LostAnswerError(describe(error, self._api.base_url)) from None
