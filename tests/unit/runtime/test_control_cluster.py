"""Whoever names another cluster than the one that is watched is told so, whatever they ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event, SwitchSet
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.remediation.person import Person
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.control import Control
from sevenhop.runtime.front import ServiceFront

SILENCE = {"matchers": ["workload=x"], "author": "ann", "comment": "", "expires_at": "2099-01-01T00:00:00Z"}


class Service:
    """A service of `prod`, and what reached its core."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.emitted: list[Event] = []
        self.engine = Engine("prod", (), (), Policy(), DeskSettings(receivers=("slack",)))
        trail: dict[str, Any] = {"records": [], "problems": []}
        self.control = Control(self.engine, self.emit, Clock(), dict, audit=lambda: trail)

    async def emit(self, events: list[Event]) -> None:
        self.emitted += events

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        return await asyncio.to_thread(ask_service, self.folder, method, path, body, query=query)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    made = Service(tmp_path)
    await made.control.start(tmp_path)
    yield made
    await made.control.close()


QUESTIONS: dict[str, tuple[str, str, Any]] = {
    "get": ("GET", "/get/workloads", None),
    "explain": ("GET", "/explain", None),
    "describe": ("GET", "/plan/7f3a", None),
    "audit": ("GET", "/audit", None),
    "expire": ("POST", "/silence/1/expire", None),
}


@pytest.mark.parametrize(("method", "path", "body"), QUESTIONS.values(), ids=QUESTIONS)
async def test_questions_about_another_cluster(service: Service, method: str, path: str, body: Any) -> None:
    """One line names what is watched here."""
    with pytest.raises(UsageError, match=r"^this service watches prod, not lab$"):
        await service.ask(method, path, body, cluster="lab")


async def test_a_silence_for_another_cluster(service: Service) -> None:
    """It is refused; for this one, named or not, it is in force."""
    with pytest.raises(UsageError, match="this service watches prod"):
        await service.ask("POST", "/silence", {**SILENCE, "cluster": "lab"})
    assert service.emitted == []
    await service.ask("POST", "/silence", {**SILENCE, "cluster": "prod"})
    await service.ask("POST", "/silence", SILENCE)
    assert len(service.emitted) == 2


async def test_its_own_name_changes_nothing(service: Service) -> None:
    """The same answer as without one."""
    assert await service.ask("GET", "/get/workloads", cluster="prod") == await service.ask("GET", "/get/workloads")
    assert await service.ask("GET", "/audit", cluster="prod") == {"records": [], "problems": []}


async def test_a_decision_about_another_cluster(service: Service) -> None:
    """Nothing reaches the core."""
    asked = SwitchSet(at=Clock()(), request_id="r1", person=Person(id="unix:ann"), is_on=True)
    front = ServiceFront(service.engine, None)  # type: ignore[arg-type]  # it would fail if it were asked
    reply = await front.ask(asked, cluster="lab")
    assert (reply.accepted, reply.text) == (False, "this service watches prod, not lab; nothing was done")


async def test_a_silence_whose_end_has_no_zone(service: Service) -> None:
    """It could not be compared with the time, and whoever tried would end."""
    with pytest.raises(UsageError, match="expires_at"):
        await service.ask("POST", "/silence", {**SILENCE, "expires_at": "2026-11-30T03:00:00"})
    assert service.emitted == []
