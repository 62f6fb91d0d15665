"""A pod whose GPU is bad fails of that, whatever its engine says last."""

from __future__ import annotations

from msgspec.structs import replace

from sevenhop.core.hops.causes import CAUSES
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.inventory.gpu_health import GpuState
from sevenhop.core.inventory.gpu_holders import is_same
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod
from sevenhop.core.subject import Hop

_MAY_COME_FROM_IT = frozenset((Category.RUNTIME, Category.ENGINE, Category.PROBE, Category.DEVICE, Category.UNKNOWN))
"""What ends when its GPU does: not an image that is not there, nor memory of the host."""


UNHEALTHY = "gpus-unhealthy"


def waits_for_bad(row: PodRow | None) -> bool:
    """Whether a pod has no node because nodes advertise fewer GPUs than they have."""
    return row is not None and row.waiting and row.pending is not None and row.pending.cause == UNHEALTHY


def waiting_for(state: State, pool: str) -> list[PodRow]:
    """Pods that wait for bad GPUs of this pool, in order of name."""
    rows = [row for pod in sorted(state.waits_for_bad) if (row := state.rows.get(pod)) is not None]
    return [row for row in rows if state.pool_of.get((row.workload, row.component)) == pool]


def blamed_on_gpu(state: State, pod: Key, failure: Diagnosis | None) -> Diagnosis | None:
    """The pod's failure, or its GPU's trouble in its place, with what the pod says as evidence."""
    if failure is None or failure.category not in _MAY_COME_FROM_IT or "oom-host" in failure.cause:
        return failure
    found = bad_gpu_of(state, pod)
    if found is None:
        return failure
    node, judged = found
    why = diagnosis_of_gpu(node, judged)
    said = Evidence(f"pod/{pod[1]}", failure.summary)
    return replace(why, evidence=(*why.evidence, said, *failure.evidence))


def bad_gpu_of(state: State, pod: Key) -> tuple[str, GpuState] | None:
    """
    (node, trouble) of a bad GPU that a pod has, or had when it went bad; None while none is known to be.

    What was bad when its agent was last heard is still what the pod fails of.
    """
    pod_object = state.objects.pods().get(pod)
    node = pod_object.spec.node_name if pod_object is not None else ""
    agent = state.gpus.agents.get(node)
    told = state.gpus.on_pod.get(pod, ())
    for uuid, judged in sorted(state.gpu_states.get(node, {}).items()):
        if not judged.is_bad or not judged.trouble:
            continue
        gpu = agent.gpus.get(uuid) if agent is not None else None
        has_it = (node, uuid) in told and gpu is not None and pod_object is not None and is_same(state, gpu, pod_object)
        if has_it or (pod in judged.victims and _is_older(pod_object, judged)):
            return node, judged
    return None


def _is_older(pod: Pod | None, judged: GpuState) -> bool:
    """A pod that came later under the same name did not have the GPU."""
    created = pod.metadata.creation_timestamp if pod is not None else None
    return created is None or judged.since is None or created <= judged.since


def diagnosis_of_gpu(node: str, judged: GpuState) -> Diagnosis:
    """What a bad GPU, or one with an application's error, is to whoever uses it."""
    row = CAUSES[judged.cause or "gpu-xid"]
    return Diagnosis(
        hop=Hop.GPU,
        category=row.category,
        cause=row.slug,
        confidence=Confidence.CERTAIN,
        summary=f"{judged.trouble}, on node {node}",
        evidence=(Evidence(f"node/{node}", judged.trouble),),
        next_steps=row.next_steps,
    )
