"""Writes incidents to a terminal, or to a pipe."""

from __future__ import annotations

import asyncio
import sys
from typing import TextIO

from sevenhop.channels.channel import Delivery, PermanentDeliveryError, RetryableDeliveryError
from sevenhop.channels.console.render import Look, look_of, render
from sevenhop.channels.console.settings import ConsoleSettings
from sevenhop.core.effects import Notify


class ConsoleChannel:
    """
    A terminal cannot edit what it showed, so a quiet change is one line and only a loud one is shown in full.

    Nobody can be asked whether an earlier process printed: after a crash a message may stand there twice, on another
    terminal perhaps, and is never missing.
    """

    def __init__(self, settings: ConsoleSettings, stream: TextIO | None = None) -> None:
        self._settings = settings
        self._stream = stream if stream is not None else sys.stdout
        self._shown: dict[str, tuple[str, str]] = {}  # incident key → last effect shown, and its status

    async def deliver(self, notify: Notify, *, uncertain: bool) -> Delivery:  # noqa: ARG002
        shown = self._shown.get(notify.key)
        if shown is not None and shown[0] == notify.id:
            return Delivery(reference="")
        was_over = shown is not None and shown[1] == "resolved"
        text = render(notify, self._look(), is_first=shown is None, was_over=was_over)
        # In a thread: a paused terminal or a full pipe must not hold up the loop.
        await asyncio.to_thread(self._write, text)
        self._shown.pop(notify.key, None)  # so that the longest untouched is forgotten first
        self._shown[notify.key] = (notify.id, notify.message.status)
        while len(self._shown) > _REMEMBERED:
            self._shown.pop(next(iter(self._shown)))
        return Delivery(reference="")

    async def close(self) -> None:
        """The stream is not ours to close."""

    def _look(self) -> Look:
        return look_of(self._stream, one_line=self._settings.style == "line")

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
            self._stream.flush()
        except BrokenPipeError:
            raise PermanentDeliveryError("console: whoever read the output has gone") from None
        except ValueError:
            raise PermanentDeliveryError("console: the output is closed") from None
        except OSError as error:
            raise RetryableDeliveryError(f"console: cannot write: {error.strerror}") from None


_REMEMBERED = 1_000
"""Incidents of which the last message is remembered, so that the same one is not printed twice."""
