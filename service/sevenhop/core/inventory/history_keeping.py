"""
Histories are kept as observations come in, one by one: what two looks between two passes show would be lost otherwise.
"""

from __future__ import annotations

from datetime import datetime

from sevenhop.core.inventory.advertised import devices
from sevenhop.core.inventory.history import loads, restarts, seen_gpus
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodShape, is_ready, made_by, main_container, runs_since, status_of
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Pod


def remember_pod(state: State, key: Key, before: Pod | None, after: Pod, at: datetime) -> None:
    """
    Restarts and loads that this look at a pod tells of.

    Args:
        before: The same incarnation as it was known; None at the first look.
    """
    known = state.restarts.get(key)
    history = known[1] if known is not None and known[0] == after.metadata.uid else None
    counted = restarts(history, after, at, known_pod=before is not None)
    if counted is None:
        if known is not None:
            forget_pod(state, key)
    elif counted is not history:
        state.restarts[key] = (after.metadata.uid, counted)
        state.changed_histories.add(("restarts", "/".join(key)))
    if before is not None and not is_ready(before) and is_ready(after) and counted is None:
        _remember_load(state, after, state.shape(key, after))


def forget_pod(state: State, key: Key) -> None:
    if state.restarts.pop(key, None) is not None:
        state.changed_histories.add(("restarts", "/".join(key)))


def _remember_load(state: State, pod: Pod, shape: PodShape) -> None:
    """
    How long a load took is told only at the first Ready of a container that never restarted, and only if we saw the
    pod before it was ready: of a pod that was ready before, and flapped, the transition is a later one.
    """
    ready, started = condition(pod.status.conditions, "Ready"), runs_since(status_of(pod, shape.main))
    if ready is None or ready.last_transition_time is None or started is None:
        return
    release = release_name(pod.metadata.namespace, shape.family, shape.image)
    known = state.loads.get(release)
    if known is not None and any(uid == pod.metadata.uid for uid, _ in known.seconds):
        return
    seconds = (ready.last_transition_time - started).total_seconds()
    if seconds > 0:
        state.loads[release] = loads(known, pod.metadata.uid, seconds)
        state.changed_histories.add(("loads", release))


def release_of(pod: Pod) -> str:
    """What loads alike: pods of one controller with one image.  Not by revision: a new flag loads the same weights."""
    main = main_container(pod.spec.containers)
    return release_name(pod.metadata.namespace, made_by(pod)[0], main.image if main is not None else "")


def release_name(namespace: str, family: str, image: str) -> str:
    return f"{namespace}/{family} {image}"


def remember_node(state: State, name: str, node: Node) -> None:
    """The most GPUs that a node showed while set up as it is now."""
    allocatable = sum(devices(node.status.allocatable).values())
    before = state.seen_gpus.get(name)
    after = seen_gpus(before, node, allocatable)
    if after is not before and (allocatable or before is not None):
        state.seen_gpus[name] = after
        state.changed_histories.add(("seen_gpus", name))


def forget_node(state: State, name: str) -> None:
    if state.seen_gpus.pop(name, None) is not None:
        state.changed_histories.add(("seen_gpus", name))
