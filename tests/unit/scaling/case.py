"""What one conflict's test says, and small changes to scenes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler
from tests.unit.frameworks import running
from tests.unit.frameworks.running import Manifest
from tests.unit.scaling import scenes
from tests.unit.scaling.world import World


class Case(NamedTuple):
    """`words` are names that the text has to say; a case with `reason` None must be free to go."""

    id: str
    make: Callable[[], World]
    component: str
    reason: ConflictReason | None
    words: tuple[str, ...] = ()


def touched(make: Callable[[], World], kind: str, name: str, **changes: Any) -> Callable[[], World]:
    """A scene with one object changed: ``labels``, ``annotations``, ``status``, ``spec``, ``metadata`` are merged."""

    def made() -> World:
        world = make()
        manifest = world.manifest(kind, name)
        for part, values in changes.items():
            where = manifest["metadata"] if part in ("labels", "annotations") else manifest
            where.setdefault(part, {}).update(values)
        world.read()
        return world

    return made


def beside(make: Callable[[], World], *more: Manifest) -> Callable[[], World]:
    return lambda: World([*make().manifests.values(), *more])


def ray() -> World:
    return scenes.world(running.ray_service)


def lws() -> World:
    return scenes.lws()


def stateful() -> World:
    return scenes.world(running.plain_stateful)


def true(kind: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"}]}


GRAPH = ("DynamoGraphDeployment", "llama-70b")
DEPLOYMENT = ("Deployment", "summarizer")
RAY = ("RayService", "chat")
SERVICE = ("InferenceService", "qwen")
OFF, ALLOW = {"sevenhop.dev/remediation": "off"}, {"sevenhop.dev/remediation": "allow"}


def check(case: Case) -> None:
    """
    Raises:
        AssertionError: It is not refused for its own reason, by name; or refused although nothing stands against it.
    """
    found = case.make().rule(case.component)
    if case.reason is None:
        assert isinstance(found, Ruler), found
        return
    assert isinstance(found, Conflict), found
    assert found.reason is case.reason, found
    assert [word for word in case.words if word not in found.text] == [], found.text
