"""Settings of how we are watched ourselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sevenhop.addresses import SecretUrl
from sevenhop.durations import Duration

LEAST_EVERY = timedelta(seconds=5)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class HeartbeatSettings(_Section):
    """The dead man's switch: somebody else is told that we live, and notices when that ends. On with an address."""

    type: Literal["webhook", "alertmanager"] = Field(
        "webhook",
        description=(
            "webhook posts a small JSON, as services that watch cron jobs take it; alertmanager keeps the alert "
            "`SevenhopAlive` firing (API v2), which ends by itself when we do."
        ),
    )
    url: SecretUrl | None = Field(
        None,
        description=(
            "Where to; of an Alertmanager its base, without /api/v2/alerts. May hold a token, so it is never shown."
        ),
    )
    also: list[SecretUrl] = Field(default_factory=list, description="Further replicas: each is told.")
    every: Duration = Field(
        timedelta(minutes=1),
        description="How often; whoever listens should wait for three of them. At least 5s.",
    )
    timeout: Duration = Field(timedelta(seconds=10), description="One call.")

    @model_validator(mode="after")
    def _is_whole(self) -> HeartbeatSettings:
        if self.also and self.url is None:
            raise ValueError("`also` are further addresses beside `url`")
        if self.every < LEAST_EVERY:
            raise ValueError("`every` is at least 5s")
        return self


class TelemetrySettings(_Section):
    """How Sevenhop is watched itself; metrics are served at web.listen, path /metrics."""

    metrics: bool = Field(
        True, description="Serve /metrics. It names workloads, models and nodes to whoever can reach web.listen."
    )
    pod_info_limit: int = Field(
        10_000,
        ge=0,
        description="Most series of sevenhop_pod_info, one per pod of a workload; the rest is counted. 0 serves none.",
    )
    traces: str = Field(
        "",
        description=(
            "Base address of an OTLP/HTTP receiver, such as http://localhost:4318; empty traces nothing. Needs the "
            "extra `otel`."
        ),
    )
    heartbeat: HeartbeatSettings = Field(default_factory=lambda: HeartbeatSettings())

    @model_validator(mode="after")
    def _traces_somewhere(self) -> TelemetrySettings:
        if self.traces and urlsplit(self.traces).scheme not in {"http", "https"}:
            raise ValueError("`traces` is an address such as http://localhost:4318")
        return self
