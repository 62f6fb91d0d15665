"""Small builders of what a channel is asked to show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.effects import Line, Message, Notify, Role

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)

FIRST_BROKEN = "✔ gpu  ✔ discovery  ✖ scheduling 3/4  ✔ pod  ✔ model  ✔ service  ? gateway unknown (no_source)"

LINES = (
    Line(Role.FIRST_BROKEN, "First broken hop", FIRST_BROKEN),
    Line(Role.HIT, "Who is hit", "decode 3/4 ready (floor 4)"),
    Line(Role.WHY, "Why Pending", "needs 2 × H100 on one node; gpu-07 full, gpu-02 and gpu-05 one free each"),
    Line(Role.IF_NOTHING, "If you do nothing", "stays slow, no spare"),
    Line(Role.OWNER, "Owner", "@llm-serving"),
    Line(Role.COMMAND, "Look", "kubectl -n llm describe pod llama-70b-decode-7"),
    Line(Role.LINK, "Runbook", "https://runbooks.example.com/gpus?a=1&b=2"),
)


def message(**changes: Any) -> Message:
    """A firing message of the story that the demo tells, with changes."""
    return msgspec.structs.replace(
        Message(
            title="llama-70b/decode waits for 2 × H100",
            status="firing",
            severity=Severity.CRITICAL,
            cluster="prod-eu",
            since=NOON - timedelta(minutes=2),
            at=NOON,
            lines=LINES,
            labels={"inference_workload": "llama-70b", "inference_workload_component": "decode", "tier": "critical"},
            details=("12:00 first told", "node gpu-07: 8 of 8 bound"),
        ),
        **changes,
    )


def resolved(**changes: Any) -> Message:
    return message(**{"status": "resolved", "end_reason": "recovered", "at": NOON + timedelta(minutes=6), **changes})


def notify(revision: int = 1, *, key: str = "k1", episode: int = 1, **changes: Any) -> Notify:
    """Anew if it is the first revision, unless said otherwise."""
    given = {
        "id": f"{key}-{episode}/ops/{revision}",
        "incident": f"{key}-{episode}",
        "key": key,
        "episode": episode,
        "receiver": "ops",
        "revision": revision,
        "anew": revision == 1,
        "reason": "first_firing",
        "message": message(),
        "cause": "pool:NVIDIA-H100-80GB-HBM3",
        "family": "scheduling",
        "causes": ("component-short-of-gpus",),
        "opened_at": NOON - timedelta(minutes=2),
        **changes,
    }
    return Notify(**given)
