"""What is worked out once for all who wait for a pool is what each would find alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sevenhop.core.hops.report import HopLine
from sevenhop.core.subject import Hop, Subject
from tests import builders as b
from tests.builders import at
from tests.unit.inventory.gpu_agents import Agent
from tests.unit.inventory.scenes import SHORT, Scene

A100 = "NVIDIA-A100-SXM4-80GB"
NODES = ("n1", "n2", "n3")
SILENT_S = 300

WAITS = b.deployment("waits", gpus=2, replicas=1)
WAITING = b.replicaset(WAITS)
RUNS = b.deployment("runs", gpus=2, replicas=2)
RUNNING = b.replicaset(RUNS)
IDLE = b.deployment("idle", gpus=2, replicas=0)
PODS = (
    b.pod_of(WAITING, "waits", unschedulable=SHORT),
    b.pod_of(RUNNING, "runs-too", unschedulable=SHORT),
    b.pod_of(RUNNING, "runs", node="n1"),
)
COMPONENTS = ("component:prod/waits/engine", "component:prod/runs/engine")
ALL = (*COMPONENTS, "component:prod/idle/engine")

hosts = st.builds(
    lambda name, gpus, product: b.node(name, gpus=gpus, product=product),
    st.sampled_from(NODES),
    st.sampled_from((2, 8)),
    st.sampled_from((b.H100, A100)),
)
steps = st.one_of(
    hosts.map(lambda host: ("put", host)),
    st.sampled_from(NODES).map(lambda name: ("delete", b.node(name))),
    st.sampled_from(NODES).map(lambda name: ("speaks", name)),
    st.just(("time", None)),
)


def _scene() -> Scene:
    return Scene(b.node("n1", gpus=8), WAITS, WAITING, RUNS, RUNNING, IDLE, *PODS)


def _gpu_lines(scene: Scene) -> list[HopLine]:
    found = (scene.inventory.context(Subject.parse(name), at(scene.seconds)) for name in COMPONENTS)
    return [each.report.line(Hop.GPU) for each in found if each is not None and each.report is not None]


@settings(max_examples=80, deadline=None)
@given(st.lists(steps, max_size=10))
def test_what_agents_leave_unknown_of_a_pool_is_always_as_of_now(changes: list[tuple[str, Any]]) -> None:
    """Whatever came, went or fell silent since somebody else asked."""
    scene = _scene()
    agents = {name: Agent(name, 2) for name in NODES}
    for what, of in changes:
        if what == "put":
            scene.put(of)
        elif what == "delete":
            scene.delete(of)
        elif what == "speaks":
            scene.tell([agents[of].sample(scene.seconds)])
        else:
            scene.wait(scene.seconds + SILENT_S)
        told = _gpu_lines(scene)
        scene.inventory.state.unseen_in = ((-1, -1), {})
        assert told == _gpu_lines(scene)


@settings(max_examples=80, deadline=None)
@given(st.lists(hosts, max_size=8))
def test_a_pool_that_grows_or_shrinks_moves_who_waits(changes: list[Any]) -> None:
    """The pool of every component is the one that it would be told if all were listed now."""
    scene = _scene()
    for host in changes:
        scene.put(host)
    last = {host.metadata.name: host for host in [b.node("n1", gpus=8), *changes]}
    anew = Scene(*last.values(), WAITS, WAITING, RUNS, RUNNING, IDLE, *PODS)
    assert [scene.fact(name, "product") for name in ALL] == [anew.fact(name, "product") for name in ALL]
