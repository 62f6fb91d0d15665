"""
`python -m tests.mutation [--sample N] [--jobs N] [NAME …]`: exit code 1 if a mutant survives.

Each mutant runs in a process of its own, forked from one that has its libraries loaded, with the changed module in the
place of the real one; files are never touched.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location, spec_from_loader
from itertools import product
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

import hypothesis
from _pytest.mark.structures import ParameterSet

import sevenhop.core.inventory.objects
import sevenhop.core.subject  # noqa: F401  what guards need and is not mutated: loaded once, for all
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.targets import EQUIVALENT, TARGETS, Target

ROOT = Path(__file__).parents[2]
LONGEST_S = 60
"""A mutant that runs longer hangs, and is noticed by that."""


class Job(NamedTuple):
    target: Target
    mutant: Mutant


class _Changed(MetaPathFinder, Loader):
    """Loads one module from changed code."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, origin=self._path) if fullname == self._name else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = self._path
        exec(self._code, module.__dict__)


def begin(target: Target, code: CodeType) -> int:
    """Start the tests with this code in the place of the target; returns the process's id."""
    child = os.fork()
    if child == 0:
        result = 1  # whatever breaks on the way was noticed
        try:
            signal.alarm(LONGEST_S)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                result = _run_tests(target, code)
        finally:
            os._exit(result)
    return child


def _run_tests(target: Target, code: CodeType) -> int:
    """0 if every test passes; what a test raises goes on.  Without pytest, which costs ten times as much."""
    sys.modules.pop(target.module, None)  # what the libraries above have loaded of it
    sys.meta_path.insert(0, _Changed(target.module, str(ROOT / target.path), code))
    hypothesis.settings.register_profile(
        "mutation", max_examples=40, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    hypothesis.settings.load_profile("mutation")
    for path in target.tests:
        tests = [f for name, f in vars(_module(path)).items() if name.startswith("test_")]
        if not tests:
            raise AssertionError(f"no tests in {path}")
        for test in tests:
            for arguments in _cases(test):
                test(**arguments)
    return 0


def _module(path: str) -> ModuleType:
    spec = spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _cases(test: Callable[..., None]) -> Iterator[dict[str, object]]:
    """The arguments that `pytest.mark.parametrize` asks for; these tests use no fixtures."""
    tables = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        names, values = mark.args
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        rows = [
            value.values if isinstance(value, ParameterSet) else value if len(names) > 1 else (value,)
            for value in values
        ]
        tables.append([dict(zip(names, row, strict=True)) for row in rows])
    for combination in product(*tables):
        yield {name: value for row in combination for name, value in row.items()}


def jobs_of(targets: Sequence[Target], sample: int) -> tuple[list[Job], list[str]]:
    """Mutants to try, evenly spread if only a sample is wanted, and entries of `EQUIVALENT` that fit nothing."""
    found: list[Job] = []
    equivalent: set[tuple[str, str, str]] = set()
    for target in targets:
        for mutant in mutants((ROOT / target.path).read_text("utf-8")):
            key = (Path(target.path).stem, *mutant.key)
            if key in EQUIVALENT:
                equivalent.add(key)
            else:
                found.append(Job(target, mutant))
    names = {Path(target.path).stem for target in targets}
    stale = [f"{name}: {line!r}: {change}" for name, line, change in EQUIVALENT.keys() - equivalent if name in names]
    if sample and sample < len(found):
        found = [found[i * len(found) // sample] for i in range(sample)]
    return found, stale


def verdicts(jobs: Sequence[Job], at_once: int) -> Iterator[tuple[Job, int]]:
    """
    Each mutant with how its tests ended: 0 is a survivor, negative a signal.

    No threads: what one of them holds at a fork is never let go in the child.
    """
    waiting = list(reversed(jobs))
    running: dict[int, Job] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            job = waiting.pop()
            running[begin(job.target, compile(job.mutant.tree, job.target.path, "exec"))] = job
        child, status = os.wait()
        yield running.pop(child), os.waitstatus_to_exitcode(status)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="modules, such as guards_world; all if none")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only so many, evenly spread")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    args = parser.parse_args()
    os.chdir(ROOT)
    targets = [t for t in TARGETS if not args.names or Path(t.path).stem in args.names]
    for target in targets:
        child = begin(target, compile((ROOT / target.path).read_text("utf-8"), target.path, "exec"))
        if os.waitpid(child, 0)[1]:
            print(f"{target.path}: its tests fail without any change; mend them first", file=sys.stderr)
            return 2
    jobs, stale = jobs_of(targets, args.sample)
    started = time.monotonic()
    survivors: list[Job] = []
    hung = 0
    for count, (job, ended) in enumerate(verdicts(jobs, args.jobs), 1):
        hung += ended == -signal.SIGALRM
        if ended == 0:
            survivors.append(job)
            print(f"\r{_said(job)}", flush=True)
        if count % 10 == 0 or count == len(jobs):
            print(f"\r{count}/{len(jobs)} mutants, {len(survivors)} survived", end="", flush=True)
    seconds = time.monotonic() - started
    print(f"\n{len(jobs) - len(survivors)} of {len(jobs)} noticed in {seconds:.0f} s, {hung} of them hung")
    for text in stale:
        print(f"targets.py lists what is no mutant any more: {text}")
    return 1 if survivors or stale else 0


def _said(job: Job) -> str:
    return f"{job.target.path}:{job.mutant.line}: survived: {job.mutant.change}: {job.mutant.text}"


if __name__ == "__main__":
    sys.exit(main())
