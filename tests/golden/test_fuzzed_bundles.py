"""Bundles as they come, owners hidden, in any order, and some things twice: never a crash, always one answer."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenhop.cli.diagnose import document_of
from sevenhop.cli.output import to_json
from sevenhop.core import bundle
from sevenhop.core.events import Applied, Event, SourceChanged, SyncState
from sevenhop.core.inventory.inventory import Inventory
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.objects.decode import UndecodableError, convert
from sevenhop.core.objects.kinds import KINDS, kind_of
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.sources.files import load_files
from tests.shared import SHARED, shared_path

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared samples are not here (SEVENHOP_SHARED)")

Manifest = dict[str, Any]

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
AT = "2026-11-30T11:00:00Z"
EXAMPLES = int(os.environ.get("SEVENHOP_EXAMPLES") or (2000 if os.environ.get("SEVENHOP_ROUNDS") == "soak" else 40))
_MOST_PODS = 12


# Bundles out of samples


@cache
def samples() -> tuple[str, ...]:
    root = shared_path("data/samples")
    return tuple(sorted(str(path.relative_to(root)) for path in root.rglob("*.yaml")))


@cache
def manifests(name: str) -> tuple[Manifest, ...]:
    """The sample's objects with identities, and pods of every pod template that stands anywhere in them."""
    read = yaml.load_all(shared_path(f"data/samples/{name}").read_text("utf-8"), yaml.CSafeLoader)
    found: list[Manifest] = []
    for number, document in enumerate(each for each in read if isinstance(each, dict) and "kind" in each):
        meta = document.setdefault("metadata", {}) or {}
        meta["name"] = meta.get("name") or meta.get("generateName") or f"unnamed-{number}"
        meta["uid"] = f"uid-{number}"
        meta["resourceVersion"] = str(100 + number)
        if kind_of(str(document.get("apiVersion", "")), str(document["kind"])) is not None:
            found.append(json.loads(json.dumps(document, default=str)))
    pods = [pod for owner in found for pod in _pods_of(owner)]
    return (*found, *pods[:_MOST_PODS])


def _pods_of(owner: Manifest) -> Iterator[Manifest]:
    meta = owner["metadata"]
    for number, template in enumerate(_templates(owner.get("spec"))):
        labels = (template.get("metadata") or {}).get("labels") or {}
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {"name": meta["name"], "uid": meta["uid"], "controller": True}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{meta['name']}-{number}",
                "namespace": meta.get("namespace", "default"),
                "uid": f"{meta['uid']}-{number}",
                "resourceVersion": "500",
                "creationTimestamp": AT,
                "labels": {str(k): str(v) for k, v in {**(meta.get("labels") or {}), **labels}.items()},
                "ownerReferences": [reference],
            },
            "spec": template["spec"],
            "status": {"phase": "Pending"},
        }


def _templates(value: Any) -> Iterator[Manifest]:
    """Whatever has ``spec.containers``, or is such a spec."""
    if isinstance(value, list):
        for each in value:
            yield from _templates(each)
    elif isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield {"spec": value}
            return
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield value
            return
        for each in value.values():
            yield from _templates(each)


_STATES: tuple[Manifest, ...] = (
    {"phase": "Pending"},
    {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
     "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "lastTransitionTime": AT}]},
    {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": AT}]},
    {"phase": "Running", "containerStatuses": [{"name": "main", "ready": False, "restartCount": 3,
     "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
     "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": AT}}}]},
    {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
)  # fmt: skip


def _node(name: str, product: str, ready: str = "True") -> Manifest:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "4"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "resourceVersion": "2",
            "labels": {"nvidia.com/gpu.product": product},
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": AT}],
        },
    }


NODES = (_node("a", "NVIDIA-L4"), _node("b", "NVIDIA-H200"), _node("c", "NVIDIA-H100-80GB-HBM3", "False"))
_SAID = (
    ("FailedScheduling", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
    ("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
    ("Failed", "Failed to pull image: manifest unknown"),
    ("Unhealthy", "Startup probe failed: connection refused"),
)


def _event(about: Manifest, number: int) -> Manifest:
    reason, message = _SAID[number]
    meta = about["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{meta['name']}.{number}",
            "namespace": meta.get("namespace", "default"),
            "uid": f"event-{meta['uid']}-{number}",
            "resourceVersion": "600",
        },
        "involvedObject": {"kind": "Pod", **{key: meta[key] for key in ("name", "namespace", "uid") if key in meta}},
        "reason": reason,
        "message": message,
        "lastTimestamp": AT,  # all of one second, so that none is the newest
    }


class Named(dict[str, Any]):
    """A manifest that a failing example shows by its name, and not with all that is in it."""

    def __repr__(self) -> str:
        status = self.get("status") or {}
        node = (self.get("spec") or {}).get("nodeName", "") if self["kind"] == "Pod" else ""
        return f"<{self['kind']} {self['metadata']['uid']} {self['metadata']['name']} {status.get('phase', '')} {node}>"


@st.composite
def bundles(draw: st.DrawFn) -> list[Manifest]:
    """Some samples together, with pods in some state, on a node or not; any object may be missing."""
    chosen = draw(st.lists(st.sampled_from(samples()), min_size=1, max_size=3, unique=True))
    found: list[Manifest] = [Named(node) for node in NODES if draw(st.booleans())]
    seen: set[tuple[str, str, str]] = set()
    for name in chosen:
        for each in manifests(name):
            identity = (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
            if identity in seen or draw(st.integers(0, 3)) == 0:
                continue
            seen.add(identity)
            each = Named(copy.deepcopy(each))
            each["metadata"]["uid"] += f"-{name}"
            for reference in each["metadata"].get("ownerReferences", ()):
                reference["uid"] += f"-{name}"
            if each["kind"] == "Pod":
                each["status"] = draw(st.sampled_from(_STATES))
                ran = each["status"]["phase"] != "Pending"
                if isinstance(each.get("spec"), dict) and (ran or draw(st.booleans())):
                    each["spec"] = {**each["spec"], "nodeName": draw(st.sampled_from("abcd"))}
                said = draw(st.sets(st.integers(0, len(_SAID) - 1), max_size=2))
                found += [Named(_event(each, number)) for number in sorted(said)]
            found.append(each)
    return found


def _older(manifest: Manifest) -> Manifest:
    """The same object as it was before."""
    before = copy.deepcopy(manifest)
    before["metadata"]["resourceVersion"] = "1"
    before["metadata"]["labels"] = {"old": "yes"}
    if before["kind"] == "Pod":
        before["status"] = {"phase": "Pending"}
    return before


Found = tuple[list[Manifest], list[Manifest], list[Manifest]]


@st.composite
def orders(draw: st.DrawFn) -> Found:
    """(a bundle, the same in another order with some objects twice, some of its objects as they were before)"""
    bundle_ = draw(bundles())
    again = [each for each in bundle_ if draw(st.booleans())]
    before = [_older(each) for each in bundle_ if draw(st.integers(0, 3)) == 0]
    return bundle_, draw(st.permutations([*bundle_, *again])), before


# One answer


def _diagnosed(items: Sequence[Manifest], folder: Path) -> str:
    """As ``diagnose -o json`` prints it, without the problems: these say where in the file something stands."""
    file = folder / "bundle.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))
    return to_json(document_of(bundle.diagnose(load_files([file]).objects(), FRAMEWORKS, Policy(), now=NOON)))


few = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(orders(), st.randoms(use_true_random=False))
def test_a_bundle_is_diagnosed_alike_in_every_order(found: Found, dice: Random) -> None:
    """Hidden owners, duplicates and older versions: `diagnose` says of the same set the same, letter by letter."""
    plain, shuffled, before = found
    mixed = [*shuffled, *before]
    dice.shuffle(mixed)
    with tempfile.TemporaryDirectory() as name:
        assert _diagnosed(plain, Path(name)) == _diagnosed(mixed, Path(name))


def _events(items: Sequence[Manifest], hidden: Sequence[str]) -> list[Event]:
    """As a source would tell them; `hidden` kinds are refused to us."""
    states = {kind: SyncState.FORBIDDEN if kind in hidden else SyncState.SYNCED for kind in KINDS}
    found: list[Event] = [SourceChanged(at=NOON, kind=kind, state=state) for kind, state in states.items()]
    for each in items:
        kind = kind_of(each["apiVersion"], each["kind"])
        if kind is None or kind.name in hidden:
            continue
        try:
            obj = convert(kind, each)
        except UndecodableError:
            continue
        found.append(Applied(at=NOON, seq=int(each["metadata"]["resourceVersion"]), kind=kind.name, obj=obj))
    return found


def _facts(events: Sequence[Event], every: int) -> dict[str, Any]:
    """Facts of all subjects in the end, settled after each `every` events."""
    inventory = Inventory("fuzz", FRAMEWORKS)
    for number, event in enumerate(events):
        inventory.apply(event)
        if number % every == 0:
            inventory.settle(NOON)
    inventory.settle(NOON)
    inventory.settle(NOON + timedelta(seconds=30))  # verdicts of those that wait come in passes
    return {str(subject): dict(sorted(facts.items())) for subject, facts in sorted(inventory.facts.items(), key=str)}


@few
@given(orders(), st.lists(st.sampled_from(sorted(KINDS)), max_size=4), st.integers(1, 9))
def test_the_service_converges_in_every_order(found: Found, hidden: list[str], every: int) -> None:
    """However events come, late ones among them, and whichever kinds are forbidden: the same facts in the end."""
    plain, shuffled, late = found

    assert _facts(_events(plain, hidden), 1000) == _facts(_events([*shuffled, *late], hidden), every)


def test_the_samples_give_pods() -> None:
    """Otherwise nothing would be shown."""
    pods = [each for name in samples() for each in manifests(name) if each["kind"] == "Pod"]

    assert len(pods) > 100
