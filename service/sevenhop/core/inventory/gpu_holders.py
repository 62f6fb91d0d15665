"""
Who has a GPU: one rule for whole GPUs and MIG instances, and for every source that tells of them.

A source names pods, and what it said last of a GPU that is lost, or whose node fell silent, stands for ever.  A pod has
the GPU as long as the cluster has this very pod on the node; afterwards it is one that had it.
"""

from __future__ import annotations

from sevenhop.core.inventory.gpu_agent import Gpu, came_later, lost_since
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import State
from sevenhop.core.objects.pod import Pod


def holders_of(state: State, gpu: Gpu) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """
    (pods that have it, pods that had it when it was lost or last told of and are gone), each in order of name.
    """
    have = tuple(pod for pod in gpu.pods() if has_now(state, gpu, pod))
    return have, tuple(pod for pod in gpu.pods() if pod not in have)


def has_now(state: State, gpu: Gpu, pod: Key) -> bool:
    """
    Whether a pod that a source named still has the GPU.

    Not if the cluster has no such pod any more, or it has finished.  Where pods cannot be seen the source's word
    stands: unknown is not gone.
    """
    if not state.objects.is_known("Pod"):
        return True
    known = state.objects.pods().get(pod)
    return known is not None and not known.is_finished and is_same(state, gpu, known)


def is_same(state: State, gpu: Gpu, pod: Pod) -> bool:
    """
    Whether a pod is the one that a source named as a holder, and not another one of its name.

    That is one on another node, and one that was made after the GPU was last told of.
    """
    if pod.spec.node_name != gpu.node:
        return False
    agent = state.gpus.agents.get(gpu.node)
    told_at = lost_since(gpu) or (agent.sampled_at if agent is not None else None)
    return not came_later(pod.metadata.creation_timestamp, told_at)
