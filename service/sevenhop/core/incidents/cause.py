"""Which object an incident is about."""

from __future__ import annotations

from collections.abc import Mapping

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.alerts.digest import is_digest
from sevenhop.core.alerts.rule import Rule
from sevenhop.core.subject import Subject, SubjectKind

OURSELVES = "self"
"""Family of rules about Sevenhop itself, which sit on no hop."""

MAINTENANCE = "maintenance"
"""Family of the incident that collects what happens on a node while people work on it."""


def family_of(rule: Rule) -> str:
    """
    What kind of trouble it is: two rules of one family about one object are one incident.

    The hop decides, so a component that is short of GPUs and a pool that no node is added to are one shortage.
    """
    return str(rule.hop) if rule.hop is not None else OURSELVES


def cause_of(rule: Rule, alert: Alert) -> Subject:
    """
    The object that the rule names, found by the alert's labels; the alert's own subject where labels do not say.

    A pod is never the object if its component is known: pods come back under new names, and the trouble is the same.
    """
    subject = alert.subject
    if is_digest(subject):
        return subject
    kind = rule.cause
    if kind is SubjectKind.POD and subject.kind is SubjectKind.POD:
        kind = SubjectKind.COMPONENT
    if kind is subject.kind:
        return subject
    return named(kind, alert.labels) or subject


def named(kind: SubjectKind, labels: Mapping[str, str]) -> Subject | None:
    """
    The object of this kind that the labels name; None if they do not.

    >>> str(named(SubjectKind.POOL, {"product": "NVIDIA-H100-80GB-HBM3"}))
    'pool:NVIDIA-H100-80GB-HBM3'
    """
    namespace, workload, component = (labels.get(name, "") for name in ("namespace", "workload", "component"))
    name = {
        SubjectKind.POOL: labels.get("product", ""),
        SubjectKind.NODE: labels.get("node", ""),
        SubjectKind.GPU: labels.get("gpu_uuid", ""),
        SubjectKind.POD: labels.get("pod", ""),
        SubjectKind.COMPONENT: f"{workload}/{component}" if workload and component else "",
        SubjectKind.WORKLOAD: workload,
        SubjectKind.SERVICE: labels.get("service", ""),
        SubjectKind.ROUTE: labels.get("route", ""),
        SubjectKind.SOURCE: "",
    }[kind]
    if not name:
        return None
    of_the_cluster = kind in (SubjectKind.POOL, SubjectKind.NODE, SubjectKind.GPU)
    return Subject(kind, "" if of_the_cluster else namespace, name)
