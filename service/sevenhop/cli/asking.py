"""
Asking the running service to decide something, as the person who calls.

At its local socket on the same host, or over HTTP(S) with the bearer token of a kubeconfig.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import ssl
import uuid
from typing import Any
from urllib.parse import urlsplit

from sevenhop.cli.cluster import (
    EXIT_UNREACHABLE,
    NO_SERVICE,
    STORED_WITHIN_S,
    UnreachableError,
    add_cluster_options,
    add_fleet_option,
    ask_service,
    connect_quietly,
    of_cluster,
    settings_of,
)
from sevenhop.cli.output import UsageError, fail, visible

EXIT_REFUSED = 1

CERTIFICATE_ONLY = (
    "this kubeconfig authenticates with a client certificate, which cannot be passed on; choose a context with a token "
    "(exec plug-in, OIDC, `kubectl create token`), or run the command on the service's own host"
)


def add_asking_options(parser: argparse.ArgumentParser) -> None:
    """Which service, and who asks."""
    add_cluster_options(parser)
    add_fleet_option(parser)
    parser.add_argument(
        "--server", default="", metavar="URL", help="the service's `web.listen`, such as https://host:8443"
    )
    parser.add_argument("--ca", default="", metavar="FILE", help="certificate authority of --server")
    parser.add_argument("-m", "--comment", default="", help="why; kept in the audit trail")


def ask_to_decide(args: argparse.Namespace, path: str, body: dict[str, Any]) -> int:
    """
    Ask, and print what came of it.

    Returns:
        0 if it was accepted, 1 if not, 3 where the service cannot be reached.

    Raises:
        UsageError: Nobody can be asked, or nobody knows who asks.
    """
    try:
        named = {"comment": args.comment, "request": str(uuid.uuid4()), **of_cluster(args)}
        return _ask(args, path, {**body, **named})
    except UnreachableError as error:
        fail(str(error))
        return EXIT_UNREACHABLE


def _ask(args: argparse.Namespace, path: str, body: dict[str, Any]) -> int:
    token = _token(args)
    if args.server:
        if not token:
            raise UsageError(CERTIFICATE_ONLY)
        answer = _over_http(args, path, body, token)
    else:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = ask_service(
            settings_of(args).state, "POST", path, body, headers=headers, refusals=(409,), patience_s=STORED_WITHIN_S
        )
        if answer is None:
            raise UsageError(f"{NO_SERVICE}, or give its address with --server")
    if not answer["accepted"]:
        print(visible(f"refused (you are {answer['as']}): {answer['text']}"))
        return EXIT_REFUSED
    print(visible(answer["text"]) or "done")
    return 0


def _token(args: argparse.Namespace) -> str:
    """Of the kubeconfig, if it has one; without --server a user of this host needs none."""
    named = bool(args.server or args.kubeconfig or args.context or os.environ.get("KUBECONFIG"))
    if not named:
        return ""
    try:
        return asyncio.run(connect_quietly(settings_of(args)))
    except UnreachableError:
        if args.server:
            raise
        return ""


def _over_http(args: argparse.Namespace, path: str, body: dict[str, Any], token: str) -> dict[str, Any]:
    parts = urlsplit(args.server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--server: expected an address such as https://host:8443, got {args.server!r}")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise UsageError("--server: a token is sent over https only")
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        try:
            context = ssl.create_default_context(cafile=args.ca or None)
        except OSError as error:
            raise UsageError(f"--ca {args.ca}: {error.strerror or error}") from None
        connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=STORED_WITHIN_S, context=context)
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=STORED_WITHIN_S)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    except ssl.SSLError as error:
        raise UnreachableError(f"{args.server}: TLS failed ({error.reason}); give its authority with --ca") from None
    except TimeoutError:
        raise UnreachableError(
            f"{args.server}: no answer in time; look at what came of it before you ask again"
        ) from None
    except OSError as error:
        raise UnreachableError(f"{args.server}: {error.strerror or type(error).__name__}") from None
    except ValueError:
        raise UnreachableError(f"{args.server} answers, but not as Sevenhop") from None
    finally:
        connection.close()
    if response.status not in (200, 409) or not isinstance(answer, dict):
        raise UsageError(
            str(answer.get("error", response.status)) if isinstance(answer, dict) else str(response.status)
        )
    return answer
