"""Starts the programs of one cluster and ends them when their owner ends, however it ends.

Run as a program of its own, with a folder as its argument; `cluster.Cluster` talks to it in lines of
JSON on stdin and stdout. The owner may be killed with `kill -9` and can then clean up nothing: here
stdin closes or the parent changes, the programs are killed and the folder goes. Should the supervisor
itself be killed, the kernel kills the programs (PR_SET_PDEATHSIG; that is why it starts no threads:
the signal belongs to the thread that forked).

Standard library only, and it imports nothing of ours: it must start in milliseconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_OWNER_CHECK_SECONDS = 1.0

_libc = ctypes.CDLL(None)


class Supervisor:
    """Holds the programs of one cluster; `serve` returns when they have to end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.owner: int | None = os.getppid()  # None once detached
        self.keep = False
        self.programs: dict[str, subprocess.Popen[bytes]] = {}

    def serve(self) -> None:
        """Answer requests until told to end, or until nobody is there who could ask."""
        buffer = b""
        while True:
            watched = [] if self.owner is None else [0]
            readable, _, _ = select.select(watched, [], [], _OWNER_CHECK_SECONDS)
            # A fork of the owner may hold the pipe open after its death, so the parent counts too.
            if self.owner is not None and os.getppid() != self.owner:
                return
            if not readable:
                continue
            chunk = os.read(0, 65536)
            if not chunk:
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                request = json.loads(line)
                answer = self.answer(request)
                os.write(1, json.dumps(answer).encode() + b"\n")
                if request["op"] == "end":
                    return

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what one request asks; an error is an answer too."""
        try:
            match request["op"]:
                case "start":
                    return {"pid": self.start(request["name"], request["argv"])}
                case "stop":
                    self.stop(request["name"], request["grace"])
                case "signal":
                    self.signal(request["name"], request["signal"])
                case "ended":
                    return {n: p.returncode for n, p in self.programs.items() if p.poll() is not None}
                case "detach":
                    self.owner = None
                case "end":
                    self.keep = request["keep"]
                    self.end()
                case unknown:
                    return {"error": f"unknown request {unknown}"}
        except (OSError, KeyError) as problem:
            return {"error": repr(problem)}
        return {}

    def start(self, name: str, argv: list[str]) -> int:
        """Start a program in a process group of its own, its output going to `<name>.log`."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.programs[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                process_group=0,
                preexec_fn=_die_with_parent,  # safe: no threads here
            )
        return self.programs[name].pid

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a program that is still there."""
        program = self.programs[name]
        if program.poll() is not None:
            raise ProcessLookupError(f"{name} ended with {program.returncode}")
        os.killpg(program.pid, number)

    def stop(self, name: str, grace: float) -> None:
        """End one program, by SIGKILL if `grace` seconds after SIGTERM it is still there."""
        program = self.programs.pop(name)
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGTERM)
            os.killpg(program.pid, signal.SIGCONT)  # one that is paused would not see the first
            try:
                program.wait(grace)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
        program.wait()

    def end(self) -> None:
        """
        Kill everything, latest first, and remove the folder.

        No SIGTERM: nothing here is worth saving, and kube-apiserver takes minutes to leave politely
        when etcd is gone already.
        """
        for program in reversed(self.programs.values()):
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
        for program in self.programs.values():
            program.wait()
        self.programs.clear()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _leave(*_: object) -> None:
    raise SystemExit


def main() -> None:
    """Serve the folder named on the command line."""
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's to handle
    supervisor = Supervisor(Path(sys.argv[1]))
    try:
        supervisor.serve()
    finally:
        supervisor.end()


if __name__ == "__main__":
    main()
