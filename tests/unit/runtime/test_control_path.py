"""A state folder may have any name that the file system takes, also one that is too long for a socket."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.runtime import control_path
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control import Control
from sevenhop.runtime.control_path import FITS_BYTES, SOCKET, way_to_door


async def emit(_events: list[Event]) -> None:
    """Nothing is asked for here."""


def control() -> Control:
    engine = Engine("prod", (), (), Policy(), DeskSettings(receivers=("slack",)))
    return Control(engine, emit, Clock(), lambda: {"well": True})


def folder_of(root: Path, size_bytes: int) -> Path:
    """Whose door has a path of exactly so many bytes; of two-byte letters, as far as they fit."""
    room = size_bytes - len(os.fsencode(root / "x" / SOCKET)) + 1
    folder = root / ("ä" * (room // 2) + "x" * (room % 2))
    folder.mkdir()
    assert len(os.fsencode(folder / SOCKET)) == size_bytes
    return folder


@pytest.mark.parametrize("size_bytes", [FITS_BYTES, FITS_BYTES + 1, 107, 108, 200])
async def test_the_door_opens_and_is_found_by_a_path_of_any_length(size_bytes: int) -> None:
    """Bound and connected to in that very folder, for its owner alone; a second start takes its place."""
    with TemporaryDirectory(prefix="s") as root:  # pytest's own folders have long names
        folder = folder_of(Path(root), size_bytes)
        for _ in range(2):
            served = control()
            await served.start(folder)
            try:
                assert await asyncio.to_thread(ask_service, folder, "GET", "/doctor") == {"well": True}
                assert stat.S_IMODE((folder / SOCKET).stat().st_mode) == 0o600
            finally:
                await served.close()
        assert await asyncio.to_thread(ask_service, folder, "GET", "/doctor") is None  # left there, and nobody listens


async def test_two_services_with_long_paths_at_once() -> None:
    """Both doors are opened by way of a folder that is closed again, and each is its own."""
    with TemporaryDirectory(prefix="s") as root:
        folders = [folder_of(Path(root), size_bytes) for size_bytes in (200, 201)]
        served = [control() for _ in folders]
        for each, folder in zip(served, folders, strict=True):
            await each.start(folder)
        await served[0].close()
        answers = [await asyncio.to_thread(ask_service, folder, "GET", "/doctor") for folder in folders]
        await served[1].close()
        assert answers == [None, {"well": True}]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_nothing_stays_open(tmp_path: Path) -> None:
    """A command line that asks all day needs no more open files than one that asks once."""
    folder = folder_of(tmp_path, 250)
    before = open_files()
    for _ in range(3):
        with way_to_door(folder) as way:
            assert len(way) <= FITS_BYTES
        with pytest.raises(FileNotFoundError), way_to_door(folder / "nowhere"):
            pass
    assert open_files() == before


async def test_without_a_short_way_it_is_said_that_the_path_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a system without /proc: service and command line name it, and nothing is called `None`."""
    monkeypatch.setattr(control_path, "_OPEN_FOLDERS", tmp_path / "nowhere")
    folder = folder_of(tmp_path, 250)
    with pytest.raises(OSError, match="path too long"):
        await control().start(folder)
    (folder / SOCKET).touch()
    with pytest.raises(UsageError, match=r"sevenhop\.sock: AF_UNIX path too long; is it your service\?"):
        await asyncio.to_thread(ask_service, folder, "GET", "/doctor")
