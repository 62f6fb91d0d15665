"""What `get nodes`, `get gpus` and `get capacity` list: who has the GPUs, which are bad, who waits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sevenhop.core.engine import Engine
from sevenhop.core.facts.schema import Facts, Unknown, UnknownReason
from sevenhop.core.inventory.advertised import is_ready
from sevenhop.core.inventory.gpu_agent import Gpu
from sevenhop.core.inventory.gpu_health import GpuState
from sevenhop.core.inventory.gpu_holders import holders_of
from sevenhop.core.inventory.gpu_unnamed import Unnamed, unnamed_on
from sevenhop.core.inventory.pools import capacity, waiting_gpus
from sevenhop.core.inventory.products import node_product
from sevenhop.core.inventory.state import State
from sevenhop.core.placement.devices import CLAIMS, SLICES
from sevenhop.core.subject import Subject, SubjectKind

Row = dict[str, Any]


def nodes(engine: Engine, _now: datetime) -> list[Row]:
    """
    One row per node and GPU pool; nodes that offer no GPUs have one row, with the product that their labels name.

    `bound`, `releasing` and `free` are None while pods were never seen, and `unknown` says why; where they were seen
    and are not now, it says so of numbers that stand as they were.

    `expected`, `visible` and `trouble` are of the whole node.  `visible` counts GPUs that the driver sees, however they
    are cut or shared, and is None where no agent tells; `ready` is None where the kubelet has not said anything yet.
    `free` is what the scheduler would give away; `unknown` says so where the node's agent has never named some of it.
    """
    state = engine.inventory.state
    rows: list[Row] = []
    for pool in sorted(state.ledger.pools()):
        unhealthy, unknown = state.ledger.unhealthy_of(pool), _unseen(state, pool)
        rows += [
            {
                "node": free.name,
                "product": pool,
                **_of_node(state, free.name),
                "allocatable": free.allocatable,
                "unhealthy": unhealthy[free.name],
                "unknown": str(unknown or _why_unnamed(state, free.name, pool) or ""),
                **_counted(unknown, bound=free.bound, releasing=free.releasing, free=free.free),
            }
            for free in state.ledger.nodes_of(pool)
        ]
    with_gpus = {row["node"] for row in rows}
    unknown = _unseen(state, "")
    rows += [
        {
            "node": name,
            "product": node_product(node).name,
            **_of_node(state, name),
            "allocatable": 0,
            "unhealthy": 0,
            "unknown": str(unknown or ""),
            **_counted(unknown, bound=0, releasing=0, free=0),
        }
        for (_, name), node in sorted(state.objects.nodes().items())
        if name not in with_gpus
    ]
    return rows


def gpus(engine: Engine, _now: datetime) -> list[Row]:
    """
    One row per GPU or MIG instance that an agent tells of; what it does not tell now is None.  Where a node offers more
    than its agent has ever named, one more for each: nothing is known of it but that the scheduler would give it away.

    `pods` have it; `gone` had it when it was lost or last told of, and are not in the cluster any more.  XIDs are told
    of whole GPUs, and are None for an instance.  `trouble` stays while the agent is silent, as in the listing of nodes:
    nobody has said that it is over.
    """
    state = engine.inventory.state
    rows: list[Row] = []
    for name, agent in sorted(state.gpus.agents.items()):
        for gpu in sorted(agent.gpus.values(), key=lambda g: (g.index, g.uuid)):
            facts = state.facts.get(Subject(SubjectKind.GPU, "", gpu.uuid))
            if facts is not None:
                rows.append(_gpu(state, gpu, facts))
        for pool, profile, unnamed in unnamed_on(state, name):
            rows += [_unnamed(name, pool, profile, unnamed) for _ in range(unnamed.missing)]
    return rows


def _unnamed(node: str, pool: str, profile: str, unnamed: Unnamed) -> Row:
    """The same row of a GPU of which nobody has said anything."""
    return {
        "node": node,
        "index": None,
        "gpu": "",
        "product": pool,
        "profile": profile,
        "pci": "",
        "state": "unknown",
        "unknown": str(unnamed.why),
        **dict.fromkeys(_READ),
        "pods": [],
        "gone": [],
        **dict.fromkeys((*_FACTS, *_OF_WHOLE)),
        "trouble": "",
    }


def _gpu(state: State, gpu: Gpu, facts: Facts) -> Row:
    judged, (pods, gone) = state.gpu_states[gpu.node][gpu.uuid], holders_of(state, gpu)
    present = facts["gpu.present"]
    # What stands of a GPU that is lost, or that nobody reads any more, is not how it is.
    reading = gpu.reading if present is not False and judged.unknown is None else None
    unknown = next((facts[n] for n in ("gpu.present", "gpu.xid") if isinstance(facts[n], Unknown)), "")
    return {
        "node": gpu.node,
        "index": gpu.index if gpu.index >= 0 else None,
        "gpu": gpu.uuid,
        "product": str(facts["product"]),
        "profile": gpu.profile,
        "pci": gpu.pci,
        "state": _gpu_state(judged, present),
        "unknown": str(unknown),
        **{name: getattr(reading, name, None) for name in _READ},
        "pods": ["/".join(pod) for pod in pods],
        "gone": ["/".join(pod) for pod in gone],
        **{name: plain_or_none(facts[f"gpu.{name}"]) for name in _FACTS},
        **{name: None if gpu.parent else plain_or_none(facts[f"gpu.{name}"]) for name in _OF_WHOLE},
        "trouble": judged.trouble,
    }


_READ = ("temperature_c", "power_w", "nvlinks_down", "processes", "ecc_uncorrected", "ecc_corrected", "remap_pending")
"""What a reading says beside the facts."""

_FACTS = (
    "present", "throttle", "utilization_ratio", "sm_active_ratio", "sm_occupancy_ratio", "mem_used_ratio",
    "remap_failed", "held_without_pod", "hits",
)  # fmt: skip

_OF_WHOLE = ("xid", "xid_class", "xid_repeats_24h")


def _why_unnamed(state: State, node: str, pool: str) -> Unknown | None:
    return next((unnamed.why for each, _, unnamed in unnamed_on(state, node) if each == pool), None)


def _gpu_state(judged: GpuState, present: object) -> str:
    """`ok`, `bad`, `lost`, or `unknown`."""
    if present is False:
        return "lost"
    if judged.is_bad and judged.unknown is None:
        return "bad"
    return "unknown" if isinstance(present, Unknown) else "ok"


def _unseen(state: State, pool: str) -> Unknown | None:
    """Why what pods hold of a pool is not known now."""
    return state.gate("Node", "Pod", *((SLICES, CLAIMS) if _is_by_claim(state, pool) else ()))


def _unoffered(state: State, pool: str) -> Unknown | None:
    """Why what nodes offer of a pool is not known now."""
    return state.gate("Node", *((SLICES,) if _is_by_claim(state, pool) else ()))


def _is_by_claim(state: State, pool: str) -> bool:
    sums = state.ledger.pools().get(pool)
    return sums is not None and sums.by_claim


def _counted(unknown: Unknown | None, **numbers: int) -> Row:
    """Numbers as they are, or were when what they are counted from was last seen; None where it never was."""
    if unknown is None or unknown.reason is UnknownReason.STALE:
        return dict(numbers)
    return dict.fromkeys(numbers)


def _of_node(state: State, name: str) -> Row:
    node = state.objects.nodes().get(("", name))
    return {
        "expected": plain_or_none(_node_fact(state, name, "gpu.expected")),
        "visible": plain_or_none(_node_fact(state, name, "gpu.visible")),
        "trouble": _troubles(state, name),
        "ready": is_ready(node) if node is not None else None,
        "cordoned": node.spec.unschedulable if node is not None else None,
    }


def _troubles(state: State, node: str) -> str:
    health = state.gpu_health.get(node)
    return "; ".join(words for _, words in health.bad) if health is not None else ""


def _node_fact(state: State, node: str, name: str) -> object:
    return state.facts.get(Subject(SubjectKind.NODE, "", node), {}).get(f"node.{name}")


def pools(engine: Engine, _now: datetime) -> list[Row]:
    """
    One row per GPU product: who has it, who waits (as `pools_waiting` says), who could give.

    What cannot be seen is None or, where it was seen before, as it was then, and `unknown` says so, as in `nodes`.
    """
    state = engine.inventory.state
    return [_pool(state, name) for name in sorted({*state.ledger.pools(), *state.waiting_in})]


def _pool(state: State, name: str) -> Row:
    pool, unknown = capacity(state, name), _unseen(state, name)
    waiting = state.belonging_gate() or waiting_gpus(pool.waiting)
    return {
        "product": pool.product or name,
        "resource": pool.resource,
        **_counted(
            _unoffered(state, name),
            allocatable=pool.allocatable,
            cordoned=pool.cordoned,
            unhealthy=pool.unhealthy,
        ),
        "reserved": pool.reserved,
        "unknown": str(unknown or (waiting if isinstance(waiting, Unknown) else "")),
        **_counted(
            unknown,
            bound=pool.bound,
            releasing=pool.releasing,
            free=pool.free,
            largest_free_block=pool.largest_free_block,
        ),
        **_counted(
            unknown or (waiting if isinstance(waiting, Unknown) else None),
            waiting_gpus=sum(each.gpus for each in pool.waiting),
        ),
        "held_by": [
            {"workload": "/".join(h.workload) if h.workload else "", "tier": h.tier, "gpus": h.gpus, "pods": h.pods,
             "could_give": h.reducible, "reason": h.reason}
            for h in pool.holdings
        ],
        "waiting": [
            {"workload": "/".join(w.workload), "component": w.component, "tier": w.tier,
             "gpus": None if w.unclear else w.gpus, "pods": w.pods,
             "since": w.since, "cause": w.cause}
            for w in pool.waiting
        ],
    }  # fmt: skip


def plain_or_none(value: object) -> Any:
    """As `plain`; None for what is unknown."""
    return None if isinstance(value, Unknown) else plain(value)


def plain(value: object) -> Any:
    """A value that JSON has, others in words."""
    return value if isinstance(value, bool | int | float | str | None) else str(value)
