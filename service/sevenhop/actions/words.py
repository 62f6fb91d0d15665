"""What an API server's refusal means, in one line that says what would help."""

from __future__ import annotations

import re

from sevenhop.actions.errors import (
    ActError,
    ChangedError,
    GoneError,
    RefusedError,
    RetryableActError,
    UncertainActError,
)
from sevenhop.actions.transport import AnsweredError
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.action import ObjectRef

LONGEST = 300
"""Characters of a text that somebody else wrote."""

# Texts of Kubernetes 1.36: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go (both),
# .../policy/validating/plugin.go, and .../webhook/mutating/dispatcher.go (`failed calling webhook`).
_ADMISSION = ("denied the request", "denied request", "admission webhook")
_WEBHOOK_BROKEN = "failed calling webhook"
# pkg/registry/core/pod/storage/eviction.go
_BUDGET = "disruption budget"


def cut(text: str, longest: int = LONGEST) -> str:
    """
    Somebody else's text on one line: no control characters, and not longer than it helps.

    >>> cut("denied:\\n  too \\x1b[31mmany", 14)
    'denied: too [3…'
    """
    line = " ".join("".join(c if c.isprintable() else " " if c.isspace() else "" for c in text).split())
    return line if len(line) <= longest else line[:longest] + "…"


def explain(error: AnsweredError, verb: str, ref: ObjectRef, subresource: str = "") -> ActError:
    """
    What an answer means for the step.

    Args:
        verb: The verb as RBAC names it: get, patch, create.
        subresource: ``scale``, ``eviction``, or empty.
    """
    # A policy's denial stands in the message, and once more as its cause.
    more = [cause for cause in error.causes if cause not in error.message]
    said = cut("; ".join([error.message, *more]) if more else error.message) or str(error)
    if error.status == 403:
        return _forbidden(said, verb, ref, subresource)
    if error.status in (404, 410):
        return GoneError(f"{ref} is gone")
    if error.status in (409, 422):
        return ChangedError(f"the API server refuses to {verb} {ref}: {said}")
    if error.status == 429:
        if _BUDGET in said:
            return RefusedError(f"a PodDisruptionBudget keeps {ref}: {said}")
        return RetryableActError("the API server throttles us (429)", error.retry_after_s)
    if error.status == 503 and error.retry_after_s is not None:
        return RetryableActError(f"the API server is not available (503): {said}", error.retry_after_s)
    if error.status == 401:
        return RetryableActError("the API server does not take our credentials (401); log in again")
    if error.status >= 500:
        if _WEBHOOK_BROKEN in said:
            return RetryableActError(f"an admission webhook does not answer, so nothing was changed: {said}")
        if verb == "create" and _BUDGET.replace(" ", "") in said.replace(" ", "").lower():
            return RefusedError(f"the API server cannot evict {ref}: {said}")  # more than one budget selects the pod
        return UncertainActError(f"the API server failed ({error.status}): {said}")
    return RefusedError(f"the API server refuses to {verb} {ref} ({error.status}): {said}")


def _forbidden(said: str, verb: str, ref: ObjectRef, subresource: str) -> RefusedError:
    if any(text in said for text in _ADMISSION):
        return RefusedError(f"admission refuses to {verb} {ref}: {said}")
    if "forbidden: User" not in said and said and "cannot" not in said:
        return RefusedError(f"the API server refuses to {verb} {ref} (403): {said}")
    kind = KINDS[ref.kind]
    resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
    where = f" in namespace {ref.namespace}" if ref.namespace else ""
    # Some kinds are served in two groups; the server says which one was asked.
    asked = re.search(r'in API group "([^"]*)"', said)
    group = asked[1] if asked is not None else kind.group
    return RefusedError(
        f"Sevenhop may not {verb} {resource}{where} (403); add to its role: "
        f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'
    )


def changed(pointer: str, expected: object, found: object) -> str:
    """
    >>> changed("/spec/replicas", 4, 3)
    'changed meanwhile: expected replicas 4, found 3'
    """
    name = pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    return f"changed meanwhile: expected {name} {_shown(expected)}, found {_shown(found)}"


def _shown(value: object) -> str:
    return "nothing" if value is None else cut(str(value), 60)
