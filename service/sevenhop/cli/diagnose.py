"""`sevenhop diagnose -f PATH…`: a support bundle in, the same diagnosis out; no cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from sevenhop.cli.output import (
    Column,
    UsageError,
    fail,
    folded,
    listing,
    others,
    to_json,
    to_yaml,
    visible,
    without_numbers,
)
from sevenhop.cli.times import parse_time
from sevenhop.core import bundle
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.placement.what_if import what_if
from sevenhop.core.words import counted, inflected
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.sources.files import Loaded, load_files
from sevenhop.sources.files_text import INSTEAD


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "diagnose",
        help="diagnose files: the output of kubectl get -o yaml, a support bundle",
        description="Reads Kubernetes objects from files and says what is wrong with them.",
    )
    parser.add_argument("-f", "--filename", nargs="+", action="extend", required=True, metavar="PATH",
                        help="files, folders, or - for stdin; YAML or JSON, also packed with gzip or tar")  # fmt: skip
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")
    parser.add_argument("-n", "--namespace", default="", help="show only this namespace; all are read")
    parser.add_argument("--what-if", metavar='"delete NS/POD,NS/POD"', default="",
                        help="would the pending pods fit without these pods")  # fmt: skip
    parser.add_argument("--now", metavar="TIME", default="", help="judge ages by this time (RFC 3339)")


def run(args: argparse.Namespace) -> int:
    deletions = parse_what_if(args.what_if) if args.what_if else None
    now = parse_time("--now", args.now) if args.now else None
    loaded = load_files(args.filename)
    objects = loaded.objects()
    problems = [{"where": p.where, "message": p.message} for p in loaded.problems]
    if not loaded.items and not problems:
        problems.append({"where": ", ".join(args.filename), "message": nothing_read(loaded)})
    document = document_of(bundle.diagnose(objects, FRAMEWORKS, Policy(), now=now), args.namespace)
    if deletions is not None:
        problems += [
            {"where": "--what-if", "message": f"no pod {namespace}/{name} in the files"}
            for namespace, name in deletions
            if objects.get("Pod", namespace, name) is None
        ]
        document["what_if"] = [
            {"pod": f"{w.pod[0]}/{w.pod[1]}", "fits": w.fits, "nodes": list(w.nodes), "reason": w.reason}
            for w in what_if(objects, deletions)
        ]
    document["problems"] = problems
    if args.output == "json":
        print(to_json(document))
    elif args.output == "yaml":
        print(to_yaml(document), end="")
    else:
        if loaded.items:  # otherwise nothing was seen, and nothing can be said but why
            seen = [key for key in objects.pods() if args.namespace in ("", key[0])]
            print(visible(text_of(document, seen_pods=len(seen), knows_pods=objects.is_known("Pod"))))
        for problem in problems:
            fail(f"{problem['where']}: {problem['message']}")
    return 2 if problems and not loaded.items else 0


def nothing_read(loaded: Loaded) -> str:
    """Why there is no object although nothing is wrong with the files."""
    if loaded.skipped:
        kinds = ", ".join(sorted(loaded.skipped)[:5])
        return f"no Kubernetes objects of a kind that is read, but {kinds}; {INSTEAD}"
    if loaded.listed:
        return f"no Kubernetes objects, only empty lists; {INSTEAD}"
    return f"no Kubernetes objects: nothing stands in there; {INSTEAD}"


def document_of(report: bundle.Report, namespace: str = "") -> dict[str, Any]:
    """The document of ``-o json``; a namespace narrows what is shown, not what is read."""
    return {
        "schema": bundle.SCHEMA,
        "workloads": _within(namespace, report.workloads),
        "pods": _within(namespace, report.pods),
        "findings": [f for f in report.findings if namespace in ("", f.subject.namespace)],
        "capacity": report.capacity,
        "skipped": [
            {"kind": kind, "namespace": ns, "name": name, "reason": reason} for kind, ns, name, reason in report.skipped
        ],
    }


def parse_what_if(text: str) -> list[Key]:
    """
    Read ``delete ns/pod,ns/pod``.

    Raises:
        UsageError: Another form.
    """
    verb, _, names = text.strip().partition(" ")
    pods = [name.strip() for name in names.split(",") if name.strip()]
    if verb != "delete" or not pods or any(p.count("/") != 1 or p.startswith("/") or p.endswith("/") for p in pods):
        raise UsageError(f'--what-if: expected "delete NAMESPACE/POD,NAMESPACE/POD", got {text!r}')
    return [(p.split("/")[0], p.split("/")[1]) for p in pods]


def _within(namespace: str, rows: list[Any]) -> list[Any]:
    return [row for row in rows if namespace in ("", row.namespace)]


def text_of(document: dict[str, Any], *, seen_pods: int, knows_pods: bool) -> str:
    """
    What people read.

    Args:
        seen_pods: Pods in what is shown, well or not.
        knows_pods: A pod that was not seen does not exist.
    """
    parts = [_workloads_table(document["workloads"])]
    if document["pods"]:
        parts += ["\nNot well:", *_pod_lines(document["pods"])]
    else:
        parts.append(f"\n{_nothing_wrong(seen_pods, knows_pods=knows_pods)}")
    if document["findings"]:
        parts += ["\nFindings:", *_finding_lines(document["findings"])]
    if document["capacity"]:
        parts += ["\nCapacity:", _capacity_table(document["capacity"])]
    for w in document.get("what_if", ()):
        verdict = f"would fit on {', '.join(w['nodes'][:5])}" if w["fits"] else f"would still wait: {w['reason']}"
        parts.append(f"\nWhat if: {w['pod']} {verdict}")
    if document["skipped"]:
        number = len(document["skipped"])
        verb = inflected(number, "belongs", "belong")
        parts.append(f"\n{counted(number, 'object')} {verb} to no inference workload (-o json lists them).")
    return "\n".join(parts)


def _workloads_table(workloads: Sequence[bundle.WorkloadRow]) -> str:
    """A row for each component."""
    rows = [
        {
            "namespace": w.namespace, "workload": w.name, "framework": w.framework,
            "component": c.name if c.name == c.role or not c.role else f"{c.name} ({c.role})",
            "ready": f"{c.ready}/{'?' if c.desired is None else c.desired}", "gpus": c.gpu_per_replica,
            "model": w.model.name, "version": w.model.version, "tier": w.tier,
        }
        for w in workloads
        for c in w.components
    ]  # fmt: skip
    titles = ("namespace", "workload", "framework", "component", "ready", "gpus", "model", "version", "tier")
    columns = [Column(title.upper(), title) for title in titles]
    return listing(rows, columns, "table", nothing="No inference workloads found.")


def _pod_lines(pods: Sequence[bundle.PodRow]) -> Iterator[str]:
    """Each with its evidence and next steps; what is the same of many is said once."""
    same = (((p.namespace, p.workload, p.component, p.cause, without_numbers(p.summary)), p.name, p) for p in pods)
    for p, alike in folded(same):
        owner = f" [{p.workload}/{p.component}]" if p.workload else ""
        yield f"  {p.namespace}/{p.name}{owner}  {p.hop or '-'}: {p.cause} ({p.confidence})"
        yield f"    {p.summary}"
        if alike:
            yield f"    {others(alike)}"
        if p.disagreement:
            yield f"    the scheduler says otherwise: {p.disagreement}"
        if p.not_preempted:
            yield f"    not preempted: {p.not_preempted}"
        yield from (f"    · {e.source}: {e.text}" for e in p.evidence[:6])
        yield from (f"    → {step}" for step in (p.would_help or p.next_steps)[:3])


def _finding_lines(findings: Sequence[bundle.FindingRow]) -> Iterator[str]:
    for f in findings:
        place = f"{f.subject.namespace}/" if f.subject.namespace else ""
        yield f"  {f.subject.kind} {place}{f.subject.name}  {f.hop or '-'}: {f.cause}"
        yield f"    {f.summary}"
        yield from (f"    → {step}" for step in f.next_steps[:2])


def _capacity_table(capacity: Sequence[bundle.CapacityRow]) -> str:
    fields = ("product", "resource", "allocatable", "bound", "releasing", "free", "cordoned", "largest_free_block")
    columns = [Column(f.replace("largest_free_block", "largest block").upper(), f) for f in fields]
    return listing([{f: getattr(c, f) for f in fields} for c in capacity], columns, "table", nothing="")


def _nothing_wrong(seen: int, *, knows_pods: bool) -> str:
    if not knows_pods:
        if not seen:
            return "No pods in there: what runs or waits is not known."
        return f"{counted(seen, 'pod')} could be read and {inflected(seen, 'is', 'are')} well; others are not known."
    if not seen:
        return "No pods in there: nothing runs or waits yet."
    return f"Every one of {seen} pods is well." if seen > 1 else "The one pod in there is well."
