"""CPU and memory of containers, from a tree of files like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from sevenhop.agent.cgroups import Cgroups
from sevenhop.core.gpu_sample import Holder

ID = "a" * 64
OLD = "b" * 64
HOLDER = Holder("prod", "decode-0", "main-1")
MIB = 1024 * 1024

LAYOUTS = [
    pytest.param(
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-{ID}.scope",
        id="systemd, containerd",
    ),
    pytest.param(f"kubepods.slice/kubepods-pod1_2.slice/crio-{ID}.scope", id="systemd, CRI-O, guaranteed"),
    pytest.param(f"kubepods/burstable/pod1-2/{ID}", id="cgroupfs"),
    pytest.param(
        f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/cri-containerd-{ID}.scope", id="nested"
    ),
]


class Node:
    """A cgroup tree and a folder of log links."""

    def __init__(self, root: Path) -> None:
        self.root, self.logs = root / "cgroup", root / "logs"
        self.root.mkdir()
        self.logs.mkdir()
        (self.root / "cgroup.controllers").write_text("cpu memory\n")

    def log(self, holder: Holder, container: str) -> None:
        name = f"{holder.pod}_{holder.namespace}_{holder.container}-{container}.log"
        (self.logs / name).symlink_to("/var/log/pods/nowhere")  # the target is never looked at

    def write(self, folder: str, usage_us: int, periods: int = 0, throttled: int = 0, limit: str = "max") -> None:
        at = self.root / folder
        at.mkdir(parents=True, exist_ok=True)
        (at / "cpu.stat").write_text(f"usage_usec {usage_us}\nnr_periods {periods}\nnr_throttled {throttled}\n")
        (at / "memory.current").write_text(f"{100 * MIB}\n")
        files = f"anon {60 * MIB}\nfile {40 * MIB}\nshmem {10 * MIB}\n"
        (at / "memory.stat").write_text(f"{files}inactive_file {20 * MIB}\nactive_file {10 * MIB}\n")
        (at / "memory.max").write_text(f"{limit}\n")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_use_of_a_container(node: Node, layout: str) -> None:
    """CPU between two calls, the share of throttled periods, memory without cached files, but with shared memory."""
    node.log(HOLDER, ID)
    node.write(layout, 1_000_000)
    cgroups = Cgroups(node.root, node.logs)

    first = cgroups.usage([HOLDER], 100.0)
    node.write(layout, 16_000_000, periods=100, throttled=25, limit=str(128 * MIB))
    second = cgroups.usage([HOLDER], 110.0)

    assert [(each.cpu_cores, each.memory_bytes, each.memory_limit_bytes) for each in first] == [(None, 70 * MIB, None)]
    assert second[0].holder == HOLDER
    assert second[0].cpu_cores == pytest.approx(1.5)
    assert second[0].cpu_throttled == pytest.approx(0.25)
    assert second[0].memory_limit_bytes == 128 * MIB
    assert cgroups.problem == ""


def test_a_restarted_container(node: Node) -> None:
    """Its predecessor's link is still there; the one that has a cgroup counts, and CPU begins anew."""
    node.log(HOLDER, OLD)
    node.log(HOLDER, ID)
    node.write(f"kubepods/pod1/{OLD}", 9_000_000)
    cgroups = Cgroups(node.root, node.logs)
    cgroups.usage([HOLDER], 100.0)
    for path in sorted((node.root / f"kubepods/pod1/{OLD}").iterdir()):
        path.unlink()
    (node.root / f"kubepods/pod1/{OLD}").rmdir()
    node.write(f"kubepods/pod1/{ID}", 1_000)

    found = cgroups.usage([HOLDER], 110.0)
    assert [(each.cpu_cores, each.memory_bytes) for each in found] == [(None, 70 * MIB)]


def test_a_container_that_is_gone(node: Node) -> None:
    """Nothing is said of it, and nothing fails."""
    node.log(HOLDER, ID)
    assert Cgroups(node.root, node.logs).usage([HOLDER], 1.0) == ()


def test_files_that_are_missing_are_unknown(node: Node) -> None:
    """A controller that is off says nothing: not zero."""
    node.log(HOLDER, ID)
    (node.root / f"kubepods/pod1/{ID}").mkdir(parents=True)
    found = Cgroups(node.root, node.logs).usage([HOLDER], 1.0)
    assert [(each.cpu_cores, each.cpu_throttled, each.memory_bytes) for each in found] == [(None, None, None)]


def test_other_pods_are_not_taken_for_it(node: Node) -> None:
    """Names that resemble each other stay apart: a pod's name may contain what another's does."""
    node.log(Holder("prod", "decode-0", "main"), ID)
    node.log(Holder("other", "decode-0", "main-1"), OLD)
    node.write(f"kubepods/pod1/{ID}", 1)
    node.write(f"kubepods/pod2/{OLD}", 1)
    assert Cgroups(node.root, node.logs).usage([HOLDER], 1.0) == ()


@pytest.mark.parametrize(("what", "said"), [("cgroup.controllers", "cgroup v2"), ("logs", "logs")])
def test_what_is_missing_is_said(node: Node, what: str, said: str) -> None:
    """Cgroup v1, and a folder that was not mounted."""
    node.log(HOLDER, ID)
    if what == "logs":
        (node.logs / f"decode-0_prod_main-1-{ID}.log").unlink()
        node.logs.rmdir()
    else:
        (node.root / what).unlink()
    cgroups = Cgroups(node.root, node.logs)
    assert cgroups.usage([HOLDER], 1.0) == ()
    assert said in cgroups.problem
