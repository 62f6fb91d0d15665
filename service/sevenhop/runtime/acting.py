"""
Steps in the cluster, from the outbox to the executor.

The permit is asked for at the moment of each step, so a switch that is turned while a step waits still counts.

    first(cluster) ─► permit? ─► executor ─► finish_step ─► StepDone to the engine
                        │                         │                   │
                        │                         │                   └─ its step is stored, the kept answer goes
                        │                         └─ out of the outbox, answer kept: a crash after it tells it again
                        └─ no: refused, nothing is asked of the cluster

    A crash before finish_step leaves the step in `sending`: it is delivered again as uncertain, and looks first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import msgspec

from sevenhop.actions.errors import ActError, RetryableActError, UncertainActError
from sevenhop.actions.executor import ClusterExecutor
from sevenhop.core.effects import Act
from sevenhop.core.events import StepDone, StepResult
from sevenhop.core.remediation.permit import GuardName, Permit, Purpose, Refusal
from sevenhop.runtime.writing import ApiTransport
from sevenhop.sources.kubernetes.api import ApiServer

log = logging.getLogger("sevenhop.acting")

AskPermit = Callable[[Act, datetime], Permit | Refusal]
"""`RemediationDesk.permit`."""

MOST_ATTEMPTS = 8
"""About two minutes with the outbox's delays: a change that was approved then is no longer what was looked at."""

MOST_ATTEMPTS_TO_GIVE_BACK = 40
"""About half an hour: what is owed is tried for longer, and then handed to people, with what is known."""


ATTEMPTS_UNTIL_SEEN = 6
"""About half a minute: after a start the objects are not listed yet, and what gives back waits for them."""


class Acting:
    """
    Carries out `effects.Act`, once.

    Args:
        permit: Asks the guards.
        now: The runtime's time.
    """

    def __init__(self, executor: ClusterExecutor, permit: AskPermit, now: Callable[[], datetime]) -> None:
        self._executor = executor
        self._permit = permit
        self._now = now

    async def carry_out(self, act: Act, *, uncertain: bool, attempts: int) -> StepDone:
        """
        Do the step, or what is left of it.

        Args:
            uncertain: An earlier attempt may have done some of it.
            attempts: Earlier ones.

        Raises:
            RetryableActError: Surely nothing was changed; again later.
            UncertainActError: Something may have been; again later, as uncertain.
        """
        permit = self._permit(act, self._now())
        try:
            if isinstance(permit, Refusal):
                if _may_pass(act, permit, attempts):
                    raise RetryableActError(f"{permit.guard}: {permit.text}")
                if uncertain and act.purpose is Purpose.APPLY:
                    return await self._refused_midway(act, permit)
                return self._answer(act, StepResult.REFUSED, f"{permit.guard}: {permit.text}")
            return await self._executor.deliver(act, uncertain=uncertain, permit=permit)
        except RetryableActError as error:
            return self._given_up(act, error, attempts, StepResult.UNKNOWN if uncertain else StepResult.REFUSED)
        except UncertainActError as error:
            return self._given_up(act, error, attempts, StepResult.UNKNOWN)

    async def _refused_midway(self, act: Act, refusal: Refusal) -> StepDone:
        """
        A crash came in the middle and the guards say no to the rest: what had begun is taken back, if it had.

        What was done before they said no stays done, and is told so; the desk decides.
        """
        why = f"{refusal.guard}: {refusal.text}"
        found = await self._as(act, Purpose.READ_BACK)
        if found is None:
            return self._answer(act, StepResult.UNKNOWN, f"{why}; how far it came could not be looked at")
        if found.result is not StepResult.UNKNOWN:
            detail = found.detail if found.result is StepResult.DONE else why
            return self._answer(act, found.result, detail)
        back = await self._as(act, Purpose.UNDO)
        if back is None or back.result is not StepResult.DONE:
            return self._answer(act, StepResult.UNKNOWN, f"{why}; half done: {found.detail}")
        return self._answer(act, StepResult.REFUSED, f"{why}; what had begun was taken back: {back.detail}")

    async def _as(self, act: Act, purpose: Purpose) -> StepDone | None:
        """The same step for another purpose, if the guards allow that."""
        other = msgspec.structs.replace(act, purpose=purpose)
        permit = self._permit(other, self._now())
        if isinstance(permit, Refusal):
            return None
        return await self._executor.deliver(other, uncertain=True, permit=permit)

    def _given_up(self, act: Act, error: ActError, attempts: int, result: StepResult) -> StepDone:
        most = MOST_ATTEMPTS_TO_GIVE_BACK if act.purpose.gives_back else MOST_ATTEMPTS
        if attempts + 1 < most:
            raise error
        log.error("step %s: given up after %d attempts: %s", act.id, attempts + 1, error)
        outcome = "nothing was changed" if result is StepResult.REFUSED else "whether it was done is not known"
        return self._answer(act, result, f"{error}; given up after {attempts + 1} attempts, {outcome}")

    def _answer(self, act: Act, result: StepResult, detail: str) -> StepDone:
        return StepDone(at=self._now(), effect_id=act.id, result=result, detail=detail)


def _may_pass(act: Act, refusal: Refusal, attempts: int) -> bool:
    """
    Whether the guards may say yes in a moment: what is not seen yet after a start is no reason to give a step up.

    A switch, a mode, an owner's no or a missing approval does not pass by itself, nor that the plan waits for another
    step by now: it would only keep that one.
    """
    if act.purpose.gives_back or act.purpose is Purpose.EXTEND:
        return refusal.guard in (GuardName.FRESH, GuardName.UNCHANGED) and attempts + 1 < ATTEMPTS_UNTIL_SEEN
    return refusal.guard is GuardName.FRESH


def build_acting(api: ApiServer, permit: AskPermit, now: Callable[[], datetime]) -> Acting:
    """Hands for one cluster, with the credentials that it is watched with."""
    return Acting(ClusterExecutor(ApiTransport(api), now), permit, now)
