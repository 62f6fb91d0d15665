"""`sevenhop get WHAT`: listings, from the running service, or from one look at the cluster."""

from __future__ import annotations

import argparse
from typing import Any

from sevenhop.cli.cluster import (
    NO_SERVICE,
    add_cluster_options,
    add_fleet_option,
    add_namespace_options,
    ask_service,
    connect,
    look,
    of_cluster,
    run_async,
    settings_of,
)
from sevenhop.cli.output import FORMATS, Column, UsageError, fail, listing
from sevenhop.cli.times import shown_time

_COMPONENTS = [
    Column("NAMESPACE", "namespace"), Column("WORKLOAD", "workload"), Column("COMPONENT", "component"),
    Column("READY", "ready_of"), Column("TIER", "tier"), Column("FIRST BROKEN", "first_broken"),
    Column("CAUSE", "cause"), Column("FRAMEWORK", "framework"), Column("MODEL", "model"),
    Column("VERSION", "model_version", wide=True), Column("ROLE", "role", wide=True),
    Column("GPUS EACH", "gpus_per_replica", wide=True), Column("GPUS", "gpus", wide=True),
    Column("RECLAIMABLE", "reclaimable", wide=True), Column("POOL", "pool", wide=True),
    Column("OWNER", "owner", wide=True), Column("ALERTS", "alerts", wide=True),
]  # fmt: skip

COLUMNS: dict[str, list[Column]] = {
    "workloads": _COMPONENTS,
    "components": _COMPONENTS,
    "pods": [
        Column("NAMESPACE", "namespace"), Column("POD", "pod"), Column("WORKLOAD", "workload"),
        Column("COMPONENT", "component"), Column("PHASE", "phase"), Column("READY", "ready"), Column("NODE", "node"),
        Column("GPUS", "gpus"), Column("HOP", "hop"), Column("CAUSE", "cause"),
        Column("STRAGGLER", "straggler", wide=True),
        Column("CONFIDENCE", "confidence", wide=True), Column("SUMMARY", "summary", wide=True),
    ],
    "nodes": [
        Column("NODE", "node"), Column("PRODUCT", "product"), Column("EXPECTED", "expected", wide=True),
        Column("VISIBLE", "visible"), Column("ALLOCATABLE", "allocatable"), Column("BOUND", "bound"),
        Column("FREE", "free"), Column("UNHEALTHY", "unhealthy"), Column("RELEASING", "releasing", wide=True),
        Column("READY", "ready"), Column("CORDONED", "cordoned"), Column("TROUBLE", "trouble", wide=True),
        Column("UNKNOWN", "unknown", wide=True),
    ],
    "gpus": [
        Column("NODE", "node"), Column("GPU", "index"), Column("PRODUCT", "product"), Column("STATE", "state"),
        Column("XID", "xid"), Column("ASKS FOR", "xid_class"), Column("THROTTLE", "throttle"),
        Column("SM", "sm_active_ratio"), Column("MEMORY", "mem_used_ratio"), Column("PODS", "pods"),
        Column("WAS HELD BY", "gone", wide=True),
        Column("UUID", "gpu", wide=True), Column("PROFILE", "profile", wide=True), Column("PCI", "pci", wide=True),
        Column("°C", "temperature_c", wide=True), Column("WATT", "power_w", wide=True),
        Column("BUSY", "utilization_ratio", wide=True), Column("OCCUPANCY", "sm_occupancy_ratio", wide=True),
        Column("REPEATS", "xid_repeats_24h", wide=True),
        Column("LINKS DOWN", "nvlinks_down", wide=True), Column("ECC", "ecc_uncorrected", wide=True),
        Column("PROCESSES", "processes", wide=True),
        Column("TROUBLE", "trouble", wide=True), Column("UNKNOWN", "unknown", wide=True),
    ],
    "capacity": [
        Column("PRODUCT", "product"), Column("RESOURCE", "resource", wide=True), Column("ALLOCATABLE", "allocatable"),
        Column("BOUND", "bound"), Column("RELEASING", "releasing"), Column("FREE", "free"),
        Column("UNHEALTHY", "unhealthy"), Column("RESERVED", "reserved", wide=True),
        Column("CORDONED", "cordoned"), Column("LARGEST BLOCK", "largest_free_block"), Column("WAITING", "waits"),
        Column("HELD BY", "holders"), Column("UNKNOWN", "unknown", wide=True),
    ],
    "alerts": [
        Column("STATE", "state"), Column("RULE", "rule"), Column("SUBJECT", "subject"), Column("AGE", "age"),
        Column("FOR", "for", wide=True), Column("SINCE", "since", wide=True), Column("UNKNOWN", "unknown"),
    ],
    "incidents": [
        Column("STATUS", "status"), Column("SEVERITY", "severity"), Column("SINCE", "since"), Column("CAUSE", "cause"),
        Column("ALERTS", "alerts"), Column("EXPLAINS", "explains"), Column("TITLE", "title"),
        Column("TOLD", "told", wide=True), Column("ID", "incident", wide=True),
    ],
    "findings": [
        Column("KIND", "kind"), Column("NAMESPACE", "namespace"), Column("NAME", "name"),
        Column("WORKLOAD", "workload"), Column("HOP", "hop"), Column("CAUSE", "cause"),
        Column("CONFIDENCE", "confidence", wide=True), Column("SUMMARY", "summary"),
    ],
    "silences": [
        Column("ID", "id"), Column("MATCHERS", "matchers"), Column("AUTHOR", "author"), Column("EXPIRES", "expires_at"),
        Column("COMMENT", "comment"),
    ],
    "plans": [
        Column("PLAN", "plan"), Column("STATE", "state"), Column("FOR", "for"), Column("WHAT", "title"),
        Column("GPUS", "gpus"), Column("EXPIRES", "expires_at"), Column("DECIDED BY", "decided_by"),
        Column("PLAYBOOK", "playbook", wide=True), Column("WHY", "why", wide=True),
    ],
    "runs": [
        Column("PLAN", "plan"), Column("STATE", "state"), Column("FOR", "for"), Column("WHAT", "title"),
        Column("STARTED", "started_at"), Column("LEASE UNTIL", "lease_until"), Column("BY", "decided_by"),
        Column("PROGRESS", "progress"), Column("WHY", "why", wide=True),
    ],
    "shadow": [
        Column("PLAN", "plan"), Column("PROPOSED", "proposed_at"), Column("WHAT", "title"), Column("GPUS", "gpus"),
        Column("INSTEAD", "instead"), Column("AFTER", "after"), Column("PLAYBOOK", "playbook", wide=True),
    ],
    "safety": [
        Column("WHAT", "what"), Column("ON", "is_on"), Column("BY", "by"), Column("SINCE", "since"),
        Column("TEXT", "text"),
    ],
    "sources": [
        Column("KIND", "kind"), Column("STATE", "state"), Column("OBJECTS", "objects"), Column("DETAIL", "detail"),
    ],
}  # fmt: skip


SILENT_AFTER_S = 20
"""Workers tell every 5 s, and one that dies is replaced within 15 s."""

OF_THE_SERVICE = frozenset({"plans", "runs", "shadow", "safety"})
"""What one look at a cluster cannot tell."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("get", help="list workloads, pods, nodes, gpus, capacity, findings, alerts, incidents")
    parser.add_argument("what", choices=sorted(COLUMNS), metavar="WHAT", help=", ".join(sorted(COLUMNS)))
    add_namespace_options(parser)
    add_cluster_options(parser)
    add_fleet_option(parser)
    parser.add_argument("-o", "--output", choices=FORMATS, default="table")
    parser.add_argument("--all-clusters", action="store_true", help="what all workers of the scaled runtime have said")
    parser.add_argument("--gpu", default="", metavar="PRODUCT", help="only what has or wants such GPUs, such as H100")
    parser.add_argument("--sort", default="", metavar="FIELD", help="numbers the largest first: reclaimable, gpus, …")


def run(args: argparse.Namespace) -> int:
    settings = settings_of(args)
    if args.all_clusters:
        rows = ask_service(settings.state, "GET", f"/fleet/{args.what}")
        if rows is None:
            raise UsageError("no worker runs here: run the command on a worker's host, with its --state")
        return show(rows, args)
    rows = ask_service(settings.state, "GET", f"/get/{args.what}", query=of_cluster(args))
    if rows is not None:
        return show(rows, args)
    if args.what in OF_THE_SERVICE:
        raise UsageError(NO_SERVICE)

    async def main() -> int:
        import msgspec

        from sevenhop.core.views import VIEWS
        from sevenhop.runtime.clock import Clock

        clock = Clock()
        async with await connect(settings) as api:
            engine = await look(settings, api, clock=clock)
        return show(msgspec.to_builtins(VIEWS[args.what](engine, clock()), enc_hook=str), args)

    return run_async(main)


def show(rows: list[dict[str, Any]], args: argparse.Namespace) -> int:
    """Print rows as asked."""
    if args.namespace:
        rows = [row for row in rows if row.get("namespace", args.namespace) == args.namespace]
    rows = sorted_by(with_gpu(rows, args.gpu), args.sort)
    if args.output in ("table", "wide"):
        rows = [for_people(row) for row in rows]
    print(listing(rows, columns_for(args.what, rows), args.output, nothing=f"No {args.what}."))
    for problem in silent_clusters(rows):
        fail(problem)
    return 0


def columns_for(what: str, rows: list[dict[str, Any]]) -> list[Column]:
    """The columns of a listing; with the cluster where the rows name it."""
    columns = COLUMNS[what]
    if any("cluster" in row for row in rows) and columns[0].field != "cluster":
        return [Column("CLUSTER", "cluster"), *columns, Column("TOLD, S AGO", "told_s", wide=True)]
    return columns


def silent_clusters(rows: list[dict[str, Any]]) -> list[str]:
    """
    Clusters whose worker has not spoken for long: what is shown of them may be over.

    >>> silent_clusters([{"cluster": "lab", "told_s": 90}, {"cluster": "prod", "told_s": 3}, {"cluster": "own"}])
    ['lab: its worker last spoke 90 s ago; what is shown of it is from then']
    """
    said = {row["cluster"]: row["told_s"] for row in rows if "cluster" in row and "told_s" in row}
    return [
        f"{cluster}: its worker last spoke {'at an unknown time' if told_s is None else f'{told_s} s ago'}; "
        "what is shown of it is from then"
        for cluster, told_s in sorted(said.items())
        if told_s is None or told_s > SILENT_AFTER_S
    ]


def with_gpu(rows: list[dict[str, Any]], product: str) -> list[dict[str, Any]]:
    """
    Rows about a GPU product, by any part of its name, in any case.

    >>> with_gpu([{"pool": "NVIDIA-H100-80GB-HBM3"}, {"pool": ""}, {"kind": "Pod"}], "h100")
    [{'pool': 'NVIDIA-H100-80GB-HBM3'}]
    """
    if not product:
        return rows
    return [row for row in rows if product.lower() in str(row.get("pool") or row.get("product") or "").lower()]


def sorted_by(rows: list[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    """
    Rows by one of their fields: numbers the largest first, what is not known last; texts in order of the alphabet.

    Raises:
        UsageError: No row has such a field.

    >>> [row["n"] for row in sorted_by([{"n": 1}, {"n": None}, {"n": 3}], "n")]
    [3, 1, None]
    """
    if not field or not rows:
        return rows
    if not any(field in row for row in rows):
        raise UsageError(f"nothing here to sort by {field!r}; there are {', '.join(sorted({*rows[0]}))}")

    def key(row: dict[str, Any]) -> tuple[int, float, str]:
        value = row.get(field)
        if value is None:
            return (2, 0, "")
        return (0, -float(value), "") if isinstance(value, int | float) else (1, 0, str(value))

    return sorted(rows, key=key)


def for_people(row: dict[str, Any]) -> dict[str, Any]:
    shown = dict(row)
    if "desired" in row and "ready" in row:
        ready = "?" if row["ready"] is None else row["ready"]
        shown["ready_of"] = f"{ready}/{'?' if row['desired'] is None else row['desired']}"
    if "after_s" in row:
        shown["after"] = age(row["after_s"])
    if "age_s" in row:
        shown["age"] = age(row["age_s"])
    shown |= {field: shown_time(row[field]) for field in _TIMES if row.get(field)}
    if "held_by" in row:
        shown["holders"] = [f"{h['workload'] or 'others'}:{h['gpus']}" for h in row["held_by"]]
        shown["waits"] = row.get("waiting_gpus")
    return shown


_TIMES = ("since", "expires_at", "started_at", "lease_until", "proposed_at")


def age(seconds: float) -> str:
    """
    As kubectl writes it.

    >>> age(59), age(600), age(7300), age(200000)
    ('59s', '10m', '2h1m', '2d')
    """
    whole = int(seconds)
    if whole < 120:
        return f"{whole}s"
    if whole < 7200:
        return f"{whole // 60}m"
    if whole < 172800:
        return f"{whole // 3600}h{whole % 3600 // 60}m"
    return f"{whole // 86400}d"
