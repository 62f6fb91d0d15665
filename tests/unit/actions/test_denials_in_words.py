"""What the API server's refusals say to a person."""

from __future__ import annotations

from sevenhop.actions.transport import AnsweredError
from sevenhop.actions.words import explain
from sevenhop.core.remediation.action import ObjectRef

DENIED = "ValidatingAdmissionPolicy 'frozen' with binding 'frozen' denied request: replicas are frozen"


def test_a_policys_denial_is_said_once() -> None:
    """kube-apiserver 1.36 says it in the message and as its only cause (seen on the test bed)."""
    error = AnsweredError(422, "Invalid", f'deployments.apps "donor" is forbidden: {DENIED}', (DENIED,), None)
    said = str(explain(error, "patch", ObjectRef("Deployment.apps", "prod", "donor")))
    assert said.count(DENIED) == 1


def test_a_cause_that_says_more_is_told() -> None:
    """Which field is wrong stands in the causes alone."""
    error = AnsweredError(422, "Invalid", "is invalid", ("spec.replicas: must be positive",), None)
    assert "must be positive" in str(explain(error, "patch", ObjectRef("Deployment.apps", "prod", "donor")))
