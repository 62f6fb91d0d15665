"""From a kubeconfig or a service account to an API server, and one line with the fix where that fails."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import certifi
import pytest
import yaml

from sevenhop.simulation.server import ApiServerSimulation
from sevenhop.simulation.store import Store
from sevenhop.sources.kubernetes.api import ApiServer, ConnectError, environment_proxy
from sevenhop.sources.kubernetes.connect import connect
from tests.unit.sources.harness import POD, now


def kubeconfig(
    path: Path, *, server: str = "http://127.0.0.1:1", user: dict[str, Any] | None = None, name: str = "a"
) -> Path:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": name,
                "clusters": [{"name": name, "cluster": {"server": server}}],
                "users": [{"name": name, "user": user or {"token": f"token-{name}"}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            }
        )
    )
    return path


def token_of(api: ApiServer) -> str:
    return api._access.headers.get("Authorization", "")


async def test_a_token_in_a_kubeconfig(tmp_path: Path) -> None:
    """Server, path and token come from the current context."""
    path = kubeconfig(tmp_path / "c", server="https://10.0.0.1:6443/k8s/clusters/x/")

    api = await connect(str(path), environ={})

    assert api.base_url == "https://10.0.0.1:6443/k8s/clusters/x"
    assert token_of(api) == "Bearer token-a"
    assert api._access.ssl is not None


async def test_the_order_of_places(tmp_path: Path) -> None:
    """The file given, then KUBECONFIG (several, merged), then the home folder."""
    (tmp_path / ".kube").mkdir()
    given = kubeconfig(tmp_path / "given", name="given")
    one, two = kubeconfig(tmp_path / "one", name="one"), kubeconfig(tmp_path / "two", name="two")
    kubeconfig(tmp_path / ".kube" / "config", name="home")
    environ = {"HOME": str(tmp_path), "KUBECONFIG": f"{one}:{two}:{tmp_path / 'missing'}"}

    assert token_of(await connect(str(given), environ=environ)) == "Bearer token-given"
    assert token_of(await connect(None, "one", environ=environ)) == "Bearer token-one"
    assert token_of(await connect(None, "two", environ=environ)) == "Bearer token-two"
    assert token_of(await connect(environ={"HOME": str(tmp_path)})) == "Bearer token-home"


def exec_user(code: str) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-c", code],
            "interactiveMode": "Never",
        }
    }


async def test_an_exec_plugin_is_run_again_when_its_token_is_refused(tmp_path: Path) -> None:
    """A plug-in's token is used; refused with 401, the plug-in is asked for another."""
    token = tmp_path / "token"
    token.write_text("first")
    code = (
        "import json; print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        f"'status': {{'token': open({str(token)!r}).read(), 'expirationTimestamp': '2099-01-01T00:00:00Z'}}}}))"
    )
    server = ApiServerSimulation(Store(now, [POD]), tokens={"first"})
    async with server.serve() as url:
        path = kubeconfig(tmp_path / "c", server=url, user=exec_user(code))
        async with await connect(str(path), environ={}) as api:
            assert await api.check() == "v1.36.3"
            server.tokens = {"second"}
            token.write_text("second")
            assert await api.check() == "v1.36.3"
            assert api.renewals == 1


def service_account(folder: Path, token: str) -> None:
    """What the kubelet mounts; any certificate does, nothing is connected to."""
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(Path(certifi.where()).read_bytes())


async def test_a_token_file_in_a_cluster(tmp_path: Path) -> None:
    """The pod's own account is used where there is no kubeconfig, and its token goes stale by age."""
    service_account(tmp_path, "t1\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    api = await connect(environ=environ, service_account=tmp_path)

    assert (api.base_url, token_of(api)) == ("https://[fd00::1]:443", "Bearer t1")
    assert api._access.max_age_s == 60
    service_account(tmp_path, "t2")
    await api._renew(0)
    assert token_of(api) == "Bearer t2"


@pytest.mark.parametrize(
    ("text", "context", "message"),
    [
        pytest.param(None, None, "does not exist; check --kubeconfig", id="no such file"),
        pytest.param("a: [", None, ":1: broken YAML: ", id="broken YAML"),
        pytest.param("", None, "cannot be read: .*; is it a kubeconfig?", id="empty"),
        pytest.param(
            "kind: Config\nclusters: []\nusers: []\ncontexts: []\n", None, "has no current context", id="no context"
        ),
        pytest.param(
            "kind: Config\ncurrent-context: a\nclusters: []\nusers: []\n"
            "contexts:\n- {name: a, context: {cluster: b}}\n",
            None,
            "object with name b in",
            id="a cluster that is not there",
        ),
        pytest.param(
            "kind: Config\ncurrent-context: a\nclusters: []\nusers: []\n"
            "contexts:\n- {name: a, context: {cluster: b}}\n",
            "prod",
            "context 'prod' is not in .*kubectl config get-contexts",
            id="a context that is not there",
        ),
        pytest.param(
            "kind: Config\ncurrent-context: a\nclusters: [{name: b, cluster: {}}]\nusers: []\n"
            "contexts:\n- {name: a, context: {cluster: b}}\n",
            None,
            "the cluster has no server",
            id="a cluster without a server",
        ),
        pytest.param(
            "kind: Config\ncurrent-context: a\n"
            "clusters: [{name: b, cluster: {server: 'https://x', certificate-authority-data: bm8=}}]\n"
            "users: [{name: u, user: {}}]\ncontexts:\n- {name: a, context: {cluster: b, user: u}}\n",
            None,
            "a certificate or key cannot be used",
            id="a certificate that is none",
        ),
    ],
)
async def test_bad_kubeconfigs(tmp_path: Path, text: str | None, context: str | None, message: str) -> None:
    """Each way in which a kubeconfig can be wrong is one line that names the file."""
    path = tmp_path / "c"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ConnectError, match=message) as caught:
        await connect(str(path), context, environ={})

    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_an_exec_plugin_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the plug-in said is in the error, once, and nothing is printed past it."""
    path = kubeconfig(tmp_path / "c", user=exec_user("import sys; sys.exit('please log in')"))

    with pytest.raises(ConnectError, match=r"logging in failed: .*please log in.*exec section"):
        await connect(str(path), environ={})

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        pytest.param({}, "no kubeconfig found; pass --kubeconfig FILE", id="nothing"),
        pytest.param({"KUBECONFIG": "/none/a:/none/b"}, "KUBECONFIG names no file that exists", id="KUBECONFIG"),
        pytest.param({"KUBERNETES_SERVICE_HOST": "1.2.3.4"}, "service account .* cannot be read", id="no account"),
    ],
)
async def test_no_configuration(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    """Where nothing says which cluster, the error says what to set."""
    with pytest.raises(ConnectError, match=message):
        await connect(environ=environ, service_account=tmp_path)


def test_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTPS_PROXY is used as kubectl does, NO_PROXY excepted."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.1")

    assert environment_proxy("https://api.example:6443") == "http://proxy:3128"
    assert environment_proxy("https://10.0.0.1:6443") is None
