"""Who has lent capacity, as the cluster itself says: the annotation on each donor outlives all our own state."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sevenhop.core.effects import Borrow
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.action import ObjectRef
from sevenhop.core.remediation.reduction import View

BORROWED = "sevenhop.dev/borrowed"
"""Annotation on the object that the donor's owner edits: a `Borrow` as JSON."""

_NEVER_MARKED = frozenset({"Pod", "Event", "Node", "ReplicaSet.apps", "EndpointSlice.discovery.k8s.io"})
"""Kinds that are many and that no table marks."""

MARKABLE: tuple[str, ...] = tuple(name for name in KINDS if name not in _NEVER_MARKED)

_decoder = msgspec.json.Decoder(Borrow)


class Lent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One object that carries the annotation.

    Attributes:
        borrow: None where it cannot be read.
        problem: Why it cannot be read, for a person who has to look; empty where it can.
    """

    ref: ObjectRef
    borrow: Borrow | None = None
    problem: str = ""


def read_borrowed(view: View, kinds: Iterable[str] = MARKABLE) -> list[Lent]:
    """Every object that says that it has lent, in order; what it says is decoded, never guessed at."""
    found = []
    for kind in kinds:
        for (namespace, name), obj in view.of(kind).items():
            raw = obj.metadata.annotations.get(BORROWED)
            if raw is None:
                continue
            ref = ObjectRef(kind, namespace, name, obj.metadata.uid)
            borrow = decode_borrow(raw)
            if isinstance(borrow, str):
                found.append(Lent(ref=ref, problem=f"{ref}: {BORROWED} cannot be read: {borrow}"))
            else:
                found.append(Lent(ref=ref, borrow=borrow))
    return sorted(found, key=lambda lent: lent.ref)


def decode_borrow(raw: str) -> Borrow | str:
    """A `Borrow`, or why it is none; the text never repeats what stands there."""
    try:
        borrow = _decoder.decode(raw)
    except msgspec.ValidationError as error:
        return f"not what we write ({error})"
    except (msgspec.DecodeError, UnicodeEncodeError):
        return "not JSON"
    except RecursionError:
        return "not what we write (nested too deeply)"
    terms = borrow.terms
    times = (borrow.until, *((terms.proposed_at, terms.expires_at) if terms is not None else ()))
    if any(time.tzinfo is None for time in times):
        return "not what we write (no time zone)"
    if borrow.before < 0 or borrow.after < 0:
        return "not what we write (fewer than no replicas)"
    return borrow


def encode_borrow(borrow: Borrow) -> str:
    """As it is written on the donor; the same bytes for the same borrow."""
    return msgspec.json.encode(borrow, order="deterministic").decode()
