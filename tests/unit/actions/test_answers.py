"""Permits, and what an API server's answers mean for a step."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from sevenhop.actions.errors import PermitError, RetryableActError, UncertainActError
from sevenhop.core.events import StepResult
from sevenhop.core.remediation.permit import Purpose
from sevenhop.runtime.writing import ANSWER_WITHIN_S
from sevenhop.simulation.faults import LoseAnswer, Refuse
from tests.unit.actions import scene
from tests.unit.actions.interference import (
    Nth,
)
from tests.unit.actions.scene import (
    DEPLOYMENT,
    NOON,
    RAY_SERVICE,
    act,
    cluster,
    leave,
)


@pytest.mark.parametrize(
    ("purpose", "seconds"),
    [
        pytest.param(Purpose.DRY_RUN, 30, id="for another purpose"),
        pytest.param(Purpose.APPLY, -1, id="expired"),
    ],
)
async def test_without_a_permit_nothing_is_asked(purpose: Purpose, seconds: float) -> None:
    """Not even a read."""
    async with cluster() as c:
        made = act(*scene.deployment(c))
        executor, _ = c.executor()
        with pytest.raises(PermitError):
            await executor.deliver(made, uncertain=False, permit=leave(made, purpose=purpose, seconds=seconds))
        assert c.server.requests == []


async def test_a_permit_that_ends_in_the_middle_ends_the_step() -> None:
    """What is left waits for another permit."""
    async with cluster() as c:
        made = act(*scene.deployment(c))
        times = iter([NOON] * 3)
        c.now = lambda: next(times, NOON + timedelta(minutes=1))
        executor, mortal = c.executor()
        with pytest.raises(UncertainActError, match="permit"):
            await executor.deliver(made, uncertain=False, permit=leave(made))
        assert len(mortal.writes) == 2
        assert c.get(DEPLOYMENT, "donor")["spec"]["replicas"] == 4


@pytest.mark.parametrize(
    ("fault", "raises"),
    [
        pytest.param(Refuse(status=429, retry_after="7", verbs=("patch",)), RetryableActError, id="throttled"),
        pytest.param(Refuse(status=503, retry_after="7", verbs=("patch",)), RetryableActError, id="not available"),
        pytest.param(Refuse(status=500, verbs=("patch",)), UncertainActError, id="failed"),
        pytest.param(
            Refuse(status=500, message='failed calling webhook "w": refused', verbs=("patch",), retry_after="7"),
            RetryableActError,
            id="webhook does not answer",
        ),
        pytest.param(Refuse(status=504, verbs=("patch",)), UncertainActError, id="gateway gave up"),
        pytest.param(LoseAnswer(times=1), UncertainActError, id="connection lost"),
        pytest.param(LoseAnswer(times=1, hangs=True), UncertainActError, id="no answer"),
    ],
)
async def test_what_may_have_happened_is_told_from_what_did_not(
    fault: Refuse | LoseAnswer, raises: type[Exception]
) -> None:
    """Only what surely did not happen may simply be tried again."""
    is_waited_for = isinstance(fault, LoseAnswer) and fault.hangs
    async with cluster(2.0 if is_waited_for else ANSWER_WITHIN_S) as c:
        made = act(*scene.deployment(c))
        c.server.faults.add(fault)
        with pytest.raises(raises) as caught:
            await c.deliver(made)
        if isinstance(caught.value, RetryableActError) and caught.value.retry_after is not None:
            assert caught.value.retry_after == 7
        assert (await c.insist(made)).result is StepResult.DONE


async def test_a_missing_permission_says_the_line_to_add() -> None:
    """Verb, resource and group, as a role has them."""
    async with cluster() as c:
        message = (
            'deployments.apps "donor" is forbidden: User "x" cannot patch resource "deployments/scale" in API '
            'group "apps" in the namespace "chat"'
        )
        c.server.faults.add(Nth(1, status=403, reason="Forbidden", message=message))
        done = await c.deliver(act(*scene.deployment(c, steered=False)))

        assert done.result is StepResult.REFUSED
        assert 'apiGroups: ["apps"], resources: ["deployments/scale"], verbs: ["patch"]' in done.detail


async def test_a_refused_event_is_said_and_stops_nothing() -> None:
    """The change is what counts; that nobody was told of it in the cluster is a word in the answer."""
    async with cluster() as c:
        c.server.faults.add(Refuse(status=403, verbs=("create",), times=None))
        done = await c.deliver(act(*scene.deployment(c)))

        assert done.result is StepResult.DONE
        assert "no Event was written" in done.detail


async def test_nothing_of_the_annotation_is_markup_or_secret() -> None:
    """What an admission webhook says is cut, on one line, without control characters."""
    async with cluster() as c:
        text = 'admission webhook "w" denied the request: ' + "\x1b[31m" + "x\n" * 400
        c.server.faults.add(Refuse(status=403, reason="Forbidden", message=text, verbs=("patch",), times=None))
        done = await c.deliver(act(*scene.deployment(c), purpose=Purpose.DRY_RUN))

        assert done.result is StepResult.REFUSED
        assert done.detail.isprintable()
        assert len(done.detail) < 400


async def test_the_ray_service_keeps_its_own_annotations() -> None:
    """Ours come and go beside what was there."""
    async with cluster() as c:
        await c.deliver(act(*scene.ray(c)))
        assert c.annotations(RAY_SERVICE, "ray")["owner"] == "team"


async def test_what_comes_after_a_change_is_never_surely_nothing() -> None:
    """Throttled at the second request, the first is done: the next attempt must look."""
    async with cluster() as c:
        made = act(*scene.deployment(c))
        c.server.faults.add(Nth(1, status=429, retry_after="7"))
        with pytest.raises(UncertainActError):
            await c.deliver(made)


async def test_a_long_note_is_cut_to_what_an_event_may_hold() -> None:
    """The API server takes up to 1 kB, in bytes; an Event that is longer would not be written at all."""
    async with cluster() as c:
        made = msgspec.structs.replace(act(*scene.deployment(c)), note="→" * 1000)
        done = await c.deliver(made)

        assert "no Event" not in done.detail
        assert {len(e["message"].encode()) for e in c.events()} == {999}
