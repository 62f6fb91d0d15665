"""Builds the double of NVML (`nvml/nvml.c`) and writes what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.shared import missing

SOURCE = Path(__file__).parent / "nvml" / "nvml.c"
UUID = "GPU-{0}{0}{0}{0}{0}{0}{0}{0}-0000-0000-0000-000000000000"


def build(folder: Path, *, old: bool = False) -> Path:
    """The folder with ``libnvidia-ml.so.1``; the test is skipped without a C compiler, or fails if CI is set."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        missing("no C compiler: the double of NVML cannot be built")
    folder.mkdir(parents=True, exist_ok=True)
    flags = [
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-format-truncation",
        *(["-DOLD"] if old else []),
    ]
    subprocess.run([compiler, *flags, "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)], check=True)
    return folder


class Script:
    """
    What the double says: lines of GPUs by index, instances, events; written as one file at each change.

    A GPU is as `HEALTHY` until `gpu` says otherwise.
    """

    HEALTHY = {
        "name": "NVIDIA_H100_80GB_HBM3", "used": "1000", "total": "81559", "util": "40", "power": "301500",
        "temp": "50", "throttle": "4", "ecc_u": "0", "ecc_c": "2", "remap": "0,0", "links": "18/18", "procs": "1",
        "gpm": "45.5,12.5",
    }  # fmt: skip

    def __init__(self, file: Path, gpus: int = 2, driver: str = "550.54.15") -> None:
        self._file = file
        self._driver = driver
        self._gpus: dict[int, dict[str, str]] = {}
        self._more: list[str] = []
        self._events = 0
        for index in range(gpus):
            self._gpus[index] = {
                **self.HEALTHY, "uuid": UUID.format(index), "minor": str(index),
                "pci": f"00000000:{0x3B + index:02X}:00.0",
            }  # fmt: skip
        self._write()

    def gpu(self, index: int, **values: str | None) -> None:
        """Change what a GPU says; None leaves a value out."""
        for key, value in values.items():
            if value is None:
                self._gpus[index].pop(key, None)
            else:
                self._gpus[index][key] = value
        self._write()

    def vanish(self, index: int) -> None:
        """The driver does not list it any more; the one with the highest index, or those behind it go too."""
        del self._gpus[index]
        self._write()

    def mig(self, index: int, slot: int, **values: str) -> None:
        """Add an instance."""
        self._gpus[index]["mig"] = "1"
        self._more.append(f"mig {index} {slot} {_pairs(values)}")
        self._write()

    def xid(self, index: int, xid: int) -> None:
        """Report one to whoever waits for events."""
        self._events += 1
        self._more.append(f"event {self._events} {index} 8 {xid}")
        self._write()

    def _write(self) -> None:
        lines = [
            f"driver {self._driver}",
            *(f"gpu {i} {_pairs(values)}" for i, values in self._gpus.items()),
            *self._more,
        ]
        new = self._file.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.replace(self._file)  # never read half


def _pairs(values: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())
