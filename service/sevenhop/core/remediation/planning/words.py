"""Plans in a few plain words, for messages, terminals and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.state import Slot
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit, Scale, Steer
from sevenhop.core.remediation.plan import Considered, Need, Plan
from sevenhop.core.words import in_order

_MODEL = re.compile(r"^(?:NVIDIA-|Tesla-|AMD-Instinct-|AMD-)?(RTX-[A-Za-z0-9]+|[A-Za-z]*\d+[A-Za-z]*)")


def short_product(pool: str) -> str:
    """
    As people say it.

    >>> short_product("NVIDIA-H100-80GB-HBM3"), short_product("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")
    ('H100', 'A100 MIG 1g.5gb')
    >>> short_product("nvidia.com/gpu")
    'GPU'
    """
    if not pool or ("/" in pool and "-" not in pool.partition("/")[0]):
        return "GPU"
    name, _, slice_ = pool.partition("-MIG-")
    found = _MODEL.match(name)
    short = found.group(1) if found else name
    return f"{short} MIG {slice_}" if slice_ else short


def slot_name(slot: Slot) -> str:
    """``namespace/workload/component``, without what is empty."""
    (namespace, workload), component = slot
    return "/".join(part for part in (namespace, workload, component) if part)


def some(names: Iterable[str], most: int = 3) -> str:
    """
    >>> some(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    all_of_them = list(names)
    rest = len(all_of_them) - most
    return ", ".join(all_of_them[:most]) + (f" and {rest} more" if rest > 0 else "")


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "pod"), count(2, "pod")
    ('1 pod', '2 pods')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def others(number: int) -> str:
    """
    >>> others(1), others(2)
    ('1 other pod that waits', '2 other pods that wait')
    """
    return f"{count(number, 'other pod')} that wait{'s' if number == 1 else ''}"


def minutes(span: timedelta) -> str:
    """
    >>> minutes(timedelta(hours=2)), minutes(timedelta(minutes=90)), minutes(timedelta(seconds=40))
    ('2 h', '90 min', '40 s')
    """
    if span < timedelta(minutes=1):
        return f"{round(span.total_seconds())} s"
    whole = round(span.total_seconds() / 60)
    return f"{whole // 60} h" if whole and whole % 60 == 0 else f"{whole} min"


def change(scale: Scale, home: str = "") -> str:
    """
    ``summarizer 4 → 3``; the component is named where the workload has more than a name.

    Args:
        home: Namespace of whom it is for: two namespaces may hold a workload of one name, so another one is named.
    """
    workload = scale.workload[1] if home in ("", scale.workload[0]) else "/".join(scale.workload)
    name = (
        workload
        if scale.component in ("", scale.workload[1], "engine", "model", "predictor")
        else f"{workload}/{scale.component}"
    )
    return f"{name} {scale.before} → {scale.after}"


def title_of(scales: Sequence[Scale], gpus: Mapping[str, int], nodes: Sequence[str], home: str = "") -> str:
    """
    ``summarizer 4 → 3, frees 2 H100 on gpu-07``.

    Args:
        gpus: By product, that which is waited for first.
        home: As in `change`.
    """
    changes = " and ".join(change(scale, home) for scale in scales)
    freed = " and ".join(f"{number} {short_product(product)}" for product, number in gpus.items())
    where = f" on {some(in_order(nodes), 2)}" if nodes else ""
    return f"{changes}, frees {freed}{where}"


_STAYS_PUT = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""
What owners tell autoscalers that move pods; https://karpenter.sh/docs/concepts/disruption and the FAQ of the cluster
autoscaler.  Neither speaks of fewer replicas, and inference workloads often carry it on every pod: told, not refused.
"""


def stays_put(pods: Iterable[Pod]) -> list[str]:
    """Notes about pods that go and whose owner asks autoscalers to leave them where they are."""
    said: dict[str, list[str]] = {}
    for pod in pods:
        for key, value in _STAYS_PUT.items():
            if pod.metadata.annotations.get(key) == value:
                said.setdefault(f"{key}: {value}", []).append(pod.metadata.name)
    return [f"{some(names, 2)} says {words}: its owner does not want it moved" for words, names in said.items()]


def plan_lines(plan: Plan) -> list[str]:
    """What a person reads before saying yes: the change, who goes, why it helps, what it costs, what else was seen."""
    lines = [plan.title, *(_path(scale) for scale in plan.scales)]
    lines += _victims(plan)
    if plan.need is not None:
        lines.append(_fit(plan, plan.need))
    if plan.not_preempted:
        lines.append(f"not preempted: {plan.not_preempted}")
    lines += plan.notes
    if plan.lease:
        lines.append(f"lent for {minutes(plan.lease)}, then given back")
    if plan.considered:
        lines.append(f"also looked at: {considered_line(plan.considered)}")
    return lines


def considered_line(considered: Sequence[Considered], most: int = 4) -> str:
    """``ranker (same tier: standard), embed (at its floor of 2)``."""
    return some((f"{each.who} ({each.text})" for each in considered), most)


def _path(scale: Scale) -> str:
    where = f"{scale.target}{f' /{scale.subresource}' if scale.subresource else ''}"
    parts = [f"{where}: {_fields(scale.edits)}", *(f"{ref}: {_fields(edits)}" for ref, edits, _ in scale.also if edits)]
    named = {scale.target, *(ref for ref, _, _ in scale.also)}
    marked = [] if scale.marked in named else [f"{scale.marked}: its mark"]
    return f"through {' and '.join([*parts, *marked])}"


def _fields(edits: Sequence[Edit]) -> str:
    return some((f"{edit.pointer} {edit.before} → {edit.after}" for edit in edits), 3)


def _victims(plan: Plan) -> list[str]:
    names = some(_name(pod) for pod in plan.victims)
    if not names:
        return []
    steered = {(ref.namespace, ref.name) for action in plan.actions if isinstance(action, Steer) for ref in action.pods}
    helps, choices = plan.helps_in
    if helps < choices:
        return [f"which pods go is its controller's choice: it helps in {helps} of {choices} cases"]
    if steered:
        return [f"goes: {names} (steered by pod-deletion-cost)"]
    if choices > 1:
        return [f"goes: {names}, or others: it helps whichever of {choices} choices its controller makes"]
    return [f"goes: {names}"]


def _fit(plan: Plan, need: Need) -> str:
    who = f"{need.workload[1]}/{need.component}"
    fits = "fits" if len(need.pods) == 1 else "fit"
    return f"then {count(len(need.pods), 'pod')} of {who} {fits} by simulation on {some(in_order(plan.nodes))}"


def _name(pod: Key) -> str:
    return pod[1]
