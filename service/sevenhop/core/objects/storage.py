"""Volumes, the claims that ask for them, and their classes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sevenhop.core.objects.base import LabelSelector, Object, Quantities, Slim
from sevenhop.core.objects.cluster import ObjectRef
from sevenhop.core.objects.pod import NodeSelector


class PvSpec(Slim):
    capacity: Quantities = {}
    access_modes: Sequence[str] = ()
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    claim_ref: ObjectRef | None = None
    node_affinity: VolumeNodeAffinity | None = None


class VolumeNodeAffinity(Slim):
    required: NodeSelector | None = None


class Phase(Slim):
    phase: str = ""


class PersistentVolume(Object):
    spec: PvSpec = msgspec.field(default_factory=PvSpec)
    status: Phase = msgspec.field(default_factory=Phase)


class PvcResources(Slim):
    requests: Quantities = {}


class PvcSpec(Slim):
    access_modes: Sequence[str] = ()
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_name: str = ""
    selector: LabelSelector | None = None
    resources: PvcResources = msgspec.field(default_factory=PvcResources)


class PersistentVolumeClaim(Object):
    spec: PvcSpec = msgspec.field(default_factory=PvcSpec)
    status: Phase = msgspec.field(default_factory=Phase)


class TopologySelectorTerm(Slim):
    match_label_expressions: Sequence[TopologyLabel] = ()


class TopologyLabel(Slim):
    key: str
    values: Sequence[str] = ()


class StorageClass(Object):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: Sequence[TopologySelectorTerm] = ()
