"""Where objects live: in the version that the API server serves and the source reads them in."""

from __future__ import annotations

import msgspec

from sevenhop.actions.errors import GoneError
from sevenhop.actions.transport import AnsweredError, Transport
from sevenhop.core.objects.kinds import KINDS, Kind
from sevenhop.core.remediation.action import ObjectRef


class _Resource(msgspec.Struct):
    name: str = ""


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


_decode = msgspec.json.Decoder(_Resources).decode


class Paths:
    """
    Remembers versions for as long as it lives.

    The first served version of a kind's row, as the Kubernetes source chooses it: pointers are made for that one.
    """

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}

    async def path(self, transport: Transport, ref: ObjectRef, version: str = "") -> str:
        """
        Args:
            version: The one that the pointers were made for; the preferred one if empty.

        Raises:
            GoneError: The API server does not serve the kind (any more).
            TransportError: It could not be asked.
        """
        version = version or await self._version(transport, ref)
        return f"{KINDS[ref.kind].path(version, ref.namespace)}/{ref.name}"

    async def api_version(self, transport: Transport, ref: ObjectRef) -> str:
        """Such as ``apps/v1``; errors as `path`."""
        version, group = await self._version(transport, ref), KINDS[ref.kind].group
        return f"{group}/{version}" if group else version

    async def _version(self, transport: Transport, ref: ObjectRef) -> str:
        known = self._versions.get(ref.kind)
        if known is None:
            known = await _served(transport, KINDS[ref.kind])
            if known is None:
                raise GoneError(f"{ref} is gone: its kind is not served here")
            self._versions[ref.kind] = known
        return known


async def _served(transport: Transport, kind: Kind) -> str | None:
    for version in kind.versions:
        path = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        try:
            found = _decode(await transport.send("GET", path, {}))
        except AnsweredError as error:
            if error.status == 404:
                continue
            raise
        if any(resource.name == kind.plural for resource in found.resources):
            return version
    return None
