"""
A GPU falls off the bus, on a real control plane: agent, token, API server, service, Slack.  One message says whose it
was; what follows from it is not told again, and it ends when the GPU is back.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gpu_scene import GpuNode, gpu_node, prepare_account, ready, settings_of
from tests.e2e.remediation_scenes import DECODE, DynamoStandIn, Waiting, waiting_scene
from tests.e2e.rules import hurried_rules
from tests.e2e.service import Service, sevenhop
from tests.e2e.slack import FakeSlack, shown
from tests.fakes.nvml_double import build as build_double
from tests.testbed.cluster import Cluster
from tests.testbed.ports import free_ports
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

HOLDS = {"gpu-lost": "1s", "node-advertises-fewer-gpus": "5s", "resource-not-offered": "5s"}
QUIET_S = 8.0
"""Longer than any of these holds: what would be told by mistake has been told by then."""

RECOVERED = "🟢 RECOVERED"
SUMMARIZER = "app=summarizer"
Row = dict[str, Any]


@dataclass
class Told:
    """
    What was seen while the story went on; the tests below judge it.

    Attributes:
        rows: Rows of listings, by chapter and listing.
        text: The same listings as a person sees them in the middle of it.
        posts: How often people were notified, after each chapter.
    """

    namespace: str
    node: str
    product: str
    victim: str = ""
    rows: dict[str, dict[str, list[Row]]] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)
    posts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    first: str = ""
    folded: str = ""
    last: str = ""
    why: str = ""
    diagnosis: Row = field(default_factory=dict)
    incidents: list[Row] = field(default_factory=list)
    doctor: Row = field(default_factory=dict)
    agent_code: int = -1


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The double of NVIDIA's library."""
    return build_double(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="module")
def told(testbed: Cluster, slack: FakeSlack, library: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The whole story, once."""
    folder = tmp_path_factory.mktemp("gpu-story")
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    with waiting_scene(testbed, "xid") as here, DynamoStandIn(testbed.client):
        prepare_account(testbed.client, here.namespace)
        with gpu_node(here, folder / "node", library, 4) as node:
            here.llama(2)
            here.plain_donor(replicas=1, gpus=2)
            ready(here, DECODE)
            ready(here, SUMMARIZER)
            rules = {"rules": [str(hurried_rules(folder, HOLDS))]}
            service = Service(
                folder / "service", testbed.kubeconfig(), slack=slack, name=here.namespace,
                more={**settings_of(here.namespace, listen), **rules},
            )  # fmt: skip
            told = Told(here.namespace, node.name, here.product)
            try:
                node.start(f"http://{listen}")
                service.start()
                _tell(here, node, service, slack, told)
                told.agent_code = node.stop()
            finally:
                service.stop()
    return told


def _tell(here: Waiting, node: GpuNode, service: Service, slack: FakeSlack, told: Told) -> None:
    def chapter(name: str) -> None:
        told.rows[name] = {view: _mine(service, told, view) for view in ("gpus", "nodes", "capacity")}
        told.posts[name] = len(slack.posts_about(here.namespace))

    def waits_for(cause: str) -> bool:
        (row,) = [
            row
            for row in service.rows("workloads")
            if row["component"] == "decode" and row["namespace"] == here.namespace
        ]
        return bool(row["cause"] == cause and row["waiting"])

    eventually(lambda: _held(service, told) == node.holders(), timeout=30, every=0.2, what="who holds which GPU")
    here.ask_for_decode(2)
    here.waits(1)
    eventually(lambda: waits_for("gpu-shortage"), timeout=20, every=0.2, what="a shortage")
    chapter("before")

    # The decode worker's first GPU goes; later its device plugin takes it out, and the operator replaces the pod.
    (told.victim,) = [pod["metadata"]["name"] for pod in here.pods(DECODE) if pod["spec"].get("nodeName")]
    bad = node.holders()[f"{here.namespace}/{told.victim}"][0]
    began = time.time()
    node.falls_off_the_bus(bad)
    post = eventually(lambda: slack.posts_about(here.namespace), timeout=30, what="a message")[0]
    told.seconds = post["at"] - began
    told.first = shown(slack.messages_about(here.namespace)[0])
    node.withdraw(bad)
    here.client.delete("v1", "Pod", told.victim, here.namespace, grace=0)
    here.waits(2)
    eventually(lambda: waits_for("gpus-unhealthy"), timeout=20, every=0.2, what="unhealthy GPUs")
    time.sleep(QUIET_S)
    chapter("lost")
    told.incidents = [row for row in service.rows("incidents") if told.node in json.dumps(row)]
    told.folded = shown(slack.messages_about(here.namespace)[0])
    told.why = service.explain(f"{here.namespace}/llama-70b/decode")
    told.text = {view: service.ask("get", view, "-o", "wide").stdout for view in ("gpus", "nodes", "capacity")}
    told.diagnosis = _diagnosed(here, service.folder)
    told.doctor = service.doctor()

    here.ask_for_decode(1)
    node.is_rebooted()
    ready(here, DECODE)

    def is_green() -> str:
        said = shown(slack.messages_about(here.namespace)[0])
        return said if RECOVERED in said else ""

    told.last = eventually(is_green, timeout=30, every=0.2, what="the green message")
    chapter("back")


def _mine(service: Service, told: Told, view: str) -> list[Row]:
    return [row for row in service.rows(view) if told.product in (row.get("product"), row.get("pool"))]


def _held(service: Service, told: Told) -> dict[str, list[int]]:
    """Pod to the indexes of its GPUs, as the service lists them."""
    found: dict[str, list[int]] = {}
    for row in _mine(service, told, "gpus"):
        for pod in row["pods"]:
            found.setdefault(pod, []).append(row["index"])
    return found


def _diagnosed(here: Waiting, folder: Path) -> Row:
    """What `diagnose` says of the same cluster's objects, as kubectl would write them."""
    items = [*here.client.list("v1", "Node"), *here.client.list("v1", "Pod")]
    for kind in ("Deployment", "ReplicaSet"):
        items += here.client.list("apps/v1", kind, here.namespace)
    file = folder / "bundle.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    answer = sevenhop("diagnose", "-f", str(file), "-n", here.namespace, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    found: Row = json.loads(answer.stdout)
    return found


def test_one_message_names_who_is_hit(told: Told) -> None:
    """GPU, node, XID, workload, component and pod, in the first words that anybody reads."""
    print(f"XID → message: {told.seconds:.2f} s\n{told.first}\n---\n{told.folded}\n---\n{told.last}")
    title = told.first.splitlines()[0]
    assert f"{told.node} lost GPU 0: XID 79, fallen off the bus" in title
    assert f"hits {told.namespace}/llama-70b decode (llama-70b-decode-" in title
    (hit,) = [line for line in told.first.splitlines() if line.startswith("*Who is hit*")]
    assert f"{told.namespace}/llama-70b decode" in hit
    assert told.victim in hit
    assert "summarizer" not in told.first
    assert told.posts["before"] == 0


def test_what_follows_is_not_told_again(told: Told) -> None:
    """The node that offers fewer and the worker that waits for it are folded under the XID; green is an edit."""
    assert told.posts == {"before": 0, "lost": 1, "back": 1}
    (incident,) = told.incidents
    assert (incident["cause"], incident["explains"]) == (f"node:{told.node}", 2)
    (line,) = [line for line in told.folded.splitlines() if "2 symptoms folded" in line]
    assert f"{told.node} advertises 3 of 4 GPUs" in line
    assert "llama-70b/decode waits for devices that no node advertises: gpus-unhealthy" in line
    assert "not_due_inhibited" in told.why
    assert RECOVERED in told.last


def test_capacity_drops_and_comes_back(told: Told) -> None:
    """One allocatable GPU fewer, one unhealthy; visible, allocatable and bound are three numbers."""

    def numbers(chapter: str) -> tuple[int, int, int]:
        (row,) = told.rows[chapter]["capacity"]
        return row["allocatable"], row["unhealthy"], row["free"]

    assert [numbers(chapter) for chapter in ("before", "lost", "back")] == [(4, 0, 0), (3, 1, 1), (4, 0, 0)]
    nodes = {chapter: told.rows[chapter]["nodes"][0] for chapter in told.rows}
    assert [nodes["lost"][name] for name in ("expected", "visible", "allocatable", "bound")] == [4, 3, 3, 2]
    assert [nodes["back"][name] for name in ("expected", "visible", "allocatable", "bound")] == [4, 4, 4, 4]
    assert [row["xid"] for row in told.rows["lost"]["gpus"]] == [79, 0, 0, 0]
    assert [row["xid"] for row in told.rows["back"]["gpus"]] == [0, 0, 0, 0]


def test_the_listings_say_it_to_people(told: Told) -> None:
    """`get gpus`, `get nodes` and `get capacity`, as they are typed."""
    print(*told.text.values(), sep="\n")
    (gpu,) = [line for line in told.text["gpus"].splitlines() if told.node in line and " 79 " in line]
    assert "XID 79" in gpu
    (node,) = [line for line in told.text["nodes"].splitlines() if line.startswith(told.node)]
    assert "GPU 0" in node
    assert told.product in told.text["capacity"]


def test_the_waiting_worker_waits_for_an_unhealthy_device(told: Told) -> None:
    """No shortage any more: with the GPU that is lost one of them would fit; live and from a bundle alike."""
    print(told.why)
    assert "gpus-unhealthy (certain): needs 2 × nvidia.com/gpu" in told.why
    assert "GPU 0: XID 79, fallen off the bus" in told.why
    pods = {pod["name"]: pod["cause"] for pod in told.diagnosis["pods"] if "decode" in pod["name"]}
    print(json.dumps(pods, indent=1))
    assert list(pods.values()) == ["gpus-unhealthy", "gpus-unhealthy"]


def test_doctor_sees_the_hop(told: Told) -> None:
    """Agents are heard: the hop is no blind one, and its rules can fire."""
    (row,) = [row for row in told.doctor["coverage"] if row["hop"] == "gpu"]
    print(row, told.doctor["inert_rules"], sep="\n")
    assert row["seen"]
    assert not {"gpu-lost", "gpu-fatal-error"} & {rule["rule"] for rule in told.doctor["inert_rules"]}


def test_the_agent_ends_as_it_is_told(told: Told) -> None:
    """Its last word is no complaint."""
    assert told.agent_code == 0


def test_a_node_that_speaks_for_another_is_refused(
    testbed: Cluster, slack: FakeSlack, library: Path, tmp_path: Path
) -> None:
    """Its agent, with its own good token: one line on each side, counted, and nothing of it is believed."""
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    with waiting_scene(testbed, "liar") as here:
        prepare_account(testbed.client, here.namespace)
        with (
            gpu_node(here, tmp_path / "honest", library, 2) as honest,
            gpu_node(here, tmp_path / "liar", library, 2) as liar,
        ):
            service = Service(
                tmp_path / "service", testbed.kubeconfig(), slack=slack, only_console=True,
                more=settings_of(here.namespace, listen),
            )  # fmt: skip
            try:
                service.start()
                honest.start(f"http://{listen}")
                eventually(lambda: len(service.rows("gpus")) == 2, timeout=20, every=0.2, what="the honest node")
                liar.falls_off_the_bus(0)
                liar.start(f"http://{listen}", speaks_for=honest.name)
                eventually(lambda: "the service answers 403" in liar.log, timeout=20, every=0.2, what="a refusal")
                liar.start(f"http://{listen}")  # and for itself it may speak
                eventually(lambda: len(service.rows("gpus")) == 4, timeout=20, every=0.2, what="its own GPUs")
                (push,) = service.doctor()["gpu_sources"]
                gpus = service.rows("gpus")
            finally:
                service.stop()
    print(liar.logs, service.errors, push, sep="\n")
    (said,) = [line for line in service.errors.splitlines() if "GPU samples from" in line]
    assert f"refused (other_node): this token may speak for {liar.name} alone" in said
    assert liar.logs.count("the service answers 403") == 1
    assert push["refused"] == {"other_node": 1}
    assert push["problems"] == ["GPU samples refused since the start: other_node 1; the log says whose"]
    assert {(gpu["node"], gpu["xid"], gpu["state"]) for gpu in gpus if gpu["node"] == honest.name} == {
        (honest.name, 0, "ok")
    }
