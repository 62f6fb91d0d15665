"""A driver that hangs, crashes or is missing takes one GPU at most, and never the agent."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sevenhop.agent import nvml as supervisor
from sevenhop.agent.nvml import Nvml
from sevenhop.agent.nvml_told import Xid

# Speaks as `nvml_process` does, and does what a file beside it says: "hang 1", "die 1", "count 1", "bad 0".
PROCESS = """
import json, os, sys, time
def say(**what): print(json.dumps(what), flush=True)
path = sys.argv[1]
def todo(): return [line.split() for line in open(path)]
if ["no"] in todo(): say(type="said", text="NVML: no driver", is_fatal=True); sys.exit(1)
if ["xid"] in todo(): say(type="xid", xid=79, pci="0000:3b:00.0", uuid="GPU-0")
for line in sys.stdin:
    words = line.split()
    does = todo()
    if words[0] == "count":
        if ["hang", "count"] in does: time.sleep(3600)
        say(type="found", count=next((int(w[1]) for w in does if w[0] == "count"), 3), driver="550")
    elif ["hang", words[1]] in does: time.sleep(3600)
    elif ["die", words[1]] in does: os.abort()
    elif ["rubbish", words[1]] in does: print("not json", flush=True); time.sleep(3600)
    elif ["other", words[1]] in does: say(type="reading", index=0, readings=[{"index": 0, "uuid": "GPU-0"}])
    elif ["late", words[1]] in does:
        time.sleep(0.1)
        say(type="xid", xid=48, pci="0000:3b:00.0", uuid="GPU-0")
        say(type="reading", index=int(words[1]), readings=[{"index": int(words[1]), "uuid": "GPU-" + words[1]}])
    elif ["lost", words[1]] in does: say(type="reading", index=int(words[1]), error="GPU is lost", is_gone=True)
    else:
        say(type="reading", index=int(words[1]), minor=int(words[1]), missing=["nvmlNew"] if ["old"] in does else [],
            readings=[{"index": int(words[1]), "uuid": "GPU-" + words[1], "utilization": 0.5}])
"""


class Node:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "todo"
        script = folder / "process.py"
        script.write_text(PROCESS)
        self.xids: list[Xid] = []
        self.does("")
        self.nvml = Nvml(
            self.xids.append,
            lambda: None,
            command=(sys.executable, str(script), str(self._file)),
            call_s=3.0,
            start_s=10,
            hung_retry_s=3600,  # a test that wants it asked again says so
        )

    def does(self, text: str) -> None:
        self._file.write_text(text)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(tmp_path)
    yield node
    await node.nvml.close()


async def test_all_is_well(node: Node) -> None:
    """Every GPU, and the numbers of their device files."""
    read = await node.nvml.read()
    assert [(each.uuid, each.error) for each in read.readings] == [("GPU-0", ""), ("GPU-1", ""), ("GPU-2", "")]
    assert (read.is_whole, read.driver, read.problems) == (True, "550", ())
    assert read.minors == {"GPU-0": 0, "GPU-1": 1, "GPU-2": 2}
    assert node.nvml.replaced == 0


@pytest.mark.parametrize("how", ["hang", "die", "rubbish"])
async def test_one_gpu_in_trouble(node: Node, how: str) -> None:
    """It says so and claims nothing; the others go on, and the sample still is whole."""
    await node.nvml.read()
    node.does(f"{how} 1")
    read = await node.nvml.read()

    by_uuid = {each.uuid: each for each in read.readings}
    assert by_uuid["GPU-1"].error
    assert by_uuid["GPU-1"].utilization is None
    assert [by_uuid[uuid].utilization for uuid in ("GPU-0", "GPU-2")] == [0.5, 0.5]
    assert read.is_whole
    assert node.nvml.replaced == 1


async def test_it_is_left_alone_for_a_while_and_then_answers(node: Node) -> None:
    """Its time limit is not paid at each reading."""
    await node.nvml.read()
    node.does("hang 1")
    await node.nvml.read()
    node.does("")
    again = await node.nvml.read()
    assert again.readings[1].error == "NVML did not answer within 3 s"
    node.nvml._hung[1].again_at = 0.0
    assert [each.error for each in (await node.nvml.read()).readings] == ["", "", ""]


async def test_who_is_left_alone_takes_nobody_else_s_answer(node: Node) -> None:
    """All GPUs are asked in one go; one in the middle that hung before is asked among them again, in its place."""
    node.does("hang 1")
    await node.nvml.read()
    for again in (False, True):
        node.does("")
        if again:
            node.nvml._hung[1].again_at = 0.0
        read = await node.nvml.read()
        assert [each.uuid for each in read.readings if not each.error] == (
            ["GPU-0", "GPU-1", "GPU-2"] if again else ["GPU-0", "GPU-2"]
        )
        assert read.minors == ({"GPU-0": 0, "GPU-1": 1, "GPU-2": 2} if again else {"GPU-0": 0, "GPU-2": 2})


async def test_a_process_that_ends_after_some_answers(node: Node) -> None:
    """What it had answered counts, and the rest is asked of the next one."""
    await node.nvml.read()
    node.does("die 1")
    read = await node.nvml.read()
    assert [each.uuid for each in read.readings if not each.error] == ["GPU-0", "GPU-2"]


async def test_a_gpu_that_could_never_be_named(node: Node) -> None:
    """Which one hangs is not known, so the sample is not whole: nobody may conclude that it is gone."""
    node.does("hang 1")
    read = await node.nvml.read()
    assert [each.uuid for each in read.readings] == ["GPU-0", "GPU-2"]
    assert not read.is_whole
    assert "GPU 1: NVML did not answer within 3 s" in read.problems[0]


async def test_a_gpu_that_is_lost_when_we_start(node: Node) -> None:
    """The driver says that it is not there: the others are all."""
    node.does("lost 1")
    read = await node.nvml.read()
    assert [each.uuid for each in read.readings] == ["GPU-0", "GPU-2"]
    assert read.is_whole


async def test_a_gpu_that_is_lost_later(node: Node) -> None:
    """Who it is stays known, also to a process that has never seen it."""
    await node.nvml.read()
    node.does("lost 1\ndie 2")
    await node.nvml.read()  # the process is replaced after GPU 2
    read = await node.nvml.read()
    assert [(each.uuid, each.error) for each in read.readings][1] == ("GPU-1", "GPU is lost")


async def test_gpus_that_are_numbered_anew(node: Node) -> None:
    """With another count an index may mean another GPU: nothing is remembered by it."""
    await node.nvml.read()
    node.does("count 2\nhang 1")
    read = await node.nvml.read()
    assert [(each.uuid, each.error) for each in read.readings] == [("GPU-0", "")]
    assert not read.is_whole


@pytest.mark.parametrize(("does", "said"), [("no", "NVML: no driver"), ("hang count", "NVML did not answer within")])
async def test_no_nvml_at_all(node: Node, does: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read, it says why, and it is not started over and over."""
    if "hang" in does:
        node.nvml._limits = (1.0, 1.0)
    node.does(does)
    read = await node.nvml.read()
    node.nvml._limits = (1.0, 10.0)
    assert (read.readings, read.is_whole) == ((), False)
    assert said in read.problems[0]
    before = node.nvml.replaced
    assert (await node.nvml.read()).problems == read.problems
    assert node.nvml.replaced == before
    node.does("")
    monkeypatch.setattr(node.nvml, "_wait", (0.0, 5.0))
    assert (await node.nvml.read()).is_whole


async def test_a_program_that_is_not_there() -> None:
    """It is said, in a line."""
    nvml = Nvml(lambda _: None, lambda: None, command=("/nowhere/python",))
    assert "cannot be started" in (await nvml.read()).problems[0]


async def test_xids_come_unasked(node: Node) -> None:
    """While a reading goes on."""
    node.does("xid")
    await node.nvml.read()
    assert [(each.xid, each.pci) for each in node.xids] == [(79, "0000:3b:00.0")]


async def test_what_an_old_driver_cannot_tell_is_said_once(node: Node) -> None:
    """In one line, equal each time."""
    node.does("old")
    problems = [(await node.nvml.read()).problems for _ in range(2)]
    assert problems == [("NVML: driver 550 cannot tell: nvmlNew",)] * 2


async def test_processes_that_no_signal_ends_are_bounded(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver may hold a process for ever; after a few of them, what hangs is left alone."""
    await node.nvml.read()
    node.does("hang 1")

    class Stuck:
        returncode = None

    node.nvml._abandoned = [Stuck()] * supervisor.MAX_ABANDONED  # type: ignore[list-item]
    node.nvml._hung[1] = supervisor._Hung("NVML did not answer within 3 s", 0.0, 0.1)
    before = node.nvml.replaced
    read = await node.nvml.read()
    assert node.nvml.replaced == before
    assert read.readings[1].error
    assert "3 processes hang in the driver" in read.problems[-1]


async def test_a_reading_that_was_broken_off(node: Node) -> None:
    """Its answers are still on their way: no GPU takes another one's, and nothing fails but one reading."""
    await node.nvml.read()
    reading = asyncio.create_task(node.nvml.read())
    while not node.nvml._ahead:  # noqa: ASYNC110  asked, and not answered yet
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    async with asyncio.timeout(5):
        while not node.nvml._early:  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.01)
    read = await node.nvml.read()
    assert (read.readings, read.problems) == ((), (supervisor.OTHERS_ANSWER,))
    node.nvml._wait = (0.0, supervisor.FIRST_RETRY_S)
    assert [each.uuid for each in (await node.nvml.read()).readings] == ["GPU-0", "GPU-1", "GPU-2"]


async def test_an_answer_about_another_gpu(node: Node) -> None:
    """It is nobody's, and counts for no GPU: the process is replaced."""
    node.does("other 1")
    read = await node.nvml.read()
    assert [each.uuid for each in read.readings] == ["GPU-0", "GPU-2"]
    assert node.nvml.replaced == 1


async def test_one_that_was_given_up_is_slow_to_die(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it still answers is not taken for an answer of the next one; an XID that it still tells counts."""
    kill = os.kill
    later = asyncio.get_running_loop().call_later
    monkeypatch.setattr(os, "kill", lambda pid, sign: later(0.3, kill, pid, sign))
    node.does("other 1\nlate 2")
    read = await node.nvml.read()
    assert [each.uuid for each in read.readings] == ["GPU-0", "GPU-2"]
    assert len(node.xids) == 2  # one of each process
    assert node.nvml.replaced == 1
