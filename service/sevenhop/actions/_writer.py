"""
The writing client.  Private to this package: made for one act, with the permit for it, and it asks the permit before
every request that could change something.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from sevenhop.actions.errors import (
    ActError,
    ChangedError,
    GoneError,
    PermitError,
    RefusedError,
    RetryableActError,
    UncertainActError,
)
from sevenhop.actions.paths import Paths
from sevenhop.actions.pointers import Data, Operation
from sevenhop.actions.transport import AnsweredError, LostAnswerError, NotSentError, Transport
from sevenhop.actions.words import explain
from sevenhop.core.effects import Act
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.permit import Permit, Purpose, covers

FIELD_MANAGER = "sevenhop"

_Asked = TypeVar("_Asked")

_MOST_TRIES = 4

_TELLS = "Event"
"""Kind of what changes nothing: it may be written by who may only look, too."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Writer:
    """
    Requests of one act.

    Attributes:
        wrote: Requests so far that may have changed something.
    """

    def __init__(
        self, transport: Transport, paths: Paths, act: Act, permit: Permit, now: Callable[[], datetime]
    ) -> None:
        """
        Raises:
            PermitError: The permit is not for exactly this act, now.
        """
        self._transport = transport
        self._paths = paths
        self._act = act
        self._permit = permit
        self._now = now
        self._plan_hash = act.plan.hash
        self._versions = {scale.target.kind: scale.version for scale in act.plan.scales if scale.version}
        self.wrote = 0
        self.is_dry = act.purpose is Purpose.DRY_RUN
        if not self._is_covered():
            raise PermitError(f"no permit for {act.id}: nothing was asked of the cluster")

    async def read(self, ref: ObjectRef, subresource: str = "") -> Data:
        """
        The object as it is.

        Raises:
            GoneError: It, or the incarnation that is meant, is not there.
            ActError: It cannot be read.
        """
        path = await self._path(ref, subresource)
        data = _decode(await self._send("get", "GET", ref, subresource, path, {}))
        found = (data.get("metadata") or {}).get("uid", "")
        if ref.uid and found != ref.uid:
            raise GoneError(f"{ref} was created anew by somebody since")
        return data

    async def read_all(self, kind: str, namespace: str) -> list[Data]:
        """All objects of a kind in a namespace; errors as `read`."""
        ref = ObjectRef(kind, namespace, "")
        path = (await self._path(ref, "")).rstrip("/")
        return list(_decode(await self._send("list", "GET", ref, "", path, {})).get("items") or ())

    async def patch(self, ref: ObjectRef, operations: Sequence[Operation], subresource: str = "") -> None:
        """
        One JSON patch; nothing is sent where there is nothing to change.

        Raises:
            ChangedError: One of its tests failed, or it is not valid.
            ActError: See `words.explain`.
        """
        if not operations:
            return
        params = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        path = await self._path(ref, subresource)
        await self._change("patch", "PATCH", ref, subresource, path, params, operations, "application/json-patch+json")

    async def patch_as_it_is(
        self, ref: ObjectRef, patch: Callable[[Data], Sequence[Operation]], subresource: str = ""
    ) -> Data:
        """
        A patch made for the object as it is, and made again while somebody else writes at the same time.

        Returns:
            What the patch was made for.

        Raises:
            RefusedError: It is refused, and nobody has changed what it was made for.
            ActError: As `patch`.
        """
        for _ in range(_MOST_TRIES):
            live = await self.read(ref, subresource)
            operations = patch(live)
            try:
                await self.patch(ref, operations, subresource)
            except ChangedError as error:
                is_conflict = isinstance(error.__cause__, AnsweredError) and error.__cause__.status == 409
                if not is_conflict and patch(await self.read(ref, subresource)) == operations:
                    raise RefusedError(str(error)) from error.__cause__
            else:
                return live
        raise RetryableActError(f"{ref} is written by others all the time")

    async def evict(self, pod: ObjectRef) -> None:
        """
        Remove a pod, if its budgets allow it and it is the incarnation that is meant.

        Raises:
            RefusedError: A PodDisruptionBudget keeps it.
            ActError: As `patch`.
        """
        options: dict[str, Any] = {"preconditions": {"uid": pod.uid}} if pod.uid else {}
        if self.is_dry:
            options["dryRun"] = ["All"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": options,
        }
        path = await self._path(pod, "eviction")
        await self._change("create", "POST", pod, "eviction", path, {}, body, "application/json")

    async def record(self, namespace: str, event: Data) -> None:
        """
        Write an events.k8s.io/v1 Event; one of that name that exists is this one.

        Raises:
            ActError: As `patch`.
        """
        ref = ObjectRef(_TELLS, namespace, event["metadata"]["name"])
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        try:
            await self._change(
                "create", "POST", ref, "", path, {"fieldManager": FIELD_MANAGER}, event, "application/json"
            )
        except ActError as error:
            if not isinstance(error.__cause__, AnsweredError) or error.__cause__.reason != "AlreadyExists":
                raise

    async def api_version(self, ref: ObjectRef) -> str:
        """As objects of that kind are read and written here: ``apps/v1``."""
        return await self._looked_up(ref, self._paths.api_version(self._transport, ref))

    async def _path(self, ref: ObjectRef, subresource: str) -> str:
        version = self._versions.get(ref.kind, "")
        path = await self._looked_up(ref, self._paths.path(self._transport, ref, version))
        return f"{path}/{subresource}" if subresource else path

    async def _looked_up(self, ref: ObjectRef, question: Awaitable[str]) -> str:
        try:
            return await self._asking(question, reading=True)
        except AnsweredError as error:
            raise RetryableActError(str(explain(error, "get", ref))) from error

    async def _change(
        self,
        verb: str,
        method: str,
        ref: ObjectRef,
        subresource: str,
        path: str,
        params: Mapping[str, str],
        body: object,
        content_type: str,
    ) -> None:
        if self._act.purpose is Purpose.READ_BACK and ref.kind != _TELLS:
            raise PermitError(f"{self._act.id} may only look")
        if not self._is_covered():
            # It was for now, and this took longer: what was done so far is looked at with the next one.
            raise UncertainActError("the permit ended before the step did")
        params = {**params, "dryRun": "All"} if self.is_dry and subresource != "eviction" else params
        self.wrote += 0 if self.is_dry else 1
        try:
            await self._send(verb, method, ref, subresource, path, params, msgspec.json.encode(body), content_type)
        except UncertainActError:
            raise
        except ActError:
            self.wrote -= 0 if self.is_dry else 1  # an answer that says no
            raise

    async def _send(
        self,
        verb: str,
        method: str,
        ref: ObjectRef,
        subresource: str,
        path: str,
        params: Mapping[str, str],
        body: bytes | None = None,
        content_type: str = "",
    ) -> bytes:
        try:
            return await self._asking(
                self._transport.send(method, path, params, body=body, content_type=content_type),
                reading=method == "GET",
            )
        except AnsweredError as error:
            said = explain(error, verb, ref, subresource)
            if method == "GET" and isinstance(said, UncertainActError):
                said = RetryableActError(str(said))
            raise said from error

    async def _asking(self, request: Awaitable[_Asked], *, reading: bool) -> _Asked:
        try:
            return await request
        except NotSentError as error:
            raise RetryableActError(str(error)) from error
        except LostAnswerError as error:
            raise (RetryableActError if reading else UncertainActError)(str(error)) from error

    def _is_covered(self) -> bool:
        return covers(self._permit, self._act.id, self._plan_hash, self._act.purpose, self._now())


def short_hash(*parts: str) -> str:
    """Sixteen letters that name these parts, always the same."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
