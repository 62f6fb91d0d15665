"""What every command about a cluster shares: options, connecting, one look, and the service's local door."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from sevenhop.cli.output import UsageError, fail
from sevenhop.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from sevenhop.core.engine import Engine
    from sevenhop.sources.kubernetes.api import ApiServer

EXIT_UNREACHABLE = 3

PATIENCE_S = 10.0
STORED_WITHIN_S = 40.0
"""Longer than the service itself waits until something is stored."""

CONFIG = "SEVENHOP_CONFIG"
"""Environment variable with the path of the settings: what is typed in the service's pod finds them by it."""

NO_SERVICE = "no service runs here; run the command on the service's host, with its --state"


class UnreachableError(Exception):
    """The cluster cannot be reached or refuses; one line with the fix.  Exit code 3."""


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """kubectl's habits, and our settings."""
    parser.add_argument("--context", default="", help="kubeconfig context; default: the current one")
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="default: KUBECONFIG, ~/.kube/config, the pod's account"
    )
    parser.add_argument(
        "--config",
        default=os.environ.get(CONFIG, ""),
        metavar="FILE",
        help=f"settings (docs/reference/settings.md); default: {CONFIG}",
    )
    parser.add_argument("--state", default="", metavar="FOLDER", help="state folder of the service")


def add_fleet_option(parser: argparse.ArgumentParser) -> None:
    """Which cluster, where a worker has many."""
    parser.add_argument(
        "--cluster", default="", metavar="NAME", help="at a worker of many clusters: which one; any worker will do"
    )


def of_cluster(args: argparse.Namespace) -> dict[str, str]:
    """What the question adds about the cluster."""
    return {"cluster": args.cluster} if args.cluster else {}


def add_namespace_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", default="", help="only this namespace; default: all")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces (the default)")


def settings_of(args: argparse.Namespace, **overrides: Any) -> Settings:
    """
    Settings with what the command line says.

    Raises:
        UsageError: With all problems, one per line.
    """
    settings = read_settings(args.config, state=Path(args.state) if args.state else None, **overrides)
    wanted = {name: value for name in ("kubeconfig", "context") if (value := getattr(args, name))}
    return settings.model_copy(update={"kubernetes": settings.kubernetes.model_copy(update=wanted)})


def read_settings(config: str, **overrides: Any) -> Settings:
    """
    Settings, with the playbooks that they name.

    Raises:
        UsageError: With all problems, one per line.
    """
    try:
        settings = load_settings(Path(config) if config else None, **overrides)
        problems = _playbook_problems(settings, config or "settings")
    except SettingsError as error:
        problems = error.problems
    if not problems:
        return settings
    *others, last = problems
    for problem in others:
        fail(problem)
    raise UsageError(last)


def _playbook_problems(settings: Settings, where: str) -> list[str]:
    """Said before anything else is done: who turns a playbook on learns at once that nobody could approve it."""
    if not settings.playbooks and not settings.remediation.playbooks:
        return []  # the shipped ones, as they are
    from sevenhop.playbooks_of import build_playbooks, remediation_of

    book = build_playbooks(settings)
    try:
        remediation_of(settings, book)
    except SettingsError as error:
        return [*map(str, book.problems), *(f"{where}: {problem}" for problem in error.problems)]
    return [*map(str, book.problems)]


async def connect(settings: Settings) -> ApiServer:
    """
    A server that answers.

    Raises:
        UnreachableError: It does not, or refuses us.
    """
    from sevenhop.sources.kubernetes.api import ConnectError
    from sevenhop.sources.kubernetes.connect import connect as connect_to

    kubernetes = settings.kubernetes
    async with contextlib.AsyncExitStack() as opened:
        try:
            api = await connect_to(kubernetes.kubeconfig or None, kubernetes.context or None)
            await opened.enter_async_context(api)
            await api.check()
        except ConnectError as error:
            raise UnreachableError(str(error)) from None
        opened.pop_all()  # stays open: it is the caller's now, and was ours until here, also for a Ctrl-C
        return api


async def connect_quietly(settings: Settings) -> str:
    """
    The bearer token that this kubeconfig authenticates with; empty with a client certificate.  Nothing is asked.

    Raises:
        UnreachableError: There is no configuration, or one that cannot be used.
    """
    from sevenhop.sources.kubernetes.api import ConnectError
    from sevenhop.sources.kubernetes.connect import connect as connect_to

    kubernetes = settings.kubernetes
    try:
        async with await connect_to(kubernetes.kubeconfig or None, kubernetes.context or None) as api:
            return api.bearer_token
    except ConnectError as error:
        raise UnreachableError(str(error)) from None


def cluster_name(settings: Settings) -> str:
    """The name in every message: from the settings, else the context's, else ``cluster``."""
    if settings.cluster:
        return settings.cluster
    if settings.kubernetes.context:
        return settings.kubernetes.context
    return _current_context(settings.kubernetes.kubeconfig) or "cluster"


def _current_context(kubeconfig: str) -> str:
    import yaml

    path = (
        kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or str(Path("~/.kube/config").expanduser())
    )
    try:
        data = yaml.safe_load(Path(path).read_text("utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return ""  # connecting has said what is wrong with it
    return str(data.get("current-context") or "") if isinstance(data, dict) else ""


class Progress:
    """A bar on stderr while something takes long; nothing where stderr is no terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = False
        self._last = 0.0

    def show(self, done: int, total: int, note: str) -> None:
        if not sys.stderr.isatty() or (time.monotonic() - self._last < 0.1 and done < total):
            return
        self._last = time.monotonic()
        self._shown = True
        filled = int(24 * done / max(total, 1))
        sys.stderr.write(f"\r\x1b[K{self._what} [{'█' * filled}{'·' * (24 - filled)}] {note}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


async def look(settings: Settings, api: ApiServer, *, clock: Callable[[], datetime]) -> Engine:
    """One look at a cluster: everything listed once, in an engine without a past."""
    from sevenhop.app import build_engine, build_rulebook
    from sevenhop.core.events import Event
    from sevenhop.sources.kubernetes.api import ApiError, describe
    from sevenhop.sources.kubernetes.source import ListProgress, list_once

    rulebook = build_rulebook(settings)
    for problem in rulebook.problems:
        fail(str(problem))
    engine = build_engine(settings, rulebook, cluster_name(settings))
    progress = Progress("looking")

    def show(p: ListProgress) -> None:
        progress.show(p.kinds_done, p.kinds, f"{p.objects} objects, {p.kinds_done}/{p.kinds} kinds")

    batch: list[Event] = []
    try:
        async for event in list_once(api, clock=clock, progress=show):
            batch.append(event)
    except (ApiError, OSError, TimeoutError) as error:
        raise UnreachableError(describe(error, api.base_url)) from None
    finally:
        progress.close()
    engine.handle(batch, clock())
    return engine


def run_async(main: Callable[[], Any]) -> int:
    """Run a coroutine function; what cannot be reached becomes one line and exit code 3."""
    try:
        return int(asyncio.run(main()))
    except UnreachableError as error:
        fail(str(error))
        return EXIT_UNREACHABLE


def ask_service(
    folder: Path,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    refusals: tuple[int, ...] = (),
    query: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
) -> Any:
    """
    Ask the running service at its local door.

    Args:
        refusals: Statuses whose answer is returned as it is.
        patience_s: A decision, or what is to be stored, may wait for a worker that takes over.

    Returns:
        Its answer, or None if no service runs there.

    Raises:
        UsageError: The service refuses, with its words.
    """
    from sevenhop.runtime.control_path import SOCKET

    door = folder / SOCKET
    if not door.exists():
        return None
    connection = _UnixConnection(folder, patience_s)
    target = quote(path) + (f"?{urlencode(query)}" if query else "")
    try:
        connection.request(method, target, json.dumps(body) if body is not None else None, headers or {})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (ConnectionRefusedError, FileNotFoundError):
        return None  # left by a process that was killed
    except TimeoutError:
        raise UsageError(f"{door}: no answer within {patience_s:g} s; its log says what it waits for") from None
    except OSError as error:
        raise UsageError(f"{door}: {error.strerror or error}; is it your service?") from None
    except (ValueError, http.client.HTTPException):  # their texts may quote a token
        raise UsageError(f"{door}: the question cannot be asked so, or the answer is not Sevenhop's") from None
    finally:
        connection.close()
    if response.status >= 400 and response.status not in refusals:
        raise UsageError(str(answer.get("error", response.status)))
    return answer


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, folder: Path, patience_s: float) -> None:
        super().__init__("localhost", timeout=patience_s)
        self._folder = folder

    def connect(self) -> None:
        from sevenhop.runtime.control_path import way_to_door

        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with way_to_door(self._folder) as way:
            self.sock.connect(way)
