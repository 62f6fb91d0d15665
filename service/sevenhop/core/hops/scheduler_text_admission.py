"""Why a controller may not create a pod: texts of ``FailedCreate`` and of the conditions that repeat them."""

from __future__ import annotations

import re

from sevenhop.core.hops.scheduler_text_queues import Verdict

_EXCEEDED = re.compile(
    r"exceeded quota: (?P<quota>[\w.-]{1,253}), requested: (?P<requested>.{0,300}?), used: (?P<used>.{0,300}?),"
    r" limited: (?P<limited>[^\s,]{1,253}(?:,[^\s,]{1,253})*)",
    re.IGNORECASE,
)
_EXCEEDED_BARE = re.compile(r"exceeded quota\b|quota exceeded\b|exceeds? (?:the )?(?:\w+ )?quota", re.IGNORECASE)
_NEEDS_REQUESTS = re.compile(r"failed quota: (?P<quota>[\w.-]{1,253}): must specify (?P<what>[^\s]+)", re.IGNORECASE)
_QUOTA_STATUS = re.compile(r"status unknown for quota: (?P<quota>[\w.-]{1,253})", re.IGNORECASE)
_LIMIT_RANGE = re.compile(
    r"(?:maximum|minimum) (?P<resource>\S{1,253}) usage per (?:container|pod|persistentvolumeclaim) is \S{1,253}, but"
    r"|(?P<ratio>\S{1,253}) max limit to request ratio per"
    r"|must be less than or equal to (?P<limit>\S{1,253}) limit",
    re.IGNORECASE,
)
_POD_SECURITY = re.compile(
    r"violates podsecurity|forbidden by pod ?security|pod ?security ?polic|unable to validate against any"
    r" (?:pod security policy|security context constraint)|security ?context ?constraint",
    re.IGNORECASE,
)
_PRIORITY = re.compile(r"no priorityclass with name (?P<name>\S{1,253}) was found", re.IGNORECASE)
_SERVICE_ACCOUNT = re.compile(
    r"service ?account \"?(?P<name>[^\s\"]{1,253})\"? (?:was )?not found|looking up service account \S{1,253}",
    re.IGNORECASE,
)
_WEBHOOK = re.compile(
    r"admission webhook \"(?P<name>[^\"]{1,253})\" denied|failed calling webhook \"?(?P<failed>[^\"\s:]+)"
    r"|validatingadmissionpolicy '(?P<policy>[^']{1,253})'|denied the request",
    re.IGNORECASE,
)
_RUNTIME_CLASS = re.compile(r"runtimeclass(?:\.node\.k8s\.io)? \"?(?P<name>[^\s\"]{1,253})\"? not found", re.IGNORECASE)
_FORBIDDEN = re.compile(
    r"error creating: |is forbidden: |is invalid: |create pod .{0,300} failed error|failed to create pod(?! sandbox)"
    r"|unable to create pods?|pods? .{0,300} already exists",
    re.IGNORECASE,
)


def read_admission(text: str) -> Verdict | None:
    """Quota, LimitRange, Pod Security, webhooks and names that do not exist; a prefix of the controller is ignored."""
    needs = _NEEDS_REQUESTS.search(text)
    if needs:
        return "quota-needs-requests", f"Quota {needs['quota']} demands {needs['what']}, which the pod does not state"
    exceeded = _EXCEEDED.search(text)
    if exceeded:
        return "resource-quota", (
            f"Quota {exceeded['quota']} is used up: asks for {exceeded['requested']}, "
            f"used {exceeded['used']} of {exceeded['limited'].rstrip('.')}"
        )
    status = _QUOTA_STATUS.search(text)
    if status:
        return "resource-quota", f"Quota {status['quota']} has not been computed yet"
    # Not the autoscaler's: exceeded quota: "id", resources: …; nor a cloud's.
    if _EXCEEDED_BARE.search(text) and not re.search(
        r"exceeded quota:? \"|(?i:\bnode ?claim|load ?balancer)|quota '[A-Z0-9_-]+'", text
    ):
        return "resource-quota", "The namespace's quota is used up"
    limit = _LIMIT_RANGE.search(text)
    if limit:
        what = limit["resource"] or limit["ratio"] or limit["limit"]
        return "limit-range", f"{what} is outside what the namespace's limits allow"
    if _POD_SECURITY.search(text):
        return "pod-security", "The namespace's Pod Security level forbids the pod"
    priority = _PRIORITY.search(text)
    if priority:
        return "priority-class-missing", f"PriorityClass {priority['name']} does not exist"
    account = _SERVICE_ACCOUNT.search(text)
    if account:
        return "service-account-missing", f"Service account {account['name'] or ''} does not exist".replace("  ", " ")
    runtime = _RUNTIME_CLASS.search(text)
    if runtime:
        return "pod-rejected", f"RuntimeClass {runtime['name']} does not exist"
    webhook = _WEBHOOK.search(text)
    if webhook:
        name = webhook["name"] or webhook["failed"] or webhook["policy"]
        return "admission-denied", f"Admission{f' ({name})' if name else ''} refuses the pod"
    if _FORBIDDEN.search(text):
        return "pod-rejected", "The API server refuses the pod"
    return None
