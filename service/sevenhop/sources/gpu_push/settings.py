"""Settings of what takes GPU samples."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, field_validator


class GpuPushSettings(BaseModel):
    """Which agents may send GPU samples to web.listen; each may speak for the node that it runs on alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    accounts: list[str] = Field(
        default_factory=list,
        description=(
            "Service accounts of GPU agents, as namespace/name; none takes no samples, which is the default: any pod "
            "of a node could speak for it otherwise."
        ),
    )
    audience: str = Field(
        "",
        description=(
            "Audience that the agents' tokens must be made for, as in their projected volume; empty is the API "
            "server's own, which every pod's token has."
        ),
    )

    @field_validator("accounts")
    @classmethod
    def _named(cls, accounts: list[str]) -> list[str]:
        for account in accounts:
            namespace, slash, name = account.partition("/")
            if not (namespace and slash and name) or "/" in name or any(c.isspace() for c in account):
                raise ValueError("expected namespace/name of a service account, such as sevenhop/sevenhop-gpu-agent")
        return accounts
