"""
JobSet: several kinds of Jobs that run as one, for engines on more than one host.

Fields and labels are those of kubernetes-sigs/jobset, ``api/jobset/v1alpha2/jobset_types.go``: each entry of
``spec.replicatedJobs`` makes `replicas` Jobs (1 by default) of its template, and each Job as many pods at a time as the
smaller of `parallelism` and `completions`.  Nothing of it is a count that may be scaled: a running set stays as it is.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sevenhop.core.inventory.framework import Candidate, Claim, Found, Place, Reading
from sevenhop.core.inventory.templates import as_template, pod_component, pod_meta, with_intended_zero
from sevenhop.core.inventory.workloads import Component, Model
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.cluster import Controller
from sevenhop.core.objects.pod import PodSpec, PodTemplate
from sevenhop.frameworks.engine import Engine, engine_of, model_of_pod
from sevenhop.frameworks.reading import number, replicas, rows, spec_of, status_of, suspended, table, text
from sevenhop.frameworks.roles import role_in

ENTRY = "jobset.sigs.k8s.io/replicatedjob-name"
_JOB = "Job.batch"
_COMPLETED = "Completed"


def claim(candidate: Candidate) -> Claim | str:
    """A set of which some pods run an engine; one that trains, or only computes, is none of ours."""
    templates = [_template(entry) for entry in rows(spec_of(candidate.obj), "replicatedJobs")] or [candidate.template]
    found = [engine_of(template.spec) for template in templates]
    engines = [engine for engine in found if isinstance(engine, Engine)]
    if not engines and candidate.pools:
        return Claim(role="")  # whoever made the pool says that these serve a model, whatever they run
    if not engines:
        return next((reason for reason in found if isinstance(reason, str)), "")
    # Its components have names of their own, so the claim gives no role.
    return Claim(role="", model=next((each.model for each in engines if each.model.name), engines[0].model))


def read(found: Found) -> Reading:
    """One component per entry; its replicas are pods."""
    parts = [_component(found, entry) for entry in rows(spec_of(found.obj), "replicatedJobs")]
    return _reading(parts)


def read_below(found: Found) -> Reading:
    """The same from its Jobs, where the set itself is not visible."""
    parts: dict[str, Component] = {}
    for kind, job in found.members:
        if kind != _JOB or not isinstance(job, Controller):
            continue
        meta = pod_meta(job.spec.template.metadata, found.ref.namespace)
        name = place(meta, job.spec.template.spec, found).component
        pods = 0 if job.spec.suspend else _at_once(job.spec.parallelism, job.spec.completions)
        part = parts.get(name) or _part(found, name, job.spec.template)
        parts[name] = msgspec.structs.replace(part, desired=(part.desired or 0) + pods)
    return _reading([with_intended_zero(parts[name]) for name in sorted(parts)])


def _reading(parts: list[Component]) -> Reading:
    models = [part.model for part in parts if part.model.name]
    return Reading(components=tuple(parts), model=models[0] if models else Model())


def _component(found: Found, entry: dict[str, Any]) -> Component:
    job = table(entry, "template", "spec")
    pods = replicas(entry, "replicas") * _at_once(number(job, "parallelism"), number(job, "completions"))
    held = suspended(found.obj, "suspend") or ("stopped" if _is_over(found) else "")
    part = msgspec.structs.replace(_part(found, text(entry, "name"), _template(entry)), desired=0 if held else pods)
    return with_intended_zero(part, held)


def _part(found: Found, name: str, template: PodTemplate) -> Component:
    meta = pod_meta(template.metadata, found.ref.namespace)
    model = model_of_pod(meta, template.spec)
    role = _role(name, template.spec)
    return pod_component(name, role, [template.spec], model, namespace=found.ref.namespace, get=found.get)


def _at_once(parallelism: int | None, completions: int | None) -> int:
    """Pods that a Job has at a time; one that needs no more completions than that starts no more."""
    wanted = 1 if parallelism is None else max(0, parallelism)
    return wanted if completions is None else min(wanted, max(0, completions))


def _is_over(found: Found) -> bool:
    """Everything has run and ended well; a set that failed still wants its pods."""
    status = status_of(found.obj)
    said = (each for each in rows(status, "conditions") if each.get("type") == _COMPLETED)
    return text(status, "terminalState") == _COMPLETED or any(each.get("status") == "True" for each in said)


def _template(entry: dict[str, Any]) -> PodTemplate:
    return as_template(table(entry, "template", "spec").get("template"))


def _role(name: str, spec: PodSpec) -> str:
    engine = engine_of(spec)
    said = engine.role if isinstance(engine, Engine) else ""
    return said or role_in(name) or next((role for role in ("leader", "worker") if role in name.lower()), "engine")


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    name = meta.labels.get(ENTRY) or "engine"
    return Place(name, _role(name, spec))
