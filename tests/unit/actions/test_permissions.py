"""What the actions ask of the API server is what their table says, and what the role grants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.rendering import actions as page
from sevenhop.actions import ACTIONS, permissions_of
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.action import ACTION_NAMES, Action, Scale, name_of
from sevenhop.core.remediation.permit import Purpose
from tests.unit.actions import scene
from tests.unit.actions.scene import SHAPES, act, cluster

ROLE = Path(page.__file__).parents[1] / "reference" / "cluster-role-remediation.yaml"
WAYS = {name: shape.make for name, shape in SHAPES.items()} | {"evict": scene.evict, "cordon": scene.cordon}
VERBS = {"GET": "get", "PATCH": "patch", "POST": "create"}

Granted = set[tuple[str, str, str]]


def test_each_action_has_its_row() -> None:
    """What a playbook may name is what the table describes."""
    assert tuple(ACTIONS) == ACTION_NAMES


def test_the_role_grants_what_is_declared_and_no_more() -> None:
    """A permission that nobody declared is as much a failure as a missing one."""
    role: dict[str, Any] = yaml.safe_load(ROLE.read_text("utf-8"))
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert granted == {(p.group, p.resource, verb) for p in page.permissions() for verb in p.verbs}
    assert not [line for line in granted if "*" in line or line[1] in ("secrets", "configmaps")]
    assert {verb for _, _, verb in granted} <= {"get", "list", "patch", "create"}


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_is_asked_that_is_not_declared(way: str) -> None:
    """Every request of every purpose is covered by the rows of the plan's own actions."""
    async with cluster() as c:
        actions = WAYS[way](c)
        for number, purpose in enumerate((Purpose.DRY_RUN, Purpose.APPLY, Purpose.READ_BACK, Purpose.RESTORE)):
            await c.deliver(act(*actions, purpose=purpose, number=number, lends=way in SHAPES))
        asked = {line for method, path in c.server.requests if (line := _line(method, path)) is not None}

    declared = {
        (p.group, p.resource, verb)
        for action in actions
        for p in ACTIONS[name_of(action)].permissions(_patched(actions))
        for verb in p.verbs
    }
    assert asked - declared == set()
    assert {verb for *_, verb in asked} - {"get", "list"}


def _patched(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    """As a framework's row would list them."""
    found = []
    for action in actions:
        if isinstance(action, Scale):
            also = [(ref.kind, "") for ref, _, _ in action.also]
            found += [(action.target.kind, action.subresource), (action.marked.kind, ""), *also]
    return found


def _line(method: str, path: str) -> tuple[str, str, str] | None:
    """(group, resource, verb) of a request; None for discovery, which everybody may ask for."""
    parts = path.partition("?")[0].strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if not rest:
        return None
    if rest[0] == "namespaces":
        rest = rest[2:]
    name = "/".join([rest[0], *rest[2:]])
    verb = "list" if method == "GET" and len(rest) == 1 else VERBS[method]
    return group, name, verb


def test_permissions_are_joined() -> None:
    """One line for one resource, whoever needs it."""
    lines = permissions_of([("Deployment.apps", "scale")])

    assert len({(line.group, line.resource) for line in lines}) == len(lines)
    assert [line.verbs for line in lines if line.resource == "pods"] == [("get", "patch")]
    assert {line.group for line in lines} <= {kind.group for kind in KINDS.values()} | {"events.k8s.io"}
