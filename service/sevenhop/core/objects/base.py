"""What every Kubernetes object has: identity, owners, conditions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

Labels = dict[str, str]

Quantities = dict[str, str | int | float]
"""Resource name to quantity as written: ``{"cpu": "2", "nvidia.com/gpu": 8}``; see `quantity.parse`."""


class Slim(msgspec.Struct, rename="camel", gc=False, kw_only=True, omit_defaults=True):
    """
    A Kubernetes struct with just the fields that Sevenhop reads, or of a controller's spec compares.

    Decoded straight from a watch line; unknown fields are skipped.  `gc=False`: no object refers back to its
    parent, and a full collection over 150,000 pods drops from 232 ms to 1 ms.  Treat as frozen.
    """


class OwnerRef(Slim):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class Meta(Slim):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Labels = {}
    annotations: Labels = {}
    owner_references: Sequence[OwnerRef] = ()
    finalizers: Sequence[str] = ()

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name); the namespace of a cluster-wide object is empty."""
        return (self.namespace, self.name)

    def controller(self) -> OwnerRef | None:
        """The owner that controls this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Condition(Slim):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Object(Slim):
    """Any object: only its metadata."""

    metadata: Meta = msgspec.field(default_factory=Meta)

    @property
    def key(self) -> tuple[str, str]:
        return self.metadata.key


class Custom(Object):
    """
    A custom resource, its spec and status as plain dictionaries.

    Hundreds of these exist where there are 150,000 pods, and each framework reads other fields: typed structs
    would cost more than they save.
    """

    kind: str = ""
    api_version: str = ""
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class Workspace(Custom):
    """KAITO's Workspace, which has its fields beside `spec`, not in it."""

    resource: dict[str, Any] = {}
    inference: dict[str, Any] = {}


def condition(conditions: Sequence[Condition], kind: str) -> Condition | None:
    """The condition of that type, or None."""
    for found in conditions:  # read for every pod event: a generator would cost twice as much
        if found.type == kind:
            return found
    return None


class SelectorRequirement(Slim):
    key: str
    operator: str
    values: Sequence[str] = ()


class LabelSelector(Slim):
    match_labels: Labels = {}
    match_expressions: Sequence[SelectorRequirement] = ()
