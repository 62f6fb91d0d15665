"""What carries a request to the API server, and the ways in which one ends other than well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Transport(Protocol):
    """One API server, with credentials that renew themselves; built by the runtime."""

    async def send(
        self, method: str, path: str, params: Mapping[str, str], *, body: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """
        The body of a good answer.

        Raises:
            AnsweredError: The server answered, and not well.
            NotSentError: It surely did not arrive.
            LostAnswerError: It may have arrived, and may have been carried out.
        """
        ...


class TransportError(Exception):
    """The text is one line for people and holds no secret."""


class AnsweredError(TransportError):
    """
    Attributes:
        status, reason: HTTP status and Kubernetes' own word for it.
        message: The server's text; text from the cluster.
        causes: Messages of ``details.causes``.
        retry_after_s: Seconds that the server asks to wait; None if it does not.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        causes: tuple[str, ...] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"HTTP {status} {reason}".strip())
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after_s = retry_after_s


class NotSentError(TransportError):
    """No connection: nothing was asked of the server."""


class LostAnswerError(TransportError):
    """The request went out and no whole answer came back."""
