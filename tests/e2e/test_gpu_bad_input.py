"""What a GPU node may tell that is wrong, on a real control plane: a clear line, and unknown rather than wrong."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from sevenhop.core.events import GpusSampled
from sevenhop.core.gpu_sample import GpuReading
from sevenhop.core.gpu_wire import MSGPACK, VERSION, Batch, encode
from tests.e2e.gpu_scene import GpuNode, gpu_node, prepare_account, ready, settings_of
from tests.e2e.remediation_scenes import Waiting, waiting_scene
from tests.e2e.service import Service
from tests.e2e.slack import FakeSlack
from tests.fakes.nvml_double import build as build_double
from tests.fakes.wrong_clock import SHIFT
from tests.fakes.wrong_clock import build as build_clock
from tests.testbed.cluster import Cluster
from tests.testbed.ports import free_ports
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

GOOD = "good"
Row = dict[str, Any]


@dataclass
class Ward:
    """One service for all tests, and the scene that its nodes are in."""

    here: Waiting
    service: Service
    address: str
    library: Path
    folder: Path
    opened: ExitStack

    def node(self, name: str, gpus: int = 2, env: Mapping[str, str] | None = None) -> GpuNode:
        """A node whose agent is still to be started."""
        return self.opened.enter_context(gpu_node(self.here, self.folder / name, self.library, gpus, env=env))

    def gpus(self, node: GpuNode) -> list[Row]:
        return [row for row in self.service.rows("gpus") if row["node"] == node.name]

    def until(self, node: GpuNode, true: Callable[[list[Row]], object], what: str, timeout: float = 20) -> list[Row]:
        """The rows of a node's GPUs, once that is so."""
        try:
            eventually(lambda: true(self.gpus(node)), timeout=timeout, every=0.1)
        except TimeoutError:
            pytest.fail(f"{what}: {self.gpus(node)}\n{node.log}\n{self.service.errors[-2000:]}")
        return self.gpus(node)


@pytest.fixture(scope="module")
def ward(testbed: Cluster, slack: FakeSlack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    folder = tmp_path_factory.mktemp("ward")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with ExitStack() as opened:
        here = opened.enter_context(waiting_scene(testbed, "ward"))
        prepare_account(testbed.client, here.namespace)
        service = Service(
            folder / "service", testbed.kubeconfig(), slack=slack, only_console=True,
            rules=("gpu-lost", "gpu-held-without-pod"), more=settings_of(here.namespace, address),
        )  # fmt: skip
        opened.callback(service.stop)
        service.start()
        library = build_double(folder / "nvml")
        yield Ward(here, service, f"http://{address}", library, folder, opened)


@pytest.mark.parametrize("minutes", [5, -5], ids=["ahead", "behind"])
def test_a_clock_that_is_minutes_off(ward: Ward, tmp_path: Path, minutes: int) -> None:
    """What it says is of now all the same, neither silent nor of the future; and the difference is said."""
    shift = {"LD_PRELOAD": str(build_clock(tmp_path)), SHIFT: str(60 * minutes)}
    node = ward.node(f"clock-{minutes}", env=shift)
    node.start(ward.address)
    ward.until(node, lambda rows: [row["state"] for row in rows] == ["ok", "ok"], "both GPUs")
    assert f"{datetime.now(UTC) + timedelta(minutes=minutes):%Y-%m-%d %H:%M}"[:15] in node.log  # it is that wrong
    before = datetime.now(UTC)
    node.script.xid(0, 48)
    ward.until(node, lambda rows: rows[0]["xid"] == 48, "the XID")
    ours = [row for row in ward.service.rows("alerts") if node.uuids[0] in row["subject"]]
    (alert,) = [row for row in ours if row["rule"] == "gpu-fatal-error"]
    print(alert, ward.service.explain(f"gpu:{node.uuids[0]}"), sep="\n")
    assert abs(datetime.fromisoformat(alert["since"]) - before) < timedelta(seconds=10)
    rows = ward.service.rows("gpus")
    assert [row["state"] for row in rows if row["node"] == node.name] == ["bad", "ok"]
    off = f"the clock of {node.name} is 300 s {'ahead of' if minutes > 0 else 'behind'} ours"
    (line,) = [line for line in ward.service.errors.splitlines() if f"the clock of {node.name}" in line]
    assert off in line
    (push,) = ward.service.doctor()["gpu_sources"]
    assert push["clocks_off"]
    assert node.stop() == 0


def test_samples_out_of_order_and_doubled(ward: Ward) -> None:
    """The newest stands, whatever comes behind it and however often."""
    node = ward.node("order")
    first = datetime.now(UTC) - timedelta(seconds=10)
    epoch = int(first.timestamp() * 1000)
    token = node.token()

    def send(seq: int, error: str) -> int:
        readings = tuple(
            GpuReading(index=n, uuid=uuid, pci=f"0000:{0x3B + n:02x}:00.0", error=error if n == 0 else "")
            for n, uuid in enumerate(node.uuids)
        )
        at = first + timedelta(seconds=seq)
        sample = GpusSampled(at=at, epoch=epoch, seq=seq, node=node.name, is_whole=True, readings=readings)
        return post(ward, token, Batch(version=VERSION, node=node.name, sent_at=datetime.now(UTC), samples=(sample,)))

    assert send(1, "") == 200
    ward.until(node, lambda rows: [row["state"] for row in rows] == ["ok", "ok"], "both GPUs")
    assert send(5, "GPU is lost") == 200
    ward.until(node, lambda rows: rows[0]["state"] == "lost", "the lost GPU")
    for seq, error in ((4, ""), (5, "GPU is lost"), (2, ""), (3, "GPU is lost"), (5, "GPU is lost")):
        assert send(seq, error) == 200
    rows = ward.until(node, lambda rows: len(rows) == 2, "both GPUs")
    assert [row["state"] for row in rows] == ["lost", "ok"]
    assert send(6, "") == 200
    ward.until(node, lambda rows: rows[0]["state"] == "ok", "the newest")


def post(ward: Ward, token: str, batch: Batch) -> int:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": MSGPACK}
    request = urllib.request.Request(f"{ward.address}/v1/gpu-samples", encode(batch), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_gpu_that_vanishes(ward: Ward) -> None:
    """The driver lists one fewer, and no more: it is lost, by name and with who had it; the others are not."""
    node = ward.node("vanish", 3)
    name = node.name
    ward.here.plain_donor(
        "holder", replicas=1, gpus=3, node_selector={**ward.here.where, "kubernetes.io/hostname": name}
    )
    (pod,) = ready(ward.here, "app=holder")
    holder = f"{ward.here.namespace}/{pod['metadata']['name']}"
    node.start(ward.address)
    ward.until(node, lambda rows: [row["pods"] for row in rows] == [[holder]] * 3, "who holds them")
    node.script.vanish(2)
    rows = ward.until(node, lambda rows: rows[2]["state"] == "lost", "the vanished GPU")
    assert [row["state"] for row in rows] == ["ok", "ok", "lost"]
    assert rows[2]["trouble"] == "GPU 2: the driver does not see it any more"
    assert rows[2]["pods"] == [holder]
    eventually(
        lambda: [row for row in ward.service.rows("incidents") if row["cause"] == f"node:{name}"],
        timeout=20, every=0.2, what="an incident",
    )  # fmt: skip
    assert f"{name} lost GPU 2: the driver does not see it any more; hits {ward.here.namespace}/holder" in (
        ward.service.console
    )
    print(node.log)
    assert node.log.count("NVML does not show it") == 1


def test_a_kubelet_that_refuses(ward: Ward) -> None:
    """Who holds what is unknown, which is not nobody; it is said once, and once when it is over."""
    node = ward.node("refuses")
    ward.here.plain_donor(
        "unseen", replicas=1, gpus=2, node_selector={**ward.here.where, "kubernetes.io/hostname": node.name}
    )
    (pod,) = ready(ward.here, "app=unseen")
    node.kubelet.refuses = grpc.StatusCode.PERMISSION_DENIED
    node.start(ward.address)
    rows = ward.until(node, lambda rows: [row["state"] for row in rows] == ["ok", "ok"], "both GPUs")
    assert [row["held_without_pod"] for row in rows] == [None, None]
    says = ward.service.explain(f"gpu:{node.uuids[0]}", "--why-not")
    print(says)
    assert "gpu.held_without_pod = unknown" in says

    node.kubelet.refuses = None
    holder = f"{ward.here.namespace}/{pod['metadata']['name']}"
    ward.until(node, lambda rows: [row["pods"] for row in rows] == [[holder]] * 2, "who holds them")
    print(node.log)
    assert node.log.count("Pod Resources: the kubelet refuses: permission_denied") == 2
    assert "no longer: Pod Resources: the kubelet refuses: permission_denied" in node.log
