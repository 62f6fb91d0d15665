"""docs/reference/actions.md and cluster-role-remediation.yaml, rendered from the tables of actions and of scaling."""

from __future__ import annotations

from docs.rendering.markdown import code, page, table
from sevenhop.actions import ACTIONS, permissions_of
from sevenhop.actions.spec import Patched, Permission
from sevenhop.frameworks.scaling import SCALING

_INTRO = """# Actions: what may be done in a cluster

Rendered from `service/sevenhop/actions` by `make docs`; change the code, not this page.

Each step asks the guards at its moment. Every patch is a JSON patch that tests what was approved (the object's uid, the
values that were seen, the names of list entries), with `fieldManager=sevenhop` and `fieldValidation=Strict`: what looks
other than what a person agreed to is refused by the API server itself.

The order of a scale-down is *intent first*: the annotation `sevenhop.dev/borrowed` on the owner, then which pods go,
then the number, then what makes it last, then an Event on each object (`RemediationApplied`, `RemediationUndone`,
`RemediationRestored`). A crash in between is finished, or taken back, from what the cluster says. What is refused in
the middle is taken back: *refused* means that nothing was changed.
"""

_ROLE_INTRO = """## Permissions

[cluster-role-remediation.yaml](cluster-role-remediation.yaml) grants exactly this, beside
[cluster-role.yaml](cluster-role.yaml), which only reads. Without it plans are made and their dry runs refused, with the
line that is missing. `patch` on an object that is scaled through its subresource is for the annotation.
"""

_ROLE = """\
# What Sevenhop may change in a cluster, and only with an approved plan.  Rendered from service/sevenhop/actions and
# service/sevenhop/frameworks/scaling by `make docs`; docs/reference/actions.md says what each is for.
#
#   kubectl apply -f docs/reference/cluster-role-remediation.yaml
#   kubectl create clusterrolebinding sevenhop-remediation --clusterrole=sevenhop-remediation \\
#     --serviceaccount=NAMESPACE:NAME
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: sevenhop-remediation
rules:
"""


def render() -> str:
    """The page as Markdown."""
    rows = [[code(spec.name), spec.touches, spec.dry_run, spec.undo, spec.verify] for spec in ACTIONS.values()]
    needed = [
        [code(name), code(p.group) if p.group else "core", code(p.resource), ", ".join(code(verb) for verb in p.verbs)]
        for name, spec in ACTIONS.items()
        for p in spec.permissions(_patched())
    ]
    return page(
        _INTRO,
        table(["action", "touches", "dry run", "undo", "verified by"], rows),
        _ROLE_INTRO,
        table(["action", "group", "resource", "verbs"], needed),
    )


def render_role() -> str:
    """The ClusterRole: one rule per API group and set of verbs."""
    joined: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for needed in permissions_of(_patched()):
        joined.setdefault((needed.group, needed.verbs), []).append(needed.resource)
    rules = []
    for (group, verbs), resources in sorted(joined.items()):
        rules.append(f'  - apiGroups: ["{group}"]')
        rules.append(f"    resources: [{', '.join(sorted(resources))}]")
        rules.append(f"    verbs: [{', '.join(verbs)}]")
    return _ROLE + "\n".join(rules) + "\n"


def permissions() -> tuple[Permission, ...]:
    """All that is granted."""
    return permissions_of(_patched())


def permissions_by_action() -> dict[str, tuple[Permission, ...]]:
    """Action to what it needs."""
    return {name: spec.permissions(_patched()) for name, spec in ACTIONS.items()}


def _patched() -> list[Patched]:
    return sorted({patched for spec in SCALING.values() for patched in spec.patches})
