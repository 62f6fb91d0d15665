"""One served model and its parts, whatever framework runs it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sevenhop.core.inventory.objects import Key


class Framework(StrEnum):
    DYNAMO = "dynamo"
    KUBERAY = "kuberay"
    KSERVE = "kserve"
    LWS = "lws"
    LLM_D = "llm-d"
    KUBEAI = "kubeai"
    AIBRIX = "aibrix"
    PRODUCTION_STACK = "production-stack"
    RBG = "rbg"
    NIM = "nim"
    PLAIN = "plain"
    GROVE = "grove"
    KAITO = "kaito"


class Tier(StrEnum):
    """What a workload is worth to its owner."""

    CRITICAL = "critical"
    STANDARD = "standard"
    BATCH = "batch"

    @property
    def rank(self) -> int:
        """Higher is worth more."""
        return _RANKS[self]


_RANKS = {Tier.CRITICAL: 2, Tier.STANDARD: 1, Tier.BATCH: 0}


class Registration(StrEnum):
    """How pods become reachable for requests."""

    ENDPOINTS = "endpoints"  # EndpointSlices of a Service
    DYNAMO = "dynamo"  # Dynamo's discovery
    RAY = "ray"  # the Ray controller on the head
    POOL = "inference-pool"  # the endpoint picker of an InferencePool


class Model(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        name: As requests name it, else as the artifact is called; empty if unknown.
        version: The release unit: revision, tag, storage path or image digest; empty if not stated.
        source: Where the weights come from, such as ``hf://meta-llama/Llama-3.1-70B``.
    """

    name: str = ""
    version: str = ""
    source: str = ""


class ScaleTarget(msgspec.Struct, frozen=True, gc=False):
    """The object and field that rule the replica count; `path` is dotted, `unit_pods` are the pods of one replica."""

    kind: str
    namespace: str
    name: str
    path: str
    unit_pods: int = 1
    note: str = ""


class Component(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A part of a workload: head, worker, prefill, decode, router, frontend, predictor, …

    Attributes:
        name: Unique within the workload; the framework's own name for it.
        role: Our word for what it does: ``prefill``, ``decode``, ``worker``, ``head``, ``leader``, ``router``,
            ``frontend``, ``predictor``, ``transformer``, ``planner``, ``epp``, ``engine``.
        desired: Replicas asked for, in the framework's unit (a multi-node group is one); None if nothing says.
        minimum: Replicas below which the owner says it is broken; None if not stated.
        pods_per_replica: Pods in one replica.
        gpus_per_replica: GPUs of one replica, all its pods together.
        gpu_resource: Such as ``nvidia.com/gpu``; empty without GPUs.
        product: GPU product that is asked for, normalised; empty for any.
        intended_zero: Why nothing should run: ``scaled_to_zero``, ``suspended``, ``stopped``, ``queued``; else empty.
        canary: Two versions on purpose, as its framework states it.
    """

    name: str
    role: str = ""
    desired: int | None = None
    minimum: int | None = None
    pods_per_replica: int = 1
    gpus_per_replica: int = 0
    gpu_resource: str = ""
    product: str = ""
    priority_class: str = ""
    intended_zero: str = ""
    canary: bool = False
    model: Model = Model()
    image: str = ""
    scale: ScaleTarget | None = None


class Workload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        kind: The root object's kind as in `KINDS`; ``Pod`` for a bare pod, ``InferencePool…`` or ``HelmRelease`` where
            several roots are folded into one.
        roots: (kind, key) of every root object, the leading one first.
        registers: How pods of it become reachable.
        owner: Who is responsible, from label or annotation; empty if not stated.
        tier: None if neither annotation nor policy says.
    """

    namespace: str
    name: str
    framework: Framework
    kind: str
    roots: tuple[tuple[str, Key], ...] = ()
    model: Model = Model()
    components: tuple[Component, ...] = ()
    registers: Registration = Registration.ENDPOINTS
    tier: Tier | None = None
    owner: str = ""

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    def component(self, name: str) -> Component | None:
        for part in self.components:  # asked for every component of a pool: a generator would cost twice as much
            if part.name == name:
                return part
        return None


class Membership(msgspec.Struct, frozen=True, gc=False):
    """
    Where a pod belongs.

    Attributes:
        workload: Key of the workload.
        component: Name of the component.
        model: What this very pod runs, read from the pod itself.
        group: Which replica of a multi-pod group it is part of; empty otherwise.
    """

    workload: Key
    component: str
    model: Model = Model()
    group: str = ""
