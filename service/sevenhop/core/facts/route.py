"""
Facts of one route: what clients of the gateway see.

All of them come from a gateway source (access logs, metrics, a probe); without one they are unknown, and rules on them
inert.
"""

from __future__ import annotations

from functools import partial

from sevenhop.core.facts.schema import Facts, FactSpec, FactType, Unknown, UnknownReason
from sevenhop.core.subject import SubjectKind

NO_ROUTE_SOURCE = Unknown(UnknownReason.NO_SOURCE, "route source")

_row = partial(FactSpec, subject=SubjectKind.ROUTE, source="gateway", unknown_when="no gateway source (no_source)")

SPECS: tuple[FactSpec, ...] = (
    _row(name="route.requests_5m", type=FactType.INT, unit="requests in 5 min", doc="Requests that ended."),
    _row(
        name="route.error_ratio_5m",
        type=FactType.DOUBLE,
        unit="ratio",
        doc="Failed requests, without client aborts and without 401, 403 and 429; 0.0 without requests.",
    ),
    _row(name="route.error_baseline", type=FactType.DOUBLE, unit="ratio", doc="The same ratio as it usually is."),
    _row(name="route.top_flag", type=FactType.STRING, doc="The most frequent Envoy response flag of failures."),
    _row(name="route.unauthorized_ratio_5m", type=FactType.DOUBLE, unit="ratio", doc="Requests answered 401 or 403."),
    _row(name="route.shed_ratio_5m", type=FactType.DOUBLE, unit="ratio", doc="Requests answered 429."),
    _row(
        name="route.retry_ratio_5m", type=FactType.DOUBLE, unit="ratio", doc="Attempts beyond the first, of requests."
    ),
    _row(name="route.ttft_p95_s", type=FactType.DOUBLE, unit="s", doc="Time to the first token, 95th percentile."),
    _row(name="route.timeout_s", type=FactType.DOUBLE, unit="s", doc="The route's timeout."),
    _row(name="route.resolves", type=FactType.BOOL, doc="Every backend that the route names exists."),
    _row(name="route.policy_allows", type=FactType.BOOL, doc="NetworkPolicies let the gateway reach the pods."),
    _row(name="route.probe", type=FactType.STRING, doc="ok, or the first hop that failed in our own request."),
    _row(name="route.cert_expiring", type=FactType.BOOL, doc="The certificate ends within its renewal time."),
)


def derive() -> Facts:
    """Every fact unknown, until a gateway source reports."""
    return {row.name: NO_ROUTE_SOURCE for row in SPECS}
