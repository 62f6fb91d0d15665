"""Texts of Ray, of operators' conditions and of the hops service and gateway."""

from __future__ import annotations

WORDS: tuple[tuple[str, str], ...] = (
    # Ray.  Source: ray's and KubeRay's log lines.
    ("ray-version-mismatch", r"version mismatch: the cluster was started|ray[^\n]{0,40}version[^\n]{0,40}(?:mismatch|does not match|differs)|python version[^\n]{0,40}(?:mismatch|does not match)[^\n]{0,60}(?:head|cluster)"),
    ("ray-address", r"unable to connect to gcs at"),
    ("ray-worker-not-registered", r"have not registered with (?:the )?gcs|global_state_accessor|failed to register (?:worker|with (?:the )?raylet)|raylet[^\n]{0,60}(?:not (?:been )?registered|failed to start|has died|terminated)|the node with node id[^\n]{0,80}(?:died|dead|marked)"),
    ("ray-head-unreachable", r"waiting for gcs|gcs (?:is )?(?:not available|unavailable)|gcs to become available|wait-gcs-ready|failed to connect to gcs|ray_head[^\n]{0,40}(?:not|unreachable)|could not find any running ray instance|gcsunavailable|head (?:pod|node|service)[^\n]{0,40}not (?:ready|running|found)"),
    ("ray-capacity", r"cannot provide a placement group|waiting for creating a placement group|placement group[^\n]{0,60}(?:infeasible|cannot|pending|timed out|not be)|cannot be scheduled right now|insufficient resources? (?:in|to)[^\n]{0,20}(?:ray|cluster)|no available node types can fulfill|autoscaler[^\n]{0,60}cannot fulfill"),
    # Services and routes
    ("by-design-not-ready", r"without serve replica|no serve (?:proxy )?replica"),
    ("port-mismatch", r"target ?port[^\n]{0,60}(?:vs|differs?|not|mismatch|instead)|port mismatch"),
    ("no-ready-endpoints", r"conditions\.ready=false for all|no ready endpoints?|all endpoints[^\n]{0,20}not ready|noreadyendpoints|minimumreplicasunavailable|does not have minimum availability|no healthy (?:upstream|endpoints)"),
    ("no-endpoints", r"zeroserveendpoints|no (?:serve )?endpoints?\b|endpoints? (?:is |are )?empty|number of serve endpoints[^\n]{0,20}0|noendpoints"),
    ("not-ready", r"readiness probe (?:failed|errored)|http probe failed with statuscode"),
    (
        "route-status",
        r"(?:http|grpc|tls|tcp)route[^\n]{0,80}(?:status|accepted|not|ready|parent|invalid|false)|status\.parents|nomatchingparent|notallowedbylisteners|nomatchinglistenerhostname|backendnotfound|refnotpermitted|invalidkind|resolvedrefs|unsupportedvalue|gateway[^\n]{0,60}(?:not (?:ready|found|programmed|accepted))|notreconciled|ingressnotconfigured|failed to (?:create|reconcile) (?:ingress|route|virtual ?service)",
    ),
)  # fmt: skip
"""(cause, words)"""
