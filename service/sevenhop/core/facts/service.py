"""Facts of one Service that leads to an inference workload."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.objects.cluster import Service
from sevenhop.core.objects.pod import Container, Pod
from sevenhop.core.subject import SubjectKind

_row = partial(FactSpec, subject=SubjectKind.SERVICE, unknown_when="services or pods cannot be seen")

SPECS: tuple[FactSpec, ...] = (
    _row(
        name="service.expects_pods",
        type=FactType.BOOL,
        doc="It has a selector, and its workload is meant to run.",
        source="Service, the workload's root",
    ),
    _row(
        name="service.selected",
        type=FactType.INT,
        unit="pods",
        doc="Pods that its selector matches and that have not finished.",
        source="Service, Pod",
        not_applicable=0,
    ),
    _row(
        name="service.ready_endpoints",
        type=FactType.INT,
        unit="endpoints",
        doc="Addresses that its EndpointSlices list as ready.",
        source="EndpointSlice",
        not_applicable=0,
        unknown_when="EndpointSlices cannot be seen",
    ),
    _row(
        name="service.starting",
        type=FactType.BOOL,
        doc=(
            "It has had no ready endpoint since its workload was last meant to run, and a pod of it is on its way: a "
            "first start, or one from zero."
        ),
        source="EndpointSlice, Pod",
        not_applicable=False,
        unknown_when="EndpointSlices or pods cannot be seen",
    ),
    _row(
        name="service.versions",
        type=FactType.INT,
        unit="versions",
        doc="Different model versions and images among the ready pods behind it.",
        source="Pod",
        not_applicable=0,
    ),
    _row(
        name="service.rolling",
        type=FactType.BOOL,
        doc="A component behind it is rolling out, or is a canary.",
        source="Pod",
        not_applicable=False,
    ),
    _row(
        name="service.port_ok",
        type=FactType.BOOL,
        doc="Every target port is one that its pods open.",
        source="Service, Pod",
        not_applicable=True,
        unknown_when="a numeric target port that the pods do not declare: only a request can tell (no_source)",
    ),
)

NOT_DECLARED = Unknown(UnknownReason.NO_SOURCE, "pods do not declare the target port; only a request can tell")


def derive(
    service: Service,
    pods: Sequence[Pod],
    *,
    meant_to_run: bool,
    ready_endpoints: int | Unknown,
    starting: bool | Unknown,
    versions: int,
    rolling: bool,
    pods_unknown: Unknown | None = None,
    root_unknown: Unknown | None = None,
) -> Facts:
    """
    Facts of one Service.

    Args:
        pods: That its selector matches and that have not finished.
        starting: Whether it is on the way to its first ready endpoint.
        meant_to_run: Whether a component of its workload wants a replica.
        versions: Among the ready ones.
    """
    return {
        "service.expects_pods": root_unknown or (bool(service.spec.selector) and meant_to_run),
        "service.selected": pods_unknown or len(pods),
        "service.ready_endpoints": ready_endpoints,
        "service.starting": pods_unknown or starting,
        "service.versions": pods_unknown or versions,
        "service.rolling": pods_unknown or rolling,
        "service.port_ok": pods_unknown or ports_fit(service, pods),
    }


def ports_fit(service: Service, pods: Sequence[Pod]) -> bool | Unknown:
    """
    Whether each target port is one that some pod opens.

    A name must be declared, or the endpoint has no port at all.  A number need not be: containers may listen on what
    they do not declare, so a number that none declares is unknown.
    """
    if not pods:
        return True
    names = {port.name for pod in pods for c in _containers(pod) for port in c.ports if port.name}
    numbers = {port.container_port for pod in pods for c in _containers(pod) for port in c.ports}
    targets = [port.target_port or port.port for port in service.spec.ports]
    if any(isinstance(target, str) and not target.isdecimal() and target not in names for target in targets):
        return False
    undeclared = any(int(target) not in numbers for target in targets if str(target).isdecimal())
    return NOT_DECLARED if undeclared and numbers else True


def _containers(pod: Pod) -> Sequence[Container]:
    return (*pod.spec.containers, *(c for c in pod.spec.init_containers if c.restart_policy == "Always"))
