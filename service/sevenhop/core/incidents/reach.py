"""Which pods an alert is about: the ground on which one alert explains another."""

from __future__ import annotations

import msgspec

from sevenhop.core.hops.report import HopReport, HopState
from sevenhop.core.incidents.context import SubjectContext
from sevenhop.core.inventory.objects import Key
from sevenhop.core.subject import Hop, Subject, SubjectKind

NOBODY: frozenset[Key] = frozenset()


class Reach(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        needs: The broken pods that a cause must cover to explain this alert; empty: nothing can.
        covers: The broken pods that this alert accounts for as a cause; empty: it explains nothing.
        has_own: Something is broken on the rule's own hop, and not only on others.
        broken_at: Broken pods by hop, as the subject's report says.
        nodes: Where those pods are; "" for a pod without a node.
        worked_on: Nodes under maintenance among them.
    """

    needs: frozenset[Key] = NOBODY
    covers: frozenset[Key] = NOBODY
    has_own: bool = False
    broken_at: dict[Hop, frozenset[Key]] = {}
    nodes: dict[Key, str] = {}
    worked_on: frozenset[str] = frozenset()

    @property
    def pods(self) -> frozenset[Key]:
        return self.needs | self.covers

    @property
    def maintained_node(self) -> str:
        """A node under maintenance on which everything broken is; empty if there is none, or something is elsewhere."""
        places = {self.nodes.get(pod, "") for pod in self.needs}
        return min(places) if places and places <= self.worked_on else ""


def reach_of(subject: Subject, hop: Hop | None, context: SubjectContext | None) -> Reach | None:
    """
    The pods of an alert on `subject` by a rule on `hop`; None where they cannot be seen now.

    A pool has no reach of its own: what waits for it fires by itself, and is at home in the same incident.
    """
    if subject.kind is SubjectKind.POOL and hop is Hop.GPU and context is not None:
        return Reach(covers=_devices(context))
    if subject.kind in (SubjectKind.POOL, SubjectKind.SOURCE) or hop is None:
        return Reach()
    if context is None:
        return None
    nodes = {key: node for key, (_, node) in zip(context.pod_keys, context.pods, strict=False)}
    not_well = frozenset(nodes)
    worked_on = frozenset(context.maintenance)
    if context.report is None and context.devices and (subject.kind is SubjectKind.GPU or hop is Hop.DISCOVERY):
        return _of_devices(subject, context, not_well, nodes, worked_on)
    if context.report is None:
        on_itself = subject.kind is SubjectKind.NODE
        if on_itself and subject.name in worked_on and not not_well:
            # Nothing is broken on it but itself: it stands for its own place.
            return Reach(needs=frozenset({_ITSELF}), nodes={_ITSELF: subject.name}, worked_on=worked_on)
        return Reach(needs=not_well, covers=not_well, has_own=True, nodes=nodes, worked_on=worked_on)
    if _is_unseen(context.report, hop):
        return None
    broken_at = _broken_at(context.report, subject.namespace)
    own = broken_at.get(hop, NOBODY)
    anywhere = frozenset().union(*broken_at.values()) if broken_at else not_well
    return Reach(
        needs=own or anywhere,
        covers=own,
        has_own=context.report.line(hop).state is HopState.BROKEN and bool(own),
        broken_at=broken_at,
        nodes=nodes,
        worked_on=worked_on,
    )


_ITSELF: Key = ("", "")


def _of_devices(
    subject: Subject,
    context: SubjectContext,
    not_well: frozenset[Key],
    nodes: dict[Key, str],
    worked_on: frozenset[str],
) -> Reach:
    """
    A bad GPU stands for itself and for the pods that it concerns; a node that lacks GPUs is explained by those of its
    GPUs that are bad, whatever else fails on it.
    """
    devices = _devices(context)
    node = subject.name if subject.kind is SubjectKind.NODE else context.labels.get("node", "")
    return Reach(
        needs=devices,
        covers=not_well | devices if subject.kind is SubjectKind.GPU else not_well,
        has_own=True,
        nodes={**nodes, **dict.fromkeys(devices, node)},
        worked_on=worked_on,
    )


def _devices(context: SubjectContext) -> frozenset[Key]:
    """Bad GPUs as if they were pods, so that what explains what is asked in one way."""
    return frozenset(("", f"gpu:{uuid}") for uuid in context.devices)


def _is_unseen(report: HopReport, hop: Hop) -> bool:
    """Whether the pods cannot be seen: then what an alert was about stays as it was."""
    pods_unseen = all(report.line(h).state is HopState.UNKNOWN for h in (Hop.SCHEDULING, Hop.POD))
    return pods_unseen or (hop is Hop.SERVICE and report.line(hop).state is HopState.UNKNOWN)


def _broken_at(report: HopReport, namespace: str) -> dict[Hop, frozenset[Key]]:
    return {
        line.hop: frozenset((namespace, pod) for pod in line.pods)
        for line in report.lines
        if line.state is HopState.BROKEN and line.pods
    }
