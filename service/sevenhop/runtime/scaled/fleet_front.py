"""The workers together, as those see them who bring people's decisions: Slack's door, the local socket, HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from sevenhop.core.effects import Message, Reply
from sevenhop.core.events import Decided, Silenced, SwitchSet
from sevenhop.core.incidents.keeping import INCIDENTS
from sevenhop.core.remediation.keeping import PLANS
from sevenhop.runtime.scaled.decisions import Decisions, NoAnswerError, Request
from sevenhop.runtime.scaled.directory import LOOK_S, Directory, UnseenError, WhichError, untold_words

LOOK_WITHIN_S = 2.0
"""For what a click needs at once: Slack takes a trigger for three seconds."""

ALL_TOLD_WITHIN_S = 12.0
"""After Redis began anew: each worker tells every 5 s, and one that died then is replaced in less."""

REDIS_BACK_WITHIN_S = 4.0
"""Who stops everything does not mind a Redis that is just starting; with one that stays away people want to know it."""


class FleetFront:
    """See `channels.door.Front`."""

    def __init__(self, directory: Directory, decisions: Decisions) -> None:
        self._directory = directory
        self._decisions = decisions

    async def ask(self, event: Request, cluster: str = "") -> Reply:
        try:
            if not cluster and isinstance(event, SwitchSet):
                return await self._ask_everywhere(event)
            meant = await self._directory.pick(cluster) if cluster else await self._meant(event)
        except (WhichError, UnseenError) as error:
            return Reply(request_id=event.request_id, accepted=False, text=f"{error}; nothing was done")
        return await self._decisions.ask(meant, event)

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
            untold = untold_words(await self._directory.untold())
            said = await self._directory.ask_all(await self._directory.clusters(), "status")
        except UnseenError as error:
            return str(error)
        lines = [
            f"{cluster}: {each.data if each.status == 200 else each.data['error']}" for cluster, each in said.items()
        ]
        return ("\n".join(lines) or "no edge has told of any cluster yet") + untold

    async def _meant(self, event: Request) -> str:
        return await self._with_plan(event) if isinstance(event, Decided) else await self._directory.pick("")

    async def _with_plan(self, event: Decided) -> str:
        found = await self._directory.having(PLANS, event.plan_id)
        if not found:
            shown = event.plan_id[:40]
            untold = untold_words(await self._directory.untold())
            raise WhichError(f"no cluster has a plan {shown!r}; `sevenhop get plans --all-clusters` lists them{untold}")
        if len(found) > 1:
            raise WhichError(f"several clusters have a plan of that id, say which with --cluster: {', '.join(found)}")
        return found[0]

    async def _ask_everywhere(self, event: SwitchSet) -> Reply:
        """
        Whoever stops everything means everything: the clusters that are known at once, and where Redis has just begun
        anew also those of which their workers have yet to tell.

        Raises:
            WhichError: There is none.
            UnseenError: Redis does not answer, so which there are cannot be known.
            NoAnswerError: There is one, and nobody has answered yet.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        untold: list[int] = []
        asked: dict[str, asyncio.Task[Reply]] = {}
        try:
            while True:
                try:
                    left = await self._directory.untold()  # before the clusters, which may be told meanwhile
                    for cluster in await self._directory.clusters():
                        if cluster not in asked:
                            asked[cluster] = asyncio.create_task(self._decisions.ask(cluster, event))
                    untold = left
                except UnseenError:
                    if not asked and loop.time() > began + REDIS_BACK_WITHIN_S:
                        raise  # nothing was done
                else:
                    if not untold:
                        break
                if loop.time() > began + ALL_TOLD_WITHIN_S:
                    break
                await asyncio.sleep(LOOK_S)
            if not untold and not asked:
                raise WhichError("no edge has told of any cluster yet")
            if not untold and len(asked) == 1:
                return await next(iter(asked.values()))
            return _together(event, {cluster: await _reply(event, task) for cluster, task in asked.items()}, untold)
        finally:
            for task in asked.values():
                task.cancel()


async def _reply(event: SwitchSet, asked: asyncio.Task[Reply]) -> Reply:
    try:
        return await asked
    except NoAnswerError as error:
        return Reply(request_id=event.request_id, accepted=False, text=str(error))


def _together(event: SwitchSet, replies: Mapping[str, Reply], untold: Sequence[int]) -> Reply:
    """One answer of many clusters; it is no yes while there may be one that was not asked."""
    texts = {reply.text for reply in replies.values()}
    if len(texts) == 1:
        text = f"{texts.pop()} (in {', '.join(replies)})"
    else:
        text = "\n".join(f"{cluster}: {reply.text}" for cluster, reply in replies.items())
    if untold:
        text = f"{text or 'no cluster is known yet, and nothing was done'}; not in others{untold_words(untold)}"
    accepted = not untold and all(reply.accepted for reply in replies.values())
    return Reply(request_id=event.request_id, accepted=accepted, text=text)
