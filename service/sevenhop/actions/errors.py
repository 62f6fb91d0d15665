"""How a step ends when it does not end well.  What is refused becomes an answer; the rest is tried again."""

from __future__ import annotations


class ActError(Exception):
    """The text is one line for people, without secrets."""


class PermitError(ActError):
    """There is no permit for this step, now.  Nothing was asked of the cluster."""


class RetryableActError(ActError):
    """
    Surely nothing was changed, and the same later may succeed.

    Attributes:
        retry_after: Seconds that the server asks to wait; None if it says nothing.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UncertainActError(ActError):
    """Something may have been changed: deliver the same act again with `uncertain`, which looks first."""


class RefusedError(ActError):
    """The API server, or what stands there, says no; the same again would be refused again."""


class GoneError(RefusedError):
    """The object, or that incarnation of it, is not there."""


class ChangedError(RefusedError):
    """A precondition did not hold: it looks other than what was agreed on."""
