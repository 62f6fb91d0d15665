"""
What discovery wants to know of a framework, and what it gives it to look at.

The frameworks themselves are a table outside of the core (`sevenhop.frameworks.FRAMEWORKS`), handed in as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.workloads import Component, Framework, Model, Registration
from sevenhop.core.objects.base import Labels, Meta, Object
from sevenhop.core.objects.pod import PodSpec, PodTemplate

Lookup = Callable[[str, str, str], Object | None]
"""(kind, namespace, name) to the object, None if it is not here; the caller is asked again when it changes."""


class RootRef(NamedTuple):
    """The object that a workload begins at; it need not be visible."""

    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)


class Member(NamedTuple):
    """An object between the root and its pods: a Deployment, a RayCluster, …  `kind` is as in `KINDS`."""

    kind: str
    obj: Object


class Scaler(NamedTuple):
    """Something else that sets the replica count: an HPA, a ScaledObject, an AIBrix PodAutoscaler."""

    kind: str
    name: str


class Found(NamedTuple):
    """
    What is known of one root.

    Attributes:
        obj: None where only its pods or its children tell of it.
        members: Sorted by kind and key.
        get: Looks up any other object, such as a runtime that the root names.
        scaler: What scales the object of this (kind, name) in the root's namespace; None if nothing seen does.
    """

    ref: RootRef
    obj: Object | None
    members: Sequence[Member]
    get: Lookup
    scaler: Callable[[str, str], Scaler | None]


class Place(NamedTuple):
    """
    Where a pod, or a template of pods, belongs within its workload.

    Attributes:
        component: The framework's own name.
        role: Our word for it; see `Component.role`.
        group: Which replica of a multi-pod group; empty where one pod is one replica.
        pods: Pods in one replica, where the pod itself tells; 1 otherwise.
    """

    component: str
    role: str
    group: str = ""
    pods: int = 1


class Reading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    What a root says of its workload.

    Attributes:
        registers: Where it differs from what its framework usually does.
    """

    components: tuple[Component, ...] = ()
    model: Model = Model()
    registers: Registration | None = None


class Candidate(NamedTuple):
    """
    A Deployment, StatefulSet, LeaderWorkerSet or bare pod, which may or may not serve a model.

    Attributes:
        labels: Of the object itself; of a pod of it, where the object is not visible.
        template: Of its pods; the leader's of a LeaderWorkerSet.
        pools: Names of the InferencePools that select its pods.
        obj: None where only its pods tell of it.
    """

    ref: RootRef
    labels: Labels
    template: PodTemplate
    pools: tuple[str, ...]
    obj: Object | None


class Claim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    A framework says: this one is mine.

    Attributes:
        role: Of its only component; empty where its framework names its components itself.
        folds: Roots of one namespace that share any of these are one workload.
        name: Of the workload, where it is not the root's own.
        serves: False for routers and endpoint pickers: they belong to the workload that they route to.
        handles: What routers may call the workload by, such as ``release/prod``.
        routes: Handles of what this router routes to; none if it does not say.
        alone: A router that is a workload of its own, where what it routes to is not seen or is more than one thing.
    """

    role: str
    model: Model = Model()
    folds: tuple[str, ...] = ()
    name: str = ""
    helm: bool = False
    serves: bool = True
    handles: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    alone: bool = False


def join_nothing(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    """For frameworks whose labels name no root object."""
    return None


def refuse_nothing(ref: RootRef, obj: Object) -> str:  # noqa: ARG001
    """For frameworks whose every root is a workload."""
    return ""


class FrameworkSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    One framework, one row of the table; the order of the table is the order of precedence.

    Attributes:
        docs: One sentence on what it is and how it is told.
        roots: Kinds in `KINDS` that are always a workload of it, the topmost first.
        below: Kinds in between, which are never a workload where a root is named above them.
        claims: Kinds of which it takes some, by `claim`.
        aside: (kind, why objects of it are no workload by themselves).
        labels: Labels that join a pod to its root or tell its component; for the reference page.
        scale: Which field is patched to scale, or why nothing may be.
        read: From a visible root to its components.
        read_below: From the objects below a root that is not visible; None for the usual way.
        place: From a pod of it, or from a template, to its component.
        join: From labels (and, where these are silent, the pod's environment) to the root.
        model: What a pod runs, read from the pod alone.
        claim: Takes a candidate, or says why not; an empty reason for what has nothing to do with it.
        refuse: Why a root is no workload after all, in a few words; empty if it is one.
    """

    framework: Framework
    docs: str
    roots: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    aside: tuple[tuple[str, str], ...] = ()
    labels: tuple[str, ...] = ()
    registers: Registration = Registration.ENDPOINTS
    scale: str
    read: Callable[[Found], Reading]
    read_below: Callable[[Found], Reading] | None = None
    place: Callable[[Meta, PodSpec, Found], Place]
    model: Callable[[Meta, PodSpec], Model]
    join: Callable[[Meta, PodSpec | None], RootRef | None] = join_nothing
    claim: Callable[[Candidate], Claim | str] | None = None
    refuse: Callable[[RootRef, Object], str] = refuse_nothing


CLAIMABLE: tuple[str, ...] = (
    "LeaderWorkerSet.leaderworkerset.x-k8s.io",
    "JobSet.jobset.x-k8s.io",
    "Deployment.apps",
    "StatefulSet.apps",
    "DaemonSet.apps",
    "ReplicaSet.apps",
    "Job.batch",
    "Pod",
)
"""Kinds that serve models without being made for it: each needs a framework that claims it."""
