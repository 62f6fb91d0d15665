"""
Does one step of a plan in the cluster, once, and says what came of it.

    dry-run     every patch of the step, tried on the API server
    apply       intent first: see `donors`; nothing half done stays when it is refused
    undo        back to what was before, where it still is as we left it
    restore     the same, at the end of the lease
    extend      another end of the lease on the marks
    read-back   only looks: done (and then tells so by an Event), refused (it surely did not happen) or unknown
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sevenhop.actions import donors, nodes, pods
from sevenhop.actions._writer import Writer
from sevenhop.actions.donors import Donor
from sevenhop.actions.errors import ActError, PermitError, RefusedError, RetryableActError, UncertainActError
from sevenhop.actions.paths import Paths
from sevenhop.actions.standing import Standing
from sevenhop.actions.telling import tell
from sevenhop.actions.transport import Transport
from sevenhop.core.effects import Act
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.remediation.action import Cordon, EvictPod, ObjectRef, Scale, Steer
from sevenhop.core.remediation.permit import Permit, Purpose

Part = Donor | EvictPod | Cordon
"""What is done, looked at and taken back as one."""


class ClusterExecutor:
    """
    One cluster.

    There is no way from here to the cluster but `deliver`, and none through it without a permit of the guards.
    """

    def __init__(self, transport: Transport, now: Callable[[], datetime]) -> None:
        self._transport = transport
        self._now = now
        self._paths = Paths()

    async def deliver(self, act: Act, *, uncertain: bool, permit: Permit) -> StepDone:
        """
        Do it, or what is left of it.

        Args:
            uncertain: An earlier attempt may have done some of it.
            permit: For exactly this act, now.

        Raises:
            PermitError: There is no such permit.
            RetryableActError: Surely nothing was changed.
            UncertainActError: Something may have been.
        """
        writer = Writer(self._transport, self._paths, act, permit, self._now)
        parts = _parts(act, uncertain=uncertain)
        try:
            if isinstance(parts, str):
                return self._done(act, StepResult.REFUSED, parts)
            if act.purpose is Purpose.READ_BACK:
                return await self._read_back(writer, act, parts)
            if act.purpose is Purpose.EXTEND:
                return await self._extend(writer, act, parts)
            if act.purpose.gives_back:
                return await self._give_back(writer, act, parts, uncertain=uncertain)
            return await self._apply(writer, act, parts, uncertain=uncertain)
        except RetryableActError as error:
            if writer.wrote:
                raise UncertainActError(str(error)) from error
            raise

    async def _apply(self, writer: Writer, act: Act, parts: list[Part], *, uncertain: bool) -> StepDone:
        said: list[str] = []
        try:
            for part in parts:
                said.append(await _apply_part(writer, act, part))
        except RefusedError as refused:
            text = str(refused)
            if not writer.is_dry and (writer.wrote or uncertain):
                text += await self._clean_up(writer, act, parts, uncertain=uncertain)
            return self._done(act, StepResult.REFUSED, text)
        if writer.is_dry:
            return self._done(act, StepResult.DONE, "the API server would accept it: " + "; ".join(said))
        problem = await tell(writer, act, _touched(parts), self._now())
        return self._done(act, StepResult.DONE, "; ".join(said) + problem)

    async def _clean_up(self, writer: Writer, act: Act, parts: list[Part], *, uncertain: bool) -> str:
        """
        Take back what of a refused step was done already, so that refused means: nothing was changed.

        An eviction stays; those stand in plans of their own.
        """
        try:
            for part in reversed(parts):
                if not isinstance(part, EvictPod):
                    await _give_back_part(writer, act, part, without_mark=False, uncertain=uncertain)
        except ActError as error:
            raise UncertainActError(f"refused, and not all of it could be taken back yet: {error}") from error
        return "; what had begun was taken back"

    async def _give_back(self, writer: Writer, act: Act, parts: list[Part], *, uncertain: bool) -> StepDone:
        # When a lease ends, or a change that was done does not help, the store knows that it was made, whoever took the
        # annotation away.  After a crash a missing annotation means that it was given back already.
        is_known = act.purpose is Purpose.RESTORE or act.was_applied
        without_mark = is_known and not uncertain and not act.needs_mark
        said: list[str] = []
        failed: list[ActError] = []
        for part in reversed(parts):
            try:
                said.append(await _give_back_part(writer, act, part, without_mark=without_mark, uncertain=uncertain))
            except PermitError:
                raise
            except ActError as error:
                failed.append(error)  # of several that gave, one that takes nothing back must not keep the others
        passing = [each for each in failed if not isinstance(each, RefusedError)]
        if passing:
            raise passing[0]
        if failed:
            words = "; ".join(map(str, failed))
            if writer.wrote or uncertain:
                return self._done(act, StepResult.UNKNOWN, f"only in part: {words}")
            return self._done(act, StepResult.REFUSED, words)
        problem = await tell(writer, act, _touched(parts, still=True), self._now())
        return self._done(act, StepResult.DONE, "; ".join(said) + problem)

    async def _extend(self, writer: Writer, act: Act, parts: list[Part]) -> StepDone:
        lent = [part for part in parts if isinstance(part, Donor)]
        try:
            found = [await donors.extend(writer, part) for part in lent]
        except RefusedError as refused:
            return self._done(act, StepResult.UNKNOWN if writer.wrote else StepResult.REFUSED, str(refused))
        words = "; ".join(text for _, text in found)
        if not any(is_marked for is_marked, _ in found):
            return self._done(act, StepResult.REFUSED, words or "nothing of it is lent")
        problem = await tell(writer, act, _touched([*lent], still=True), self._now())
        return self._done(act, StepResult.DONE, words + problem)

    async def _read_back(self, writer: Writer, act: Act, parts: list[Part]) -> StepDone:
        try:
            found = [await _look_at(writer, act, part) for part in parts]
        except RefusedError as refused:
            return self._done(act, StepResult.UNKNOWN, f"it cannot be read: {refused}")
        words = "; ".join(text for _, text in found)
        stands = {standing for standing, _ in found}
        if stands == {Standing.AFTER}:
            problem = await tell(writer, act, _touched(parts, still=True), self._now())
            return self._done(act, StepResult.DONE, words + problem)
        if stands == {Standing.BEFORE}:
            return self._done(act, StepResult.REFUSED, words)
        return self._done(act, StepResult.UNKNOWN, words)

    def _done(self, act: Act, result: StepResult, detail: str) -> StepDone:
        return StepDone(at=self._now(), effect_id=act.id, result=result, detail=detail)


def _parts(act: Act, *, uncertain: bool) -> list[Part] | str:
    """The act's actions, steering with the scale that it stands before; or why they cannot be done together."""
    parts: list[Part] = []
    steers: list[Steer] = []
    for action in act.plan.actions:
        match action:
            case Steer():
                steers.append(action)
            case Scale():
                parts.append(donors.donor_of(act, action, tuple(steers), uncertain=uncertain))
                steers = []
            case EvictPod() | Cordon():
                parts.append(action)
    if steers:
        return "the plan steers pods and scales nothing after it; this is a fault of ours, please report it"
    return parts


async def _apply_part(writer: Writer, act: Act, part: Part) -> str:
    match part:
        case Donor():
            return await donors.apply(writer, part)
        case EvictPod():
            return await pods.apply(writer, part)
        case Cordon():
            return await nodes.apply(writer, part, act.plan.id)


async def _give_back_part(writer: Writer, act: Act, part: Part, *, without_mark: bool, uncertain: bool) -> str:
    match part:
        case Donor():
            return await donors.give_back(writer, part, without_mark=without_mark)
        case EvictPod():
            return f"{part.pod} was made again by its owner: there is nothing to give back"
        case Cordon():
            return await nodes.give_back(writer, part, act.plan.id, uncertain=uncertain)


async def _look_at(writer: Writer, act: Act, part: Part) -> tuple[Standing, str]:
    match part:
        case Donor():
            return await donors.look(writer, part)
        case EvictPod():
            return await pods.look(writer, part)
        case Cordon():
            return await nodes.look(writer, part, act.plan.id)


def _touched(parts: list[Part], *, still: bool = False) -> list[ObjectRef]:
    """Objects that an Event is written on; `still` leaves out pods, which are gone by then."""
    refs: list[ObjectRef] = []
    for part in parts:
        match part:
            case Donor():
                refs += part.touched
                refs += [] if still else [pod for steer in part.steers for pod in steer.pods]
            case EvictPod():
                refs += [] if still else [part.pod]
            case Cordon():
                refs.append(part.node)
    return refs
