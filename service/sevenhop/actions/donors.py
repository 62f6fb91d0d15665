"""
Fewer replicas of one component, and back.

The order is "intent first": the annotation on the owner, then which pods go, then the number, then what makes it last.
Whatever a crash leaves behind is found by the annotation and finished or taken back.  Each step looks before it acts,
and each patch tests what it was made for, so a request that arrives late or twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sevenhop.actions import copies, steering
from sevenhop.actions._writer import Writer
from sevenhop.actions.errors import ChangedError, GoneError, RefusedError
from sevenhop.actions.marks import annotations_of, borrow_of, pointer
from sevenhop.actions.pointers import Data, Operation, operations, relocated, value_at
from sevenhop.actions.standing import Standing, deciding, expect_before, reversed_edits, standing
from sevenhop.actions.words import cut
from sevenhop.core.effects import Act, Borrow
from sevenhop.core.remediation.action import Edit, ObjectRef, Scale, Steer, Test
from sevenhop.core.remediation.borrowed import BORROWED, encode_borrow


class Donor(msgspec.Struct, frozen=True, kw_only=True):
    """
    One `Scale` of an act with the steering that stands before it.

    Attributes:
        plan: Whose mark it carries.
        mark: What the annotation says; None where nothing is lent.
    """

    plan: str
    scale: Scale
    steers: tuple[Steer, ...] = ()
    mark: Borrow | None = None
    uncertain: bool = False

    @property
    def in_one_patch(self) -> bool:
        """Whether the annotation goes with the number; steering must come between the two."""
        scale = self.scale
        return not self.steers and not scale.subresource and _is_same(scale.marked, scale.target)

    @property
    def touched(self) -> list[ObjectRef]:
        also = [ref for ref, _, _ in self.scale.also]
        marked = [] if _is_same(self.scale.marked, self.scale.target) else [self.scale.marked]
        return [self.scale.target, *marked, *also]

    @property
    def words(self) -> str:
        return f"{'/'.join(self.scale.workload)} {self.scale.component}"


def donor_of(act: Act, scale: Scale, steers: tuple[Steer, ...], *, uncertain: bool) -> Donor:
    """What one scale of an act is; each donor's annotation says its own part."""
    borrow = act.borrow
    if borrow is None:
        return Donor(plan=act.plan.id, scale=scale, steers=steers, uncertain=uncertain)
    mark = msgspec.structs.replace(
        borrow,
        workload="/".join(scale.workload),
        component=scale.component,
        before=scale.before,
        after=scale.after,
        terms=borrow.terms or msgspec.structs.replace(act.plan, considered=(), notes=(), not_preempted=""),
    )
    return Donor(plan=borrow.plan, scale=scale, steers=steers, mark=mark, uncertain=uncertain)


async def apply(writer: Writer, donor: Donor) -> str:
    """
    Do it, or what is left of it; gives what was done.

    Raises:
        RefusedError: And then something may be left that `give_back` takes away.
        ActError: See `Writer`.
    """
    scale, target = donor.scale, donor.scale.target
    marked = await writer.read(scale.marked)
    has_begun = _has_begun(donor, marked)
    live = marked if donor.in_one_patch else await writer.read(target, scale.subresource)
    edits, tests = relocated(live, scale.edits, scale.tests)
    if not (has_begun and standing(live, edits) is Standing.AFTER):
        expect_before(live, edits, tests)
        if has_begun and donor.in_one_patch and donor.mark is not None:
            # Both were one request, so it was done: doing it again would fight whoever took it back.
            raise ChangedError(f"{target} was set back by somebody since")
        mark = [] if has_begun or donor.mark is None else [Edit(pointer(BORROWED), None, encode_borrow(donor.mark))]
        if not donor.in_one_patch:
            await _patch(writer, scale.marked, mark, _seen(donor, marked))
        for steer in donor.steers:
            await steering.apply(writer, steer, donor.plan)
        both = [*(mark if donor.in_one_patch else ()), *edits]
        await _patch(writer, target, both, tests, scale.subresource)
    for ref, more, conditions in scale.also:
        await _apply_also(writer, ref, more, conditions)
    too = "".join(f", and {ref} too" for ref, *_ in scale.also)
    return f"{donor.words}: {target} {scale.before} → {scale.after}{too}"


async def _apply_also(writer: Writer, ref: ObjectRef, edits: Sequence[Edit], tests: Sequence[Test]) -> None:
    live = await writer.read(ref)
    edits, tests = relocated(live, edits, tests)
    if standing(live, edits) is not Standing.AFTER:
        expect_before(live, edits, tests)
        await _patch(writer, ref, edits, tests)


async def give_back(writer: Writer, donor: Donor, *, without_mark: bool) -> str:
    """
    Set back what still holds what we put there, and take our annotations away; gives what was done and what was left.

    Args:
        without_mark: Also where somebody took the annotation away.
    """
    scale = donor.scale
    try:
        marked = await writer.read(scale.marked)
    except GoneError as gone:
        await _steer_back(writer, donor)
        return f"{donor.words}: {gone}, there is nothing to give back to"
    borrow = borrow_of(marked)
    is_ours = _is_ours(donor, borrow)
    await _steer_back(writer, donor)
    if borrow is not None and not is_ours:
        return f"{donor.words}: left as it is, it carries the mark of another plan"
    if not is_ours and not without_mark and donor.mark is not None:
        await copies.sweep(writer, scale.marked, donor.plan)
        if donor.uncertain and await _is_back(writer, donor):
            return f"{donor.words}: {scale.target} holds {scale.before} again"
        return f"{donor.words}: left as it is, it does not carry our mark"
    left = [text for ref, more, tests in scale.also if (text := await _back(writer, ref, more, tests))]
    unmark = [Edit(pointer(BORROWED), annotations_of(marked)[BORROWED], None)] if is_ours else []
    in_one_patch = not scale.subresource and _is_same(scale.marked, scale.target)
    more = unmark if in_one_patch else []
    text = await _back(writer, scale.target, scale.edits, scale.tests, scale.subresource, more)
    if unmark and not in_one_patch:
        await writer.patch_as_it_is(scale.marked, lambda live: operations(live, unmark, (), scale.marked.uid))
    await copies.sweep(writer, scale.marked, donor.plan)
    done = text or f"{scale.target} {scale.after} → {scale.before}"
    return "; ".join([f"{donor.words}: {done}", *left])


async def _steer_back(writer: Writer, donor: Donor) -> None:
    """Of every pod that was steered with this one, also those of other donors: a cost that stays steers for ever."""
    for steer in donor.steers:
        await steering.take_back(writer, steer, donor.plan)


async def _is_back(writer: Writer, donor: Donor) -> bool:
    """Whether an earlier attempt, of which no answer came, has done it all."""
    try:
        live = await writer.read(donor.scale.target, donor.scale.subresource)
    except GoneError:
        return False
    return standing(live, relocated(live, donor.scale.edits, donor.scale.tests)[0]) is Standing.BEFORE


async def _back(
    writer: Writer,
    ref: ObjectRef,
    edits: Sequence[Edit],
    tests: Sequence[Test],
    subresource: str = "",
    more: Sequence[Edit] = (),
) -> str:
    """Set one object back; gives why it was left, if it was."""

    def patch(live: Data) -> list[Operation]:
        here, conditions = relocated(live, edits, tests)
        back = reversed_edits(live, here) if _holds(live, conditions) else []
        return operations(live, [*more, *back], conditions if back else (), ref.uid)

    try:
        live = await writer.patch_as_it_is(ref, patch, subresource)
    except GoneError as gone:
        return f"{gone}, there is nothing to give back to"
    here, conditions = relocated(live, edits, tests)
    if not _holds(live, conditions):
        return f"{ref} is left as it is: somebody has changed its parts since"
    if reversed_edits(live, here) or standing(live, here) is Standing.BEFORE:
        return ""
    shown = ", ".join(cut(str(value_at(live, edit.pointer)), 40) for edit in deciding(here))
    return f"{ref} is left as it is: somebody has set it to {shown} since"


def _holds(live: Data, tests: Sequence[Test]) -> bool:
    return all(value_at(live, test.pointer) == test.value for test in tests)


async def extend(writer: Writer, donor: Donor) -> tuple[bool, str]:
    """
    Write the new end on a mark that is ours; gives whether one was there, and what was done.

    What else stands in the mark stays as it is.
    """
    marked = donor.scale.marked

    def patch(live: Data) -> list[Operation]:
        borrow = borrow_of(live)
        if donor.mark is None or not isinstance(borrow, Borrow) or not _is_ours(donor, borrow):
            return []
        text = encode_borrow(msgspec.structs.replace(borrow, until=donor.mark.until))
        return operations(live, [Edit(pointer(BORROWED), annotations_of(live)[BORROWED], text)], (), marked.uid)

    try:
        live = await writer.patch_as_it_is(marked, patch)
    except GoneError as gone:
        return False, str(gone)
    if donor.mark is None or not _is_ours(donor, borrow_of(live)):
        return False, f"{donor.words}: left as it is, it does not carry our mark"
    return True, f"{donor.words}: lent until {donor.mark.until.isoformat()}"


async def look(writer: Writer, donor: Donor) -> tuple[Standing, str]:
    """How it stands, read from the live objects, and in words."""
    scale = donor.scale
    try:
        marked = await writer.read(scale.marked)
        live = await writer.read(scale.target, scale.subresource)
    except GoneError as gone:
        return Standing.OTHER, str(gone)
    borrow = borrow_of(marked)
    edits, _ = relocated(live, scale.edits, scale.tests)
    stands = standing(live, edits)
    if not _is_ours(donor, borrow):
        if donor.mark is None or stands is Standing.BEFORE:
            return stands, f"{scale.target} stands {stands} the change"
        return Standing.BEFORE, f"{scale.target} was changed by somebody else: it does not carry our mark"
    if stands is Standing.BEFORE:
        return Standing.HALF, f"{scale.marked} carries our mark, and {scale.target} is not changed yet"
    if stands is Standing.OTHER:
        return Standing.OTHER, f"{scale.target} was changed by somebody since"
    for ref, more, conditions in scale.also:
        try:
            other = await writer.read(ref)
        except GoneError as gone:
            return Standing.OTHER, str(gone)
        if standing(other, relocated(other, more, conditions)[0]) is Standing.BEFORE:
            return Standing.HALF, f"{scale.target} is changed, and {ref} is not yet"
    return Standing.AFTER, f"{scale.target} holds {scale.after}"


async def _patch(
    writer: Writer, ref: ObjectRef, edits: Sequence[Edit], tests: Sequence[Test], subresource: str = ""
) -> None:
    """
    All edits in one patch, each from what was agreed on.

    Raises:
        ChangedError: Says what was expected, and what is there.
    """

    def patch(live: Data) -> list[Operation]:
        expect_before(live, edits, tests)
        return operations(live, edits, tests, ref.uid)

    await writer.patch_as_it_is(ref, patch, subresource)


def _has_begun(donor: Donor, marked: Data) -> bool:
    """Whether the intent is there already: by our annotation, or without one by being told so."""
    if donor.mark is None:
        return donor.uncertain
    borrow = borrow_of(marked)
    if borrow is None:
        return False
    if isinstance(borrow, str):
        raise RefusedError(f"{donor.scale.marked}: {BORROWED} cannot be read: {borrow}; look at it and remove it")
    if borrow.plan != donor.plan:
        raise RefusedError(
            f"{donor.scale.marked} has given already: plan {cut(borrow.plan, 40)}, until {borrow.until.isoformat()}"
        )
    if (borrow.workload, borrow.component) != (donor.mark.workload, donor.mark.component):
        raise RefusedError(f"{donor.scale.marked} gives for another component in the same plan; one at a time")
    return True


def _is_ours(donor: Donor, borrow: Borrow | str | None) -> bool:
    return (
        isinstance(borrow, Borrow)
        and borrow.plan == donor.plan
        and (borrow.workload, borrow.component) == ("/".join(donor.scale.workload), donor.scale.component)
    )


def _seen(donor: Donor, marked: Data) -> list[Test]:
    """Tests of the numbers, where the marked object shows them: the mark is not put beside a number that moved."""
    if not _is_same(donor.scale.marked, donor.scale.target):
        return []
    return [
        Test(edit.pointer, edit.before)
        for edit in donor.scale.edits
        if edit.before is not None and value_at(marked, edit.pointer) == edit.before
    ]


def _is_same(a: ObjectRef, b: ObjectRef) -> bool:
    return (a.kind, a.namespace, a.name) == (b.kind, b.namespace, b.name)
