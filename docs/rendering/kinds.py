"""docs/reference/kinds.md and cluster-role.yaml, rendered from the kinds that are watched."""

from __future__ import annotations

from collections.abc import Iterable

from docs.rendering.markdown import code, page, table
from sevenhop.core.objects.kinds import KINDS, Kind

VERBS = ("list", "watch")
"""All that is ever asked of the API server: what a kind has is listed, and then followed."""

_INTRO = """# Kinds that are watched, and the permissions for them

Rendered from `service/sevenhop/core/objects/kinds.py` by `make docs`; change the code, not this page.

A kind is watched only if the API server serves it: an absent CRD is normal, and one that appears later is picked up
without a restart. Of each kind the first version that is served is read. Verbs: `list` and `watch`, and no other.
[cluster-role.yaml](cluster-role.yaml) grants exactly this table. Secrets and ConfigMaps are not in it.

A kind that the API server refuses holds up nothing: what it would have told is *unknown (forbidden)*, `sevenhop doctor`
names it, and the rule `source-forbidden` says so. Without the kinds marked *needed* nothing can be said.
"""

_ROLE = """\
# Everything that Sevenhop may do in a cluster: read.  Rendered from service/sevenhop/core/objects/kinds.py
# by `make docs`; docs/reference/kinds.md says what each kind is read for.
#
#   kubectl apply -f docs/reference/cluster-role.yaml
#   kubectl create clusterrolebinding sevenhop --clusterrole=sevenhop-read --serviceaccount=NAMESPACE:NAME
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: sevenhop-read
rules:
"""


def render() -> str:
    """The page as Markdown."""
    rows = [
        [
            code(kind.kind),
            code(kind.group) if kind.group else "core",
            ", ".join(code(version) for version in kind.versions),
            code(kind.plural),
            kind.why + (" (needed)" if kind.essential else ""),
        ]
        for kind in KINDS.values()
    ]
    return page(_INTRO, table(["kind", "group", "versions", "resource", "read for"], rows))


def render_role(kinds: Iterable[Kind] = KINDS.values()) -> str:
    """The ClusterRole: one rule per API group."""
    groups: dict[str, set[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, set()).add(kind.plural)
    rules = []
    for group, resources in sorted(groups.items()):
        rules.append(f'  - apiGroups: ["{group}"]')
        rules.append(f"    resources: [{', '.join(sorted(resources))}]")
        rules.append(f"    verbs: [{', '.join(VERBS)}]")
    return _ROLE + "\n".join(rules) + "\n"
