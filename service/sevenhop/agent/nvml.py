"""All GPUs of the node, by a process that may hang or crash and is then replaced; see `nvml_process`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from sevenhop.agent import nvml_told as told
from sevenhop.agent.nvml_read import with_error
from sevenhop.core.gpu_sample import GpuReading

log = logging.getLogger("sevenhop.agent")

COMMAND = (sys.executable, "-m", "sevenhop.agent.nvml_process")

CALL_S = 5.0
"""All readings of one GPU take 20 ms on a busy node; a GPU in trouble may take a second."""

START_S = 20.0
"""nvmlInit without the persistence daemon initialises every GPU first, about a second each."""

HUNG_RETRY_S = 60.0
FIRST_RETRY_S = 5.0
LONGEST_RETRY_S = 600.0

MAX_ABANDONED = 3
"""Processes that a driver holds for ever (state D, which no signal ends); after so many, what hung is left alone."""

LINE_LIMIT = 1024 * 1024


class NodeReading(msgspec.Struct, frozen=True, kw_only=True):
    """
    What NVML said of the node.

    Attributes:
        is_whole: All GPUs are in `readings`, if only with an error; False where some could not even be named.
        minors, links_up: By UUID; see `nvml_told.Reading`.
        problems: A line each, equal as long as nothing changes.
    """

    readings: tuple[GpuReading, ...] = ()
    is_whole: bool = False
    driver: str = ""
    minors: dict[str, int] = {}
    links_up: dict[str, int | None] = {}
    problems: tuple[str, ...] = ()


class _Hung(msgspec.Struct):
    error: str
    again_at: float
    pause_s: float


OTHERS_ANSWER = "the process that reads NVML gave the answer to another question; a new one is asked"
"""Such as after a reading that was broken off: what follows would be taken for the wrong GPU's."""


class NvmlError(Exception):
    """The process did not answer, or ended; one line."""


class Nvml:
    """
    Args:
        on_xid, on_stirred: Called at once, between readings.
        command: Starts the process.
        call_s, start_s: Limits on one answer, and on the first one of a process.
    """

    def __init__(
        self,
        on_xid: Callable[[told.Xid], None],
        on_stirred: Callable[[], None],
        *,
        command: Sequence[str] = COMMAND,
        call_s: float = CALL_S,
        start_s: float = START_S,
        hung_retry_s: float = HUNG_RETRY_S,
    ) -> None:
        self._on_xid = on_xid
        self._on_stirred = on_stirred
        self._command = tuple(command)
        self._limits = (call_s, start_s)
        self._hung_retry_s = hung_retry_s
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._answer: asyncio.Future[told.Found | told.Reading] | None = None
        self._ahead: list[int] = []  # GPUs asked about in one go whose answers were not awaited yet, in order
        self._early: deque[told.Found | told.Reading] = deque()  # answers that came before they were awaited
        self._fatal = ""
        self._standing: dict[str, None] = {}  # what the process said of NVML as a whole, while it lives
        self._count = -1
        self._known: dict[int, tuple[GpuReading, ...]] = {}
        self._hung: dict[int, _Hung] = {}
        self._abandoned: list[asyncio.subprocess.Process] = []
        self._wait: tuple[float, float] = (0.0, FIRST_RETRY_S)  # not before, next pause
        self._why = ""
        self.replaced = 0

    async def read(self) -> NodeReading:
        """Every GPU once.  Takes at most the time limit for each GPU that hangs, once a minute or less often."""
        now = asyncio.get_running_loop().time()
        if self._process is None and now < self._wait[0]:
            return NodeReading(problems=(self._why,))
        try:
            found = await self._count_gpus()
        except NvmlError as error:
            await self._end()
            pause = self._wait[1]
            self._wait = (now + pause, min(pause * 2, LONGEST_RETRY_S))
            self._why = str(error)
            return NodeReading(problems=(self._why,))
        self._wait = (0.0, FIRST_RETRY_S)
        if found.count != self._count:  # numbered anew: what was known by index may be another GPU now
            self._known.clear()
            self._hung.clear()
            self._count = found.count
        self._ask_ahead(found.count)
        return self._joined(found, [await self._read_one(index) for index in range(found.count)])

    async def close(self) -> None:
        await self._end()

    @property
    def abandoned(self) -> int:
        """Processes that could not be ended."""
        self._abandoned = [process for process in self._abandoned if process.returncode is None]
        return len(self._abandoned)

    async def _count_gpus(self) -> told.Found:
        is_new = self._process is None
        if is_new:
            if self.abandoned >= MAX_ABANDONED:
                raise NvmlError(
                    f"NVML hangs: {self.abandoned} processes are held by the driver; the node needs a reboot"
                )
            await self._start()
        found = await self._ask("count", self._limits[1] if is_new else self._limits[0])
        if not isinstance(found, told.Found):
            raise NvmlError(OTHERS_ANSWER)
        return found

    def _ask_ahead(self, count: int) -> None:
        """All at once: a question by itself wakes both processes, which costs more than its answer."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._ahead = [index for index in range(count) if not self._is_left_alone(index)]
        with contextlib.suppress(OSError):  # it has just ended, which the first answer tells
            self._process.stdin.write("".join(f"read {index}\n" for index in self._ahead).encode())

    def _is_left_alone(self, index: int) -> bool:
        hung, now = self._hung.get(index), asyncio.get_running_loop().time()
        return hung is not None and (now < hung.again_at or self.abandoned >= MAX_ABANDONED)

    async def _read_one(self, index: int) -> told.Reading:
        hung = self._hung.get(index)
        is_asked = self._ahead[:1] == [index]
        # Answers come in the order of the questions: who was left out of those has to wait for the next reading.
        if hung is not None and not is_asked and (self._ahead or self._is_left_alone(index)):
            return told.Reading(index=index, error=hung.error)
        try:
            if self._process is None:
                found = await self._count_gpus()
                if found.count != self._count:
                    return told.Reading(index=index, error="GPUs were numbered anew; read again soon")
            if is_asked:
                del self._ahead[0]
                reading = await self._answered(self._limits[0])
            else:
                reading = await self._ask(f"read {index}", self._limits[0])
            if not isinstance(reading, told.Reading) or reading.index != index:
                raise NvmlError(OTHERS_ANSWER)
        except NvmlError as error:
            await self._end()
            pause = self._hung_retry_s if hung is None else min(hung.pause_s * 2, LONGEST_RETRY_S)
            self._hung[index] = _Hung(str(error), asyncio.get_running_loop().time() + pause, pause)
            log.warning("GPU %d: %s; it is asked again in %.0f s, the others go on", index, error, pause)
            return told.Reading(index=index, error=str(error))
        if self._hung.pop(index, None) is not None:
            log.info("GPU %d answers again", index)
        return reading

    def _joined(self, found: told.Found, answers: Iterable[told.Reading]) -> NodeReading:
        readings: dict[str, GpuReading] = {}
        minors: dict[str, int] = {}
        links: dict[str, int | None] = {}
        problems: dict[str, None] = dict(self._standing)
        is_whole = True
        missing: set[str] = set()
        for answer in answers:
            missing.update(answer.missing)
            mine = answer.readings
            if mine and not mine[0].error:
                self._known[answer.index] = mine
            elif not mine:
                mine = with_error(self._known.get(answer.index, ()), answer.error)
            if not mine:
                # One that is lost is not there, so the others are all; one that only cannot be read may be.
                is_whole = is_whole and answer.is_gone
                problems[f"NVML: GPU {answer.index}: {answer.error}; which one it is, is not known"] = None
            for reading in mine:
                readings.setdefault(reading.uuid, reading)
            if mine:
                minors[mine[0].uuid] = answer.minor
                links[mine[0].uuid] = answer.links_up
        if missing:
            problems[f"NVML: driver {found.driver or '(unknown)'} cannot tell: {', '.join(sorted(missing))}"] = None
        if self.abandoned:
            problems[f"NVML: {self.abandoned} processes hang in the driver and cannot be ended"] = None
        return NodeReading(
            readings=tuple(readings.values()),
            is_whole=is_whole,
            driver=found.driver,
            minors=minors,
            links_up=links,
            problems=tuple(problems),
        )

    async def _start(self) -> None:
        self._fatal = ""
        self._standing = {}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT
            )
        except OSError as error:
            raise NvmlError(f"the process that reads NVML cannot be started: {error.strerror or error}") from None
        self._listening = asyncio.create_task(self._listen(self._process))

    async def _ask(self, question: str, limit_s: float) -> told.Found | told.Reading:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{question}\n".encode())
        except OSError:  # it has just ended
            raise NvmlError(self._fatal or "the process that reads NVML ended") from None
        return await self._answered(limit_s)

    async def _answered(self, limit_s: float) -> told.Found | told.Reading:
        """The answer to the oldest question that has none."""
        if self._early:
            return self._early.popleft()
        if self._listening is None or self._listening.done():
            raise NvmlError(self._fatal or "the process that reads NVML ended")
        self._answer = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(limit_s):
                return await self._answer
        except TimeoutError:
            raise NvmlError(f"NVML did not answer within {limit_s:g} s") from None
        finally:
            self._answer = None

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                self._hear(told.decode(line), is_current=process is self._process)
        except (ValueError, msgspec.MsgspecError) as error:
            if process is self._process:
                self._fatal = f"the process that reads NVML cannot be understood: {error}"
        code = await process.wait() if self._fatal == "" else 1
        if process is self._process and self._answer is not None and not self._answer.done():
            self._answer.set_exception(NvmlError(self._fatal or f"the process that reads NVML ended ({code})"))

    def _hear(self, what: told.Told, *, is_current: bool) -> None:
        """`is_current` is False for a process that was given up and is slow to die: its answers are nobody's."""
        match what:
            case told.Xid():
                self._on_xid(what)
            case told.Stirred():
                self._on_stirred()
            case _ if not is_current:
                pass
            case told.Said(text=text, is_fatal=True):
                self._fatal = text
            case told.Said(text=text):
                self._standing[text] = None
            case told.Found() | told.Reading():
                if self._answer is not None and not self._answer.done():
                    self._answer.set_result(what)
                else:
                    self._early.append(what)

    async def _end(self) -> None:
        process, self._process = self._process, None
        self._ahead, self._early = [], deque()
        listening, self._listening = self._listening, None
        if process is None:
            return
        self.replaced += 1
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode is None:
            # Not process.kill(): it polls first, takes the exit code from asyncio's watcher, and that complains.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        try:
            async with asyncio.timeout(1.0):
                await process.wait()
        except TimeoutError:
            self._abandoned.append(process)
        if listening is not None:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
