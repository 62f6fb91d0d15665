"""Facts of one Service that leads to an inference workload."""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import FactSpec, FactType
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
