"""From a kubeconfig or a pod's service account to an `ApiServer`."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sevenhop.sources.kubernetes.api import Access, ApiServer, ConnectError, environment_proxy

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_MAX_AGE_S = 60.0
"""The kubelet rotates projected tokens well before they expire; client-go too reads the file every minute."""


async def connect(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> ApiServer:
    """
    An API server by kubectl's order: the file given, ``KUBECONFIG``, ``~/.kube/config``, then the pod's own account.

    Nothing is asked of the server yet; see `ApiServer.check`.

    Raises:
        ConnectError: No configuration, or one that cannot be used.
    """
    environ = os.environ if environ is None else environ
    paths = _kubeconfig_paths(kubeconfig, environ)
    if not paths and environ.get("KUBERNETES_SERVICE_HOST"):
        if context:
            raise ConnectError(f"context {context!r} asked for, but there is no kubeconfig; pass --kubeconfig")

        async def load() -> Access:
            return await asyncio.to_thread(_in_cluster, environ, service_account)

    elif not paths:
        raise ConnectError("no kubeconfig found; pass --kubeconfig FILE, set KUBECONFIG, or run inside a cluster")
    else:

        async def load() -> Access:
            return await _from_kubeconfig(os.pathsep.join(paths), context)

    return ApiServer(await load(), load)


def _kubeconfig_paths(given: str | None, environ: Mapping[str, str]) -> list[str]:
    if given:
        path = Path(given).expanduser()
        if not path.is_file():
            raise ConnectError(f"kubeconfig {given} does not exist; check --kubeconfig")
        return [str(path)]
    named = environ.get("KUBECONFIG", "")
    if named:
        paths = [p for p in named.split(os.pathsep) if p and Path(p).expanduser().is_file()]
        if not paths:
            raise ConnectError(f"KUBECONFIG names no file that exists: {named}")
        return [str(Path(p).expanduser()) for p in paths]
    home = environ.get("HOME", "")
    default = Path(home) / ".kube" / "config" if home else None
    return [str(default)] if default and default.is_file() else []


def _in_cluster(environ: Mapping[str, str], service_account: Path) -> Access:
    """Read the mounted account; the same files as client-go's rest.InClusterConfig."""
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    if ":" in host:
        host = f"[{host}]"
    try:
        token = (service_account / "token").read_text("utf-8").strip()
        context = _tls(ca_file=str(service_account / "ca.crt"))
    except (OSError, ValueError) as error:
        raise ConnectError(
            f"the service account under {service_account} cannot be read ({type(error).__name__}); "
            "is automountServiceAccountToken on?"
        ) from None
    if not token:
        raise ConnectError(f"the token under {service_account} is empty")
    return Access(
        base_url=f"https://{host}:{port}",
        headers={"Authorization": f"Bearer {token}"},
        ssl=context,
        max_age_s=_TOKEN_MAX_AGE_S,
    )


async def _from_kubeconfig(paths: str, context: str | None) -> Access:
    """
    Everything that a kubeconfig may hold (exec plug-ins, OIDC, certificates, proxy), read by the official client.

    Loaded from the file each time: whoever logs in again writes there.
    """
    # Late: the client weighs 45 MB of memory and a quarter of a second, which a bundle of files does not need.
    import yaml
    from kubernetes.aio import client
    from kubernetes.aio import config as official

    kubeconfig: Any = official  # untyped
    configuration: Any = client.Configuration()
    said = _Said()
    log = logging.getLogger("kubernetes.aio.config.kube_config")
    propagate, log.propagate = log.propagate, False
    log.addHandler(said)
    try:
        await kubeconfig.load_kube_config(
            config_file=paths, context=context, client_configuration=configuration, persist_config=False
        )
    except kubeconfig.ConfigException as error:
        raise ConnectError(_config_problem(str(error), paths, context)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConnectError(f"kubeconfig {paths} cannot be read: {type(error).__name__}; is it a kubeconfig?") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConnectError(f"kubeconfig {paths}:{line}: broken YAML: {error.problem}") from None
    except Exception as error:  # noqa: BLE001
        # The OIDC library's own: their types are not all importable here, and some hold a token.
        raise ConnectError(f"kubeconfig {paths} cannot be used: {type(error).__name__}") from None
    finally:
        log.removeHandler(said)
        log.propagate = propagate
    token = configuration.api_key.get("BearerToken", "")
    if said.lines and not token and not configuration.cert_file:
        raise ConnectError(
            f"logging in failed: {said.lines[-1]}; run the command of your kubeconfig's exec section by hand"
        )
    host = str(configuration.host or "")
    if not host:
        raise ConnectError(f"kubeconfig {paths}: the cluster has no server")
    return Access(
        base_url=host.rstrip("/"),
        headers={"Authorization": token} if token else {},
        ssl=_tls_of(configuration, paths) if host.startswith("https") else None,
        server_name=configuration.tls_server_name or None,
        proxy=configuration.proxy or environment_proxy(host),
    )


def _tls_of(configuration: Any, paths: str) -> ssl.SSLContext:
    try:
        return _tls(
            ca_file=configuration.ssl_ca_cert,
            cert_file=configuration.cert_file,
            key_file=configuration.key_file,
            verify=bool(configuration.verify_ssl),
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
        raise ConnectError(f"kubeconfig {paths}: a certificate or key cannot be used ({reason})") from None


def _tls(
    *, ca_file: str | None = None, cert_file: str | None = None, key_file: str | None = None, verify: bool = True
) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    # Python 3.13 began to refuse cluster CAs without key identifiers, which kubectl takes.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cert_file:
        context.load_cert_chain(cert_file, key_file)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _config_problem(text: str, paths: str, context: str | None) -> str:
    if context and "contexts" in text and "name" in text:
        return f"context {context!r} is not in {paths}; `kubectl config get-contexts` lists them"
    if "current-context" in text:
        return f"kubeconfig {paths} has no current context; pass --context or run `kubectl config use-context`"
    return f"kubeconfig {paths}: {text}"


class _Said(logging.Handler):
    """Keeps what the client would only have logged: why an exec plug-in failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(" ".join(record.getMessage().split())[:300])
