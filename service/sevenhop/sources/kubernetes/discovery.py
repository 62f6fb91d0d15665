"""Which of our kinds an API server serves, and in which version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from enum import StrEnum

import aiohttp
import msgspec

from sevenhop.core.objects.kinds import Kind
from sevenhop.sources.kubernetes.api import ApiError, ApiServer, MalformedAnswerError

_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)
"""Aggregated discovery since Kubernetes 1.26 (KEP-3352); older servers answer with the plain lists."""


class Availability(StrEnum):
    SERVED = "served"
    ABSENT = "absent"  # the server knows its groups, and this kind is not in them
    UNREADABLE = "unreadable"  # served, but in no version that we read, or not for list and watch
    UNCERTAIN = "uncertain"  # the group could not be asked; what held before holds on


class Served(msgspec.Struct, frozen=True):
    """How one kind is served; `version` is set where `availability` is `SERVED`."""

    availability: Availability
    version: str = ""
    detail: str = ""


class _Resource(msgspec.Struct, rename="camel"):
    """A resource of apidiscovery.k8s.io (`resource`), or of meta/v1 APIResourceList (`name`)."""

    resource: str = ""
    name: str = ""
    verbs: list[str] | None = None

    @property
    def plural(self) -> str:
        return self.resource or self.name


class _Version(msgspec.Struct, rename="camel"):
    version: str = ""
    resources: list[_Resource] | None = None
    freshness: str = "Current"


class _Name(msgspec.Struct):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    versions: list[_Version] | None = None


class _PlainGroup(msgspec.Struct):
    name: str = ""
    versions: list[_Version] | None = None


class _Document(msgspec.Struct):
    """
    APIGroupDiscoveryList (`items`), APIGroupList (`groups`), APIVersions (`versions`), APIResourceList (`resources`).
    """

    kind: str = ""
    items: list[_AggregatedGroup] | None = None
    groups: list[_PlainGroup] | None = None
    versions: list[str] | None = None
    resources: list[_Resource] | None = None


_decoder = msgspec.json.Decoder(_Document)

_Group = dict[str, _Version | None]
"""Version to what it serves; None where that could not be asked."""


async def discover(api: ApiServer, kinds: Iterable[Kind]) -> dict[str, Served]:
    """
    How each of `kinds` is served, by the kind's name.

    A group whose own server does not answer makes its kinds `UNCERTAIN`, never `ABSENT`.

    Raises:
        ApiError, aiohttp.ClientError, TimeoutError, OSError: Nothing could be learned at all.
        MalformedAnswerError: The answer is not discovery.
    """
    kinds = list(kinds)
    core, named = await asyncio.gather(_read(api, "/api"), _read(api, "/apis"))
    groups: dict[str, _Group] = {}
    await _add_groups(api, groups, core, kinds)
    await _add_groups(api, groups, named, kinds)
    return {kind.name: _served(kind, groups.get(kind.group)) for kind in kinds}


async def _read(api: ApiServer, path: str) -> _Document:
    body = await api.read(path, headers={"Accept": _ACCEPT})
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise MalformedAnswerError(f"{path} is not Kubernetes discovery: {error}") from None


async def _add_groups(api: ApiServer, groups: dict[str, _Group], document: _Document, kinds: list[Kind]) -> None:
    if document.kind == "APIGroupDiscoveryList":
        for group in document.items or ():
            groups[group.metadata.name] = {
                v.version: v if v.freshness == "Current" else None for v in group.versions or ()
            }
        return
    offered = {"": document.versions or []} if document.kind == "APIVersions" else {}
    for plain in document.groups or ():
        offered[plain.name] = [v.version for v in plain.versions or ()]
    # Every version of a group of ours is asked for, also those that we cannot read: served so is not absent.
    ours = {kind.group for kind in kinds}
    wanted = [(group, version) for group, versions in offered.items() if group in ours for version in versions]
    for name, _ in wanted:
        groups[name] = {}
    answers = await asyncio.gather(*(_resources(api, name, version) for name, version in wanted))
    for (name, version), answer in zip(wanted, answers, strict=True):
        groups[name][version] = answer


async def _resources(api: ApiServer, group: str, version: str) -> _Version | None:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        document = await _read(api, path)
    except ApiError as error:
        return _Version(version) if error.status == 404 else None
    except (aiohttp.ClientError, TimeoutError, OSError, MalformedAnswerError):
        return None  # its kinds become UNCERTAIN
    return _Version(version, document.resources)


def _served(kind: Kind, group: Mapping[str, _Version | None] | None) -> Served:
    if group is None:
        return Served(Availability.ABSENT)
    reason = ""
    uncertain = Served(Availability.UNCERTAIN, detail=f"the API group {kind.group or 'core'} does not answer")
    for version in kind.versions:
        if version not in group:
            continue
        known = group[version]
        if known is None:
            return uncertain  # not the next version either: that would swap them whenever a server is away
        for resource in known.resources or ():
            if resource.plural == kind.plural:
                verbs = resource.verbs or ()
                if "list" in verbs and "watch" in verbs:
                    return Served(Availability.SERVED, version)
                reason = f"{kind.plural}.{kind.group}/{version} can not be listed and watched"
    if any(known is None for known in group.values()):
        return uncertain
    if reason:
        return Served(Availability.UNREADABLE, detail=reason)
    others = [v for v, known in group.items() if known and any(r.plural == kind.plural for r in known.resources or ())]
    if others:
        ours = ", ".join(kind.versions)
        return Served(
            Availability.UNREADABLE, detail=f"served as {', '.join(others)}, which we cannot read (we read {ours})"
        )
    return Served(Availability.ABSENT)
