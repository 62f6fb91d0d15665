"""Settings of the scaled runtime: where Kafka and Redis are, and what part this process plays."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from sevenhop.durations import Duration


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class RuntimeSettings(_Section):
    """What part this process plays (docs/operating/choose-a-runtime.md)."""

    role: Literal["embedded", "all", "edge", "worker"] = Field(
        "embedded",
        description=(
            "embedded: everything in one process, without Kafka. edge: watches one cluster and carries out what was "
            "approved there. worker: diagnoses and tells, for many clusters. all: edge and worker in one process."
        ),
    )
    clusters: list[str] = Field(
        default_factory=list,
        description="Clusters that a worker takes records of; of others they go to the dead letters. Empty takes all.",
    )
    edge_silence: Duration = Field(
        timedelta(seconds=15),
        description=(
            "A cluster whose edge says nothing for so long is not seen any more, and what is known of it is stale; an "
            "edge says something every second, and another takes over within 10 s."
        ),
    )
    no_progress: Duration = Field(
        timedelta(seconds=60),
        description="A worker that has records and stores nothing for so long ends itself, to be started again.",
    )
    buffered_events: int = Field(
        20_000,
        ge=100,
        description=(
            "Events that an edge holds while Kafka is away; then its watches wait, and what the API server no longer "
            "remembers is listed anew."
        ),
    )
    decision_key: SecretStr = Field(
        SecretStr(""),
        description=(
            "Signs what people decide, what workers order the edges to do, and what those answer, on its way through "
            "Kafka; better from the environment. On workers any long random text; on the edge of a cluster what "
            "`sevenhop edge-key CLUSTER` makes of it. Empty takes all of it unsigned: then whoever may write to the "
            "topics of signals or orders may decide in anybody's name, and have an edge do what its role allows."
        ),
    )
    lease: str = Field(
        "",
        description=(
            "namespace/name of the Lease by which the replicas of an edge, or two embedded ones on one Redis, choose "
            "who works; empty takes none, for a single replica."
        ),
    )

    @field_validator("decision_key")
    @classmethod
    def _is_without_line_end(cls, key: SecretStr) -> SecretStr:
        """A Secret that was made from a file ends as the file does, and what was copied from it does not."""
        return SecretStr(key.get_secret_value().strip())

    @field_validator("lease")
    @classmethod
    def _is_place(cls, lease: str) -> str:
        if lease and (lease.count("/") != 1 or not all(lease.split("/"))):
            raise ValueError("write it as namespace/name")
        return lease


class KafkaSettings(_Section):
    """The stream of the scaled runtime."""

    servers: list[str] = Field(default_factory=list, description="host:port of some brokers.")
    prefix: str = Field("sevenhop", min_length=1, description="Topics and the consumer group begin with it.")
    partitions: int = Field(
        24,
        ge=1,
        description=(
            "Of each topic. A cluster lies wholly in one, so more than clusters are of no use; with few per worker the "
            "last one gets none. Cannot be changed later: a cluster's partition is found by it."
        ),
    )
    replicas: int = Field(3, ge=1, description="Copies of each partition; a test broker has 1.")
    create_topics: bool = Field(True, description="Create topics that are missing; existing ones are only checked.")
    session_timeout: Duration = Field(
        timedelta(seconds=6), description="A worker that is not heard for so long is replaced; Kafka's least is 6 s."
    )
    security: Literal["plaintext", "tls"] = Field("plaintext", description="How the brokers are spoken to.")
    ca: Path | None = Field(None, description="PEM file of the authority; none takes the system's.")
    certificate: Path | None = Field(None, description="PEM file of a client certificate.")
    key: Path | None = Field(None, description="PEM file of its key.")
    sasl: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field("", description="Mechanism; empty for none.")
    user: str = Field("", description="For SASL.")
    password: SecretStr = Field(SecretStr(""), description="For SASL.")

    @field_validator("servers", mode="before")
    @classmethod
    def _from_text(cls, servers: object) -> object:
        return [part.strip() for part in servers.split(",") if part.strip()] if isinstance(servers, str) else servers

    @model_validator(mode="after")
    def _is_whole(self) -> KafkaSettings:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key go together")
        if self.sasl and not self.user:
            raise ValueError("sasl needs a user")
        return self


class RedisSettings(_Section):
    """Shared state: of the scaled runtime, and of two embedded replicas."""

    url: str = Field("", description="redis://host:6379/0, rediss:// with TLS; empty keeps state in the folder.")
    password: SecretStr = Field(SecretStr(""), description="Better here, from the environment, than in the url.")
    ca: Path | None = Field(None, description="PEM file of the authority; none takes the system's.")

    @field_validator("url")
    @classmethod
    def _is_redis(cls, url: str) -> str:
        if url and not url.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("expected redis://host:port/number, or rediss:// for TLS")
        try:
            _ = urlsplit(url).port
        except ValueError:  # its words may hold a part of a password
            raise ValueError(
                "expected redis://host:port/number; a password with / # @ or : belongs into redis.password"
            ) from None
        return url

    @model_validator(mode="after")
    def _is_whole(self) -> RedisSettings:
        if self.ca is not None and not self.url.startswith("rediss://"):
            raise ValueError("ca needs a url with rediss://: redis:// is without TLS")
        return self


def missing_for(role: str, kafka: KafkaSettings, redis: RedisSettings, lease: str) -> list[str]:
    """What a role needs and the settings do not say, a line each."""
    found = []
    if role != "embedded" and not kafka.servers:
        found.append(f"runtime.role {role} needs kafka.servers, such as [kafka-0.kafka:9092]")
    if role in ("all", "worker") and not redis.url:
        found.append(f"runtime.role {role} needs redis.url, such as redis://redis:6379/0")
    if role == "embedded" and lease and not redis.url:
        found.append("runtime.lease makes two replicas of the embedded runtime, which need redis.url for their state")
    return found
