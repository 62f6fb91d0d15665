"""One Kubernetes cluster of real programs on loopback ports, in a temporary folder."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.testbed import binaries, crds, stages
from tests.testbed.client import ApiError, Client, Object
from tests.testbed.ports import free_ports, listens
from tests.testbed.waiting import eventually

ADMIN = "admin"
VIEWER = "viewer"
NOBODY = "nobody"

OPERATOR = "kuberay-operator"
# In the order in which they start; ended in the opposite one.
COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-scheduler",
    "kube-controller-manager",
    "kwok",
    OPERATOR,
)
_START_SECONDS = 60

T = TypeVar("T")


class ClusterFailed(Exception):
    """A program of the cluster ended or does not answer; the message has the end of its log."""


class Cluster:
    """
    A cluster that lives as long as its `with` block, or until its process ends in any way.

    Several may run at once, also in several processes. Programs are named as in `COMPONENTS`.

    Attributes:
        client: Talks to the API server as a member of `system:masters`.
        folder: Logs (`<component>.log`), kubeconfigs and etcd's data; removed at the end unless
            SEVENHOP_TESTBED_KEEP is set.
    """

    client: Client

    def __init__(
        self,
        *,
        operator: bool = False,
        frameworks: Collection[str] | None = (),
        serve_only: Mapping[str, str] | None = None,
        users: Mapping[str, Sequence[str]] | None = None,
        api_server_flags: Sequence[str] = (),
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Describe the cluster; `start`, or `with`, starts it.

        Args:
            operator: Also run the KubeRay operator, with the CRDs of its own version.
            frameworks: Whose CRDs to have, None for all (`crds.frameworks_crds`). All of them take
                0.4 GB.
            serve_only: Group to the one version of it to serve.
            users: More users and their groups. There are always ``admin``, ``viewer`` (bound to the
                ClusterRole ``view``) and ``nobody``, who has no rights.
            api_server_flags: Appended to those of kube-apiserver.
            say: Told what happens, for people.
        """
        self._operator = operator
        self._frameworks = frameworks
        self._serve_only = serve_only
        self._api_server_flags = list(api_server_flags)
        self._say = say
        groups = {ADMIN: ["system:masters"], VIEWER: [], NOBODY: [], **(users or {})}
        self._groups: dict[str, list[str]] = {user: list(of) for user, of in groups.items()}
        self._tokens = {user: secrets.token_hex(16) for user in self._groups}
        self._clients: dict[str, Client] = {}
        self._supervisor: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """
        Start the cluster and return when it is ready, building its programs first if need be.

        Raises:
            BuildFailed: A program cannot be had here.
            ClusterFailed: A program does not come up.
        """
        control_plane = binaries.ensure(binaries.CONTROL_PLANE, self._say)
        self._kwok = binaries.ensure(binaries.KWOK, self._say)
        self._kuberay = binaries.ensure(binaries.KUBERAY, self._say) if self._operator else None
        self._bin = control_plane
        self.folder = Path(tempfile.mkdtemp(prefix="sevenhop-testbed-"))
        # Not our stderr: whoever reads that would wait for the end of a detached cluster.
        program = str(Path(__file__).with_name("supervisor.py"))
        with (self.folder / "supervisor.log").open("wb") as log:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", program, str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            self._bring_up()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all programs and remove the folder; fine to call twice."""
        while self._clients:
            self._clients.popitem()[1].close()
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        keep = bool(os.environ.get("SEVENHOP_TESTBED_KEEP"))
        with contextlib.suppress(OSError, ClusterFailed):
            _ask(supervisor, {"op": "end", "keep": keep})
        supervisor.communicate()
        if not keep:  # should the supervisor have been killed before it could
            shutil.rmtree(self.folder, ignore_errors=True)

    def detach(self) -> int:
        """Leave the cluster running after this process; SIGTERM to the returned pid ends it."""
        supervisor, self._supervisor = self._running(), None
        _ask(supervisor, {"op": "detach"})
        for pipe in (supervisor.stdin, supervisor.stdout):
            _there(pipe).close()
        supervisor.returncode = 0  # not ours to wait for any more
        return supervisor.pid

    # --- who may ask ---

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._ports['kube-apiserver']}"

    @property
    def ca_file(self) -> Path:
        """The certificate to trust."""
        return self.folder / "certs" / "apiserver.crt"

    def token(self, user: str = ADMIN) -> str:
        """Return the bearer token of a user, or of `system:serviceaccount:<namespace>:<name>`."""
        if user.startswith("system:serviceaccount:"):
            namespace, name = user.split(":")[2:]
            path = self.client.path("v1", "ServiceAccount", name, namespace, "token")
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            status, text = self.client.request("POST", path, json.dumps(request).encode(), "application/json")
            if status >= 400:
                raise ApiError(status, text)
            return str(json.loads(text)["status"]["token"])
        return self._tokens[user]

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Write a kubeconfig for a user (named as in `token`) and return its path."""
        path = self.folder / f"kubeconfig-{user.replace(':', '-')}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "testbed",
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": user}}],
            "clusters": [
                {
                    "name": "testbed",
                    "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)},
                }
            ],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
        }
        path.write_text(json.dumps(config, indent=1))  # JSON is YAML, and needs no library
        path.chmod(0o600)
        return path

    def client_for(self, user: str) -> Client:
        """Return a client that asks as this user; `stop` closes it."""
        if user not in self._clients:
            self._clients[user] = Client(self.url, self.ca_file, self.token(user))
        return self._clients[user]

    # --- the programs ---

    def stop_component(self, name: str, *, grace: float = 2) -> None:
        """End one program; everything else goes on without it."""
        self._ask({"op": "stop", "name": name, "grace": grace})

    def start_component(self, name: str) -> None:
        """Start one program (again), on the same port, and return when it serves."""
        self._start(name)
        self._wait_for(name)

    def restart_component(self, name: str) -> None:
        """End one program and start it again."""
        self.stop_component(name)
        self.start_component(name)

    def pause(self, name: str) -> None:
        """Stop one program in its tracks (SIGSTOP): its connections stay open and nothing answers."""
        self._ask({"op": "signal", "name": name, "signal": signal.SIGSTOP})

    def resume(self, name: str) -> None:
        """Let a paused program go on."""
        self._ask({"op": "signal", "name": name, "signal": signal.SIGCONT})

    @contextlib.contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Run a block while one program is ended, and start it again."""
        self.stop_component(name)
        try:
            yield
        finally:
            self.start_component(name)

    @contextlib.contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Run a block while one program is paused."""
        self.pause(name)
        try:
            yield
        finally:
            self.resume(name)

    def log(self, name: str, *, lines: int = 30) -> str:
        """Return the end of a program's log."""
        path = self.folder / f"{name}.log"
        text = path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    # --- how it is done ---

    def _bring_up(self) -> None:
        self._ports = dict(zip([*COMPONENTS, "etcd-peer", "metrics"], free_ports(8), strict=True))
        self._write_files()
        self._start("etcd")
        self._wait_for("etcd")
        crds.preload(f"http://127.0.0.1:{self._ports['etcd']}", self._crds())
        self._start("kube-apiserver")
        self._wait_for("kube-apiserver")
        self.client = self.client_for(ADMIN)
        self.kubeconfig()
        self._bind_viewer()
        started = COMPONENTS[2:] if self._operator else COMPONENTS[2:-1]
        for name in started:
            self._start(name)
        for name in started:
            self._wait_for(name)

    def _crds(self) -> list[Object]:
        found: list[Object] = []
        if self._frameworks is None or self._frameworks:
            found = crds.frameworks_crds(self._frameworks, serve_only=self._serve_only, say=self._say)
        if self._kuberay is not None:
            found = crds.operator_crds(self._kuberay / "crds", found)
        return found

    def _write_files(self) -> None:
        key = subprocess.run([self._bin / "service-account-key"], capture_output=True, check=True)
        (self.folder / "service-account.key").write_bytes(key.stdout)
        rows = []
        for user, groups in self._groups.items():
            rows.append(f'{self._tokens[user]},{user},{user},"{",".join(groups)}"\n')
        (self.folder / "tokens.csv").write_text("".join(rows))
        (self.folder / "tokens.csv").chmod(0o600)
        (self.folder / "stages.yaml").write_text(stages.render(self._kwok / "stages"))

    def _bind_viewer(self) -> None:
        self.client.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "testbed-viewer"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "view",
                },
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": VIEWER}],
            }
        )

    def _start(self, name: str) -> None:
        self._ask({"op": "start", "name": name, "argv": self._argv(name)})

    def _argv(self, name: str) -> list[str]:
        port = self._ports
        admin = str(self.folder / f"kubeconfig-{ADMIN}")
        # Every controller's own limit on requests is for kindness to large clusters; here it is
        # only waiting.
        hurry = ["--kube-api-qps=500", "--kube-api-burst=1000"]
        loopback = [
            "--bind-address=127.0.0.1",
            f"--secure-port={port.get(name)}",
            f"--kubeconfig={admin}",
            f"--authentication-kubeconfig={admin}",
            f"--authorization-kubeconfig={admin}",
            "--leader-elect=false",
        ]
        match name:
            case "etcd":
                client = f"http://127.0.0.1:{port['etcd']}"
                peer = f"http://127.0.0.1:{port['etcd-peer']}"
                flags = [
                    f"--data-dir={self.folder / 'etcd'}",
                    f"--listen-client-urls={client}",
                    f"--advertise-client-urls={client}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=default={peer}",
                    "--unsafe-no-fsync",  # the data need not outlive the machine
                    "--log-level=warn",
                ]
            case "kube-apiserver":
                key = self.folder / "service-account.key"
                flags = [
                    f"--etcd-servers=http://127.0.0.1:{port['etcd']}",
                    f"--secure-port={port[name]}",
                    "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1",
                    f"--cert-dir={self.folder / 'certs'}",
                    "--service-cluster-ip-range=10.96.0.0/16",
                    "--service-account-issuer=https://kubernetes.default.svc",
                    f"--service-account-key-file={key}",
                    f"--service-account-signing-key-file={key}",
                    "--authorization-mode=RBAC",
                    f"--token-auth-file={self.folder / 'tokens.csv'}",
                    # As every distribution has it; PodSecurity decides, per namespace.
                    "--allow-privileged=true",
                    # It would refuse every pod of a namespace whose default account is not made yet.
                    "--disable-admission-plugins=ServiceAccount",
                    *self._api_server_flags,
                ]
            case "kube-scheduler":
                flags = [*loopback, *hurry]
            case "kube-controller-manager":
                key = self.folder / "service-account.key"
                flags = [*loopback, *hurry, f"--service-account-private-key-file={key}"]
                # Looks at nodes every second, not every five, and does not ration taints of lost ones.
                flags += ["--node-monitor-period=1s", "--node-eviction-rate=10", "--secondary-node-eviction-rate=10"]
            case "kwok":
                flags = [
                    f"--kubeconfig={admin}",
                    f"--config={self.folder / 'stages.yaml'}",
                    # Not all nodes: one that loses the annotation is lost, as nodes.lose_node wants.
                    "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                    "--node-lease-duration-seconds=40",
                    "--cidr=10.244.0.1/16",
                    f"--server-address=127.0.0.1:{port[name]}",
                ]
            case _:
                flags = [
                    f"--kubeconfig={admin}",
                    "--enable-leader-election=false",
                    f"--health-probe-bind-address=127.0.0.1:{port[name]}",
                    f"--metrics-addr=127.0.0.1:{port['metrics']}",
                    "--qps=500",
                    "--burst=1000",
                ]
        folder = {"kwok": self._kwok, OPERATOR: self._kuberay}.get(name, self._bin)
        return [str(_there(folder) / name), *flags]

    def _wait_for(self, name: str) -> None:
        def up() -> bool:
            ended = self._ask({"op": "ended"})
            if name in ended:
                raise ClusterFailed(f"{name} ended with {ended[name]}\n{self.log(name)}")
            return listens(self._ports[name]) and (name != "kube-apiserver" or self._ready())

        try:
            eventually(up, timeout=_START_SECONDS, every=0.03)
        except TimeoutError:
            last_words = self.log(name)
            raise ClusterFailed(f"{name} is not up after {_START_SECONDS} s\n{last_words}") from None

    def _ready(self) -> bool:
        try:
            return self.client_for(ADMIN).request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def _running(self) -> subprocess.Popen[bytes]:
        if self._supervisor is None:
            raise ClusterFailed("the cluster is not running")
        return self._supervisor

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return _ask(self._running(), request)


def _ask(supervisor: subprocess.Popen[bytes], request: Mapping[str, Any]) -> dict[str, Any]:
    stdin = _there(supervisor.stdin)
    stdin.write(json.dumps(request).encode() + b"\n")
    stdin.flush()
    line = _there(supervisor.stdout).readline()
    if not line:
        raise ClusterFailed("the supervisor of the cluster is gone")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise ClusterFailed(f"{request}: {answer['error']}")
    return answer


def _there(value: T | None) -> T:
    assert value is not None
    return value
