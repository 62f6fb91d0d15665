"""Texts of Ray, of operators' conditions and of the hops service and gateway."""

from __future__ import annotations

from sevenhop.core.hops.failures_words import Words

WORDS: tuple[Words, ...] = (
    # Ray.  Source: ray's and KubeRay's log lines.
    Words(
        "ray-version-mismatch",
        (
            "version mismatch: the cluster was started",
            r"ray.{0,40}version.{0,40}(?:mismatch|does not match|differs)",
            r"python version.{0,40}(?:mismatch|does not match).{0,60}(?:head|cluster)",
        ),
    ),
    Words(
        "ray-address",
        ("unable to connect to gcs at",),
    ),
    Words(
        "ray-worker-not-registered",
        (
            "have not registered with (?:the )?gcs",
            "global_state_accessor",
            "failed to register (?:worker|with (?:the )?raylet)",
            r"raylet.{0,60}(?:not (?:been )?registered|failed to start|has died|terminated)",
            r"the node with node id.{0,80}(?:died|dead|marked)",
        ),
    ),
    Words(
        "ray-head-unreachable",
        (
            "waiting for gcs",
            "gcs (?:is )?(?:not available|unavailable)",
            "gcs to become available",
            "wait-gcs-ready",
            "failed to connect to gcs",
            r"\bray\w*error\b.{0,200}failed to connect to all addresses",
            r"ray_head.{0,40}(?:not|unreachable)",
            "could not find any running ray instance",
            "gcsunavailable",
            r"head (?:pod|node|service).{0,40}not (?:ready|running|found)",
        ),
    ),
    Words(
        "ray-capacity",
        (
            "actorunschedulable",
            "actor is not schedulable",
            "cannot provide a placement group",
            "waiting for creating a placement group",
            r"placement group.{0,60}(?:infeasible|cannot|pending|timed out|not be)",
            "cannot be scheduled right now",
            "ray does not allocate any gpus on the driver node",
            r"insufficient resources? (?:in|to).{0,20}(?:ray|cluster)",
            "no available node types can fulfill",
            r"autoscaler.{0,60}cannot fulfill",
        ),
    ),
    # Services and routes
    Words(
        "by-design-not-ready",
        (
            "without serve replica",
            "no serve (?:proxy )?replica",
        ),
    ),
    Words(
        "port-mismatch",
        (
            r"target ?port.{0,60}(?:vs|differs?|not|mismatch|instead)",
            "port mismatch",
        ),
    ),
    Words(
        "no-ready-endpoints",
        (
            r"conditions\.ready=false for all",
            "no ready endpoints?",
            r"all endpoints.{0,20}not ready",
            "noreadyendpoints",
            "minimumreplicasunavailable",
            "does not have minimum availability",
            "no healthy endpoints",
        ),
    ),
    Words(
        "no-endpoints",
        (
            "zeroserveendpoints",
            r"no (?:serve )?endpoints?\b",
            "endpoints? (?:is |are )?empty",
            r"number of serve endpoints.{0,20}0",
            "noendpoints",
        ),
    ),
    Words(
        "not-ready",
        (
            "readiness probe (?:failed|errored)",
            "http probe failed with statuscode",
        ),
    ),
    Words(
        "upstream-error",
        (
            "upstream connect error",
            "upstream request timeout",
            "no healthy upstream",
            "upstream (?:prematurely|timed out|reset)",
            r"\b50[234] (?:bad gateway|gateway time-?out)",
            r"ext[-_ ]?proc.{0,80}(?:fail|error|timeout|timed out|unavailable)",
        ),
    ),
    Words(
        "route-status",
        (
            r"(?:http|grpc|tls|tcp)route.{0,80}(?:status|accepted|not|ready|parent|invalid|false)",
            r"status\.parents",
            "nomatchingparent",
            "invalidextensionref",
            "httproutenotaccepted",
            "notallowedbylisteners",
            "nomatchinglistenerhostname",
            "backendnotfound",
            "refnotpermitted",
            "invalidkind",
            "resolvedrefs",
            "unsupportedvalue",
            r"gateway.{0,60}(?:not (?:ready|found|programmed|accepted))",
            "notreconciled",
            "ingressnotconfigured",
            "failed to (?:create|reconcile) (?:ingress|route|virtual ?service)",
            "addressnotassigned",
            "programmed ?[=:]? ?false",
            "ingress (?:is )?not created",
        ),
    ),
)
