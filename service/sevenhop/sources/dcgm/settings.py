"""Settings of dcgm-exporter as a source."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sevenhop.durations import Duration


class DcgmSettings(BaseModel):
    """GPU samples from dcgm-exporter, where our own agent does not run.  Choose pages or prometheus."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    pages: list[str] = Field(
        default_factory=list,
        description="Addresses of metrics pages, one for each node, such as http://10.0.0.7:9400/metrics.",
    )
    prometheus: str = Field(
        "", description="Address of a Prometheus that scrapes all of them, such as http://prometheus.monitoring:9090."
    )
    matchers: str = Field(
        "", description='More label matchers for Prometheus, such as cluster="prod-eu", where it holds several.'
    )
    node_label: str = Field(
        "", description="Label that names the node; empty tries node, Hostname, kubernetes_node, nodename."
    )
    every: Duration = Field(timedelta(seconds=15), description="Between two looks; dcgm-exporter's own is 30 s.")

    @field_validator("pages", "prometheus")
    @classmethod
    def _addresses(cls, value: list[str] | str) -> list[str] | str:
        for text in value if isinstance(value, list) else [value] if value else []:
            try:
                parts = urlsplit(text)
                good = parts.scheme in {"http", "https"} and bool(parts.hostname)
            except ValueError:
                good = False
            if not good:
                raise ValueError("expected an address such as http://host:9400/metrics")
        return value

    @field_validator("every")
    @classmethod
    def _not_too_often(cls, every: timedelta) -> timedelta:
        if every < timedelta(seconds=1):
            raise ValueError("must be at least 1s")
        return every
