"""What is a request about: its verb, its kind, its object?"""

from __future__ import annotations

import msgspec
from aiohttp import web

from sevenhop.core.objects.kinds import Kind
from sevenhop.simulation import events
from sevenhop.simulation.store import Store, StoreError

_SCALABLE = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "LeaderWorkerSet", "Model", "RayCluster", "NIMService"}
)
"""Kinds with a scale subresource whose path is ``spec.replicas``."""


class Target(msgspec.Struct, frozen=True):
    """What a path and method are about; `kind` is None for discovery, `group` is the path's."""

    verb: str
    kind: Kind | None = None
    group: str = ""
    version: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def the_kind(self) -> Kind:
        assert self.kind is not None
        return self.kind

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @classmethod
    def parse(cls, request: web.Request, store: Store) -> Target:
        """
        Raises:
            StoreError: 404 such a thing is not served; 405 it is, and cannot be asked so.
        """
        parts = [part for part in request.path.split("/") if part]
        group, rest = ("", parts[1:]) if parts[:1] == ["api"] else (parts[1] if len(parts) > 1 else "", parts[2:])
        if parts[:1] not in (["api"], ["apis"]) or len(rest) < 2:
            return cls("discovery")
        version, rest = rest[0], rest[1:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        stored_in = "" if (group, rest[0]) == (events.GROUP, "events") else group
        kind = next(
            (k for k in store.kinds() if k.group == stored_in and k.plural == rest[0] and version in k.versions), None
        )
        if kind is None:
            raise StoreError(404, "NotFound", "the server could not find the requested resource")
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        is_scale_without = subresource == "scale" and kind.kind not in _SCALABLE
        is_eviction = subresource == "eviction" and kind.name == "Pod" and request.method == "POST"
        is_known = subresource in ("", "status", "scale") or is_eviction
        if not is_known or is_scale_without or len(rest) > 3:
            raise StoreError(404, "NotFound", "the server could not find the requested resource")
        is_watch = request.query.get("watch", "").lower() in ("1", "true")
        reading = "get" if name else "watch" if is_watch else "list"
        verb = {"GET": reading, "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(
            request.method, "unknown"
        )
        if not is_eviction and bool(name) is (verb == "create") and verb != "list" and verb != "watch":
            raise StoreError(405, "MethodNotAllowed", f"{request.method} is not supported here")
        return cls(verb, kind, group, version, namespace, name, subresource)
