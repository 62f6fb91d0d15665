"""The workers together, as those see them who bring people's decisions: Slack's door, the local socket, HTTP."""

from __future__ import annotations

import asyncio

import msgspec

from sevenhop.core.effects import Message, Reply
from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet
from sevenhop.core.incidents.keeping import INCIDENTS
from sevenhop.core.remediation.keeping import PLANS
from sevenhop.runtime.scaled.decisions import Decisions, NoAnswerError, Request
from sevenhop.runtime.scaled.directory import Directory, UnseenError, WhichError

LOOK_WITHIN_S = 2.0
"""For what a click needs at once: Slack takes a trigger for three seconds."""


class FleetFront:
    """See `channels.door.Front`."""

    def __init__(self, directory: Directory, decisions: Decisions) -> None:
        self._directory = directory
        self._decisions = decisions

    async def ask(self, event: Request, cluster: str = "") -> Reply:
        try:
            clusters = [await self._directory.pick(cluster)] if cluster else await self._meant(event)
        except (WhichError, UnseenError) as error:
            return Reply(request_id=event.request_id, accepted=False, text=f"{error}; nothing was done")
        if len(clusters) == 1:
            return await self._decisions.ask(clusters[0], event)
        return await self._ask_all(clusters, event)

    async def silence(self, event: Silenced, cluster: str = "") -> None:
        """
        Raises:
            WhichError: Which cluster is meant cannot be said.
            UnseenError: Redis does not answer.
            RefusedError: Its worker did not take it.
            NoAnswerError: Nobody has stored it yet.
        """
        incident = event.matchers.get("incident", "")
        if not cluster and incident:
            cluster = next(iter(await self._directory.having(INCIDENTS, incident)), "")
        await self._decisions.silence(await self._directory.pick(cluster), event)

    async def message(self, incident_id: str) -> Message | None:
        try:
            found = await self._directory.having(INCIDENTS, incident_id.rpartition("-")[0])
        except UnseenError as error:
            raise NoAnswerError(str(error)) from None
        for cluster in found:
            said = await self._directory.ask(cluster, "message", {"incident": incident_id}, LOOK_WITHIN_S)
            if said.status != 200:
                raise NoAnswerError(str(said.data["error"]))
            if said.data is not None:
                return said.data if isinstance(said.data, Message) else msgspec.convert(said.data, Message)
        return None

    async def status(self) -> str:
        try:
            said = await self._directory.ask_all(await self._directory.clusters(), "status")
        except UnseenError as error:
            return str(error)
        lines = [
            f"{cluster}: {each.data if each.status == 200 else each.data['error']}" for cluster, each in said.items()
        ]
        return "\n".join(lines) or "no edge has told of any cluster yet"

    async def _meant(self, event: Request) -> list[str]:
        if isinstance(event, Decided):
            return await self._with_plan(event)
        if isinstance(event, BreakerReset):
            return [await self._directory.pick("")]
        # Whoever stops everything means everything.
        found = await self._directory.clusters()
        if not found:
            raise WhichError("no edge has told of any cluster yet")
        return found

    async def _with_plan(self, event: Decided) -> list[str]:
        found = await self._directory.having(PLANS, event.plan_id)
        if not found:
            shown = event.plan_id[:40]
            raise WhichError(f"no cluster has a plan {shown!r}; `sevenhop get plans --all-clusters` lists them")
        if len(found) > 1:
            raise WhichError(f"several clusters have a plan of that id, say which with --cluster: {', '.join(found)}")
        return found

    async def _ask_all(self, clusters: list[str], event: SwitchSet | Request) -> Reply:
        async def one(cluster: str) -> Reply:
            try:
                return await self._decisions.ask(cluster, event)
            except NoAnswerError as error:
                return Reply(request_id=event.request_id, accepted=False, text=str(error))

        replies = await asyncio.gather(*map(one, clusters))
        texts = {reply.text for reply in replies}
        if len(texts) == 1:
            text = f"{texts.pop()} (in {', '.join(clusters)})"
        else:
            text = "\n".join(f"{cluster}: {reply.text}" for cluster, reply in zip(clusters, replies, strict=True))
        return Reply(request_id=event.request_id, accepted=all(reply.accepted for reply in replies), text=text)
