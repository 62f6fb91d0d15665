"""What does the API server say that it serves?"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from sevenhop.core.objects.kinds import Kind
from sevenhop.simulation.answers import answer
from sevenhop.simulation.store import Data, StoreError

_AGGREGATED = "apidiscovery.k8s.io"
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def discovery(request: web.Request, kinds: Sequence[Kind], version: str, *, aggregated: bool) -> web.Response:
    """
    Answer a request that is about no object.

    Args:
        kinds: Those that are served.
        aggregated: Whether discovery is aggregated (since 1.26).

    Raises:
        StoreError: 404.
    """
    parts = [part for part in request.path.split("/") if part]
    if parts == ["version"]:
        major, minor, _ = version.removeprefix("v").split(".", 2)
        return answer({"major": major, "minor": minor, "gitVersion": version, "platform": "simulation"})
    if parts in (["healthz"], ["readyz"], ["livez"]):
        return web.Response(text="ok")
    if parts in (["api"], ["apis"]):
        groups = _groups(kinds, is_core=parts == ["api"])
        if aggregated and _AGGREGATED in request.headers.get("Accept", ""):
            return answer(_aggregated_discovery(groups))
        return answer(_plain_discovery(groups, is_core=parts == ["api"]))
    if parts[:1] == ["api"] and len(parts) == 2:
        return _resources(kinds, "", parts[1])
    if parts[:1] == ["apis"] and len(parts) == 3:
        return _resources(kinds, parts[1], parts[2])
    raise StoreError(404, "NotFound", "the server could not find the requested resource")


def _groups(kinds: Sequence[Kind], *, is_core: bool) -> dict[str, dict[str, list[Kind]]]:
    groups: dict[str, dict[str, list[Kind]]] = {}
    for kind in kinds:
        if is_core is (kind.group == ""):
            for version in kind.versions:
                groups.setdefault(kind.group, {}).setdefault(version, []).append(kind)
    return groups


def _resources(served: Sequence[Kind], group: str, version: str) -> web.Response:
    kinds = _groups(served, is_core=group == "").get(group, {}).get(version)
    if kinds is None:
        raise StoreError(404, "NotFound", "the server could not find the requested resource")
    resources = [
        {"name": k.plural, "kind": k.kind, "namespaced": k.namespaced, "singularName": "", "verbs": _VERBS}
        for k in kinds
    ]
    name = f"{group}/{version}" if group else version
    return answer({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources})


def _aggregated_discovery(groups: dict[str, dict[str, list[Kind]]]) -> Data:
    items = []
    for group, versions in groups.items():
        rows = []
        for version, kinds in versions.items():
            resources = [
                {
                    "resource": k.plural,
                    "responseKind": {"group": group, "version": version, "kind": k.kind},
                    "scope": "Namespaced" if k.namespaced else "Cluster",
                    "singularResource": k.kind.lower(),
                    "verbs": _VERBS,
                }
                for k in kinds
            ]
            rows.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": rows})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _plain_discovery(groups: dict[str, dict[str, list[Kind]]], *, is_core: bool) -> Data:
    if is_core:
        return {"kind": "APIVersions", "versions": list(groups.get("", {}))}
    rows = [
        {
            "name": group,
            "versions": [{"groupVersion": f"{group}/{version}", "version": version} for version in versions],
            "preferredVersion": {"groupVersion": f"{group}/{next(iter(versions))}", "version": next(iter(versions))},
        }
        for group, versions in groups.items()
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": rows}
