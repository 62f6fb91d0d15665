"""The hop report of some pods, from their rows, the Services that lead to them and the nodes that they are on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from sevenhop.core.facts.component import NotCreated
from sevenhop.core.facts.schema import Facts, Unknown
from sevenhop.core.hops.cover import report
from sevenhop.core.hops.diagnosis import Category, Diagnosis, Evidence
from sevenhop.core.hops.report import HopLine, HopReport, HopState
from sevenhop.core.inventory.leftovers import live_or_telling
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow
from sevenhop.core.inventory.workloads import Registration
from sevenhop.core.subject import Hop
from sevenhop.core.words import counted

SHOWN = 5
"""Lines of evidence per hop; who wants all of them asks for the pods."""

NO_AGENT = "no_source (gpu agent)"
NO_PROBE = "no_source (probe or engine metrics)"
NO_ROUTES = "no_source (route source)"
NO_GPUS = "asks for no GPUs"
NO_SERVICE = "no Service leads to it"


class Reach(msgspec.Struct, frozen=True, gc=False):
    """One Service that leads to the pods, with its facts."""

    service: Key
    facts: Facts
    pods: tuple[str, ...]


class Short(msgspec.Struct, frozen=True, gc=False):
    """A node that advertises fewer GPUs than it should."""

    node: str
    advertised: int
    expected: int


class DeviceSight(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """
    What GPU agents say about some pods.

    Attributes:
        unknown: Why it is not known how their GPUs are; empty where an agent speaks on each of their nodes.
        on_bad: Pods that have a bad GPU, or had it when it went bad, with what is wrong with it.
        waits: Pods that have no node because GPUs are bad.
        evidence: Bad GPUs of their nodes and pools.
    """

    unknown: str
    on_bad: dict[Key, str] = {}
    waits: frozenset[Key] = frozenset()
    evidence: tuple[Evidence, ...] = ()


BLIND = DeviceSight(unknown=NO_AGENT)


def gather(
    rows: Sequence[PodRow],
    *,
    missing: Sequence[NotCreated] = (),
    reaches: Sequence[Reach] = (),
    short: Sequence[Short] = (),
    devices: DeviceSight = BLIND,
    registers: Registration = Registration.ENDPOINTS,
    pods_unknown: Unknown | None = None,
) -> HopReport:
    """
    The report of these pods.

    Args:
        rows: Without the failed ones that were replaced; see `leftovers.without_history`.
        missing: What their controllers may not create.
        short: Nodes of their pool: evidence on the hop of discovery, whoever is to blame.
        devices: What GPU agents say.
        pods_unknown: Why pods cannot be seen: then hops one to five are unknown.
    """
    rows = live_or_telling(rows)
    first_five = _pod_hops(rows, missing, short, devices) if pods_unknown is None else _blind(str(pods_unknown))
    return report((*first_five, _service(reaches, registers, has_pods=bool(rows)), _gateway()))


def _blind(reason: str) -> list[HopLine]:
    reason = reason.removeprefix("unknown (").removesuffix(")")
    hops = (Hop.GPU, Hop.DISCOVERY, Hop.SCHEDULING, Hop.POD, Hop.MODEL)
    return [HopLine(hop=hop, state=HopState.UNKNOWN, reason=reason) for hop in hops]


def _pod_hops(
    rows: Sequence[PodRow], missing: Sequence[NotCreated], short: Sequence[Short], devices: DeviceSight
) -> list[HopLine]:
    placed = [row for row in rows if row.node]
    wants_gpus = any(row.gpus for row in rows) or any(blocked.gpus for blocked in missing)
    evidence = tuple(
        Evidence(f"node/{each.node}", f"advertises {each.advertised} of {counted(each.expected, 'GPU')}")
        for each in short
    )[:SHOWN]
    if not wants_gpus:
        gpu = HopLine(hop=Hop.GPU, state=HopState.NOT_APPLICABLE, reason=NO_GPUS)
        discovery = HopLine(hop=Hop.DISCOVERY, state=HopState.NOT_APPLICABLE, reason=NO_GPUS)
        gpu = _line(Hop.GPU, rows, total=len(rows)) or gpu
        discovery = _line(Hop.DISCOVERY, rows, total=len(rows)) or discovery
    else:
        gpu = _gpu(rows, devices)
        discovery = _line(Hop.DISCOVERY, rows, total=len(rows), more=evidence) or HopLine(
            hop=Hop.DISCOVERY, state=HopState.OK, total=len(rows), evidence=evidence
        )
    return [gpu, discovery, _scheduling(rows, missing), _pod(placed), _model(placed)]


def _gpu(rows: Sequence[PodRow], devices: DeviceSight) -> HopLine:
    """
    Broken for pods that fail of their GPU, that have a bad one, or that wait because others are bad.

    What agents say breaks it even where some are silent; only without a word against it silence makes it unknown.
    """
    words: dict[Key, str] = {}
    for row in rows:
        why = trouble(row)
        if why is not None and why.hop is Hop.GPU:
            words[row.key] = why.summary
        elif row.key in devices.on_bad:
            words[row.key] = devices.on_bad[row.key]
        elif row.key in devices.waits:
            words[row.key] = why.summary if why is not None else "waits because GPUs are bad"
    if words:
        said = tuple(Evidence(f"pod/{key[1]}", text) for key, text in words.items())
        return HopLine(
            hop=Hop.GPU,
            state=HopState.BROKEN,
            broken=len(words),
            total=len(rows),
            pods=tuple(key[1] for key in words),
            evidence=(*said[:SHOWN], *devices.evidence)[:SHOWN],
        )
    if devices.unknown:
        return HopLine(hop=Hop.GPU, state=HopState.UNKNOWN, reason=devices.unknown, evidence=devices.evidence[:SHOWN])
    return HopLine(hop=Hop.GPU, state=HopState.OK, total=len(rows), evidence=devices.evidence[:SHOWN])


def _line(hop: Hop, rows: Iterable[PodRow], *, total: int, more: tuple[Evidence, ...] = ()) -> HopLine | None:
    """The line of a hop on which a pod is broken; None if none is."""
    broken = [(row, why) for row in rows if (why := trouble(row)) is not None and why.hop is hop]
    if not broken:
        return None
    return HopLine(
        hop=hop,
        state=HopState.BROKEN,
        broken=len(broken),
        total=total,
        pods=tuple(row.key[1] for row, _ in broken),
        evidence=(*(_evidence(row, why) for row, why in broken[:SHOWN]), *more)[:SHOWN],
    )


def trouble(row: PodRow) -> Diagnosis | None:
    """What is wrong with a pod, where anything is known to be."""
    if row.waiting:
        pending = row.pending
        return pending if pending is not None and pending.category is not Category.NONE else None
    return row.failure


def _evidence(row: PodRow, why: Diagnosis) -> Evidence:
    return Evidence(f"pod/{row.key[1]}", why.summary)


def _scheduling(rows: Sequence[PodRow], missing: Sequence[NotCreated]) -> HopLine:
    total = len(rows) + sum(blocked.pods for blocked in missing)
    line = _line(Hop.SCHEDULING, rows, total=total)
    refused = [f"{blocked.controller} #{index + 1}" for blocked in missing for index in range(blocked.pods)]
    if refused:
        said = tuple(Evidence(blocked.controller, blocked.diagnosis.summary) for blocked in missing)
        before = line or HopLine(hop=Hop.SCHEDULING, state=HopState.BROKEN, total=total)
        return msgspec.structs.replace(
            before,
            broken=before.broken + len(refused),
            pods=(*before.pods, *refused),
            evidence=(*before.evidence, *said)[:SHOWN],
        )
    if line is not None:
        return line
    unjudged = [row for row in rows if row.waiting and row.pending is None]
    if unjudged:
        return HopLine(hop=Hop.SCHEDULING, state=HopState.UNKNOWN, total=total, reason="window (not yet computed)")
    return HopLine(hop=Hop.SCHEDULING, state=HopState.OK, total=total)


def _pod(placed: Sequence[PodRow]) -> HopLine:
    return _line(Hop.POD, placed, total=len(placed)) or HopLine(hop=Hop.POD, state=HopState.OK, total=len(placed))


def _model(placed: Sequence[PodRow]) -> HopLine:
    return _line(Hop.MODEL, placed, total=len(placed)) or HopLine(
        hop=Hop.MODEL, state=HopState.UNKNOWN, total=len(placed), reason=NO_PROBE
    )


def _service(reaches: Sequence[Reach], registers: Registration, *, has_pods: bool) -> HopLine:
    if not reaches:
        if registers is Registration.ENDPOINTS or not has_pods:
            return HopLine(hop=Hop.SERVICE, state=HopState.NOT_APPLICABLE, reason=NO_SERVICE)
        return HopLine(hop=Hop.SERVICE, state=HopState.UNKNOWN, reason=f"no_source (registration with {registers})")
    said = [(reach, _wrong_with(reach.facts)) for reach in reaches]
    broken = [(reach, text) for reach, text in said if isinstance(text, str) and text]
    if broken:
        return HopLine(
            hop=Hop.SERVICE,
            state=HopState.BROKEN,
            broken=len(broken),
            total=len(reaches),
            pods=tuple(sorted({pod for reach, _ in broken for pod in reach.pods})),
            evidence=tuple(Evidence(f"service/{reach.service[1]}", text) for reach, text in broken[:SHOWN]),
        )
    unknown = next((text for _, text in said if isinstance(text, Unknown)), None)
    if unknown is not None:
        reason = str(unknown).removeprefix("unknown (").removesuffix(")")
        return HopLine(hop=Hop.SERVICE, state=HopState.UNKNOWN, total=len(reaches), reason=reason)
    return HopLine(hop=Hop.SERVICE, state=HopState.OK, total=len(reaches))


def _wrong_with(facts: Facts) -> str | Unknown:
    """What a Service's facts say is wrong with it; empty if nothing is."""
    expects = facts.get("service.expects_pods")
    if expects is not True:
        return expects if isinstance(expects, Unknown) else ""
    if facts.get("service.selected") == 0:
        return "its selector matches no pod"
    if facts.get("service.port_ok") is False:
        return "its target port is opened by no pod"
    endpoints = facts.get("service.ready_endpoints")
    if endpoints == 0:
        return "no endpoint is ready"
    return endpoints if isinstance(endpoints, Unknown) else ""


def _gateway() -> HopLine:
    return HopLine(hop=Hop.GATEWAY, state=HopState.UNKNOWN, reason=NO_ROUTES)
