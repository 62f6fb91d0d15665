"""
One frozen tree of settings.  Every field says its unit, its default and why.

Order: defaults, ``--config sevenhop.yaml``, the environment (``SEVENHOP__SECTION__KEY``), the command line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from sevenhop.channels.console.settings import ConsoleSettings
from sevenhop.channels.pagerduty.settings import PagerDutySettings
from sevenhop.channels.slack.settings import SlackSettings
from sevenhop.channels.webhook.settings import WebhookSettings
from sevenhop.core.incidents.matchers import parse_matchers
from sevenhop.durations import Duration
from sevenhop.durations import parse_duration as parse_duration
from sevenhop.settings_places import Place, Places, problems_of
from sevenhop.settings_remediation import RemediationSettings
from sevenhop.settings_scaled import KafkaSettings, RedisSettings, RuntimeSettings, missing_for
from sevenhop.sources.dcgm.settings import DcgmSettings
from sevenhop.sources.gpu_push.settings import GpuPushSettings
from sevenhop.telemetry.settings import TelemetrySettings
from sevenhop.web.listen import parse_listen

if TYPE_CHECKING:
    from sevenhop.rulebook.yaml_nodes import Document

ENV_PREFIX = "SEVENHOP__"


class SettingsError(Exception):
    """The settings are wrong; `problems` has one line each: where, and what to write instead."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class KubernetesSettings(_Section):
    """Which cluster is watched, and how patiently."""

    kubeconfig: str = Field(
        "", description="Path of a kubeconfig; empty takes KUBECONFIG, ~/.kube/config, or the pod's own account."
    )
    context: str = Field("", description="Context in it; empty takes the current one.")
    silence_limit: Duration = Field(
        timedelta(seconds=90),
        description=(
            "A watch that shows neither line nor bookmark for so long is opened anew: the "
            "API server sends bookmarks every minute."
        ),
    )
    discovery_interval: Duration = Field(
        timedelta(seconds=60), description="How often the served kinds are looked up: a new CRD is picked up within it."
    )


def _tiers_by_priority() -> dict[Literal["critical", "standard"], int]:
    return {"critical": 1_000_000, "standard": 0}


class PolicySettings(_Section):
    """What objects themselves do not say; the annotations sevenhop.dev/tier and sevenhop.dev/owner win."""

    tiers: dict[str, Literal["critical", "standard", "batch"]] = Field(
        default_factory=dict, description="Shell pattern on the namespace to tier; the first that matches counts."
    )
    priority_classes: dict[str, Literal["critical", "standard", "batch"]] = Field(
        default_factory=dict, description="PriorityClass name to tier, tried after the namespaces."
    )
    default_tier: Literal["critical", "standard", "batch", ""] = Field(
        "",
        description=(
            "Tier of a workload that no annotation, namespace or PriorityClass name tells of; empty lets the value of "
            "its pods' priority decide."
        ),
    )
    priority_tiers: dict[Literal["critical", "standard"], int] = Field(
        default_factory=_tiers_by_priority,
        description=(
            "Tier to the least value of the pods' priority that stands for it; below all of them it is batch. A "
            "cluster without PriorityClasses has 0 everywhere: everything is standard there, not everything batch."
        ),
    )
    owners: dict[str, str] = Field(
        default_factory=dict, description="Shell pattern on the namespace to owner, for workloads that name none."
    )
    minimums: dict[str, int] = Field(
        default_factory=dict,
        description="Shell pattern on namespace/workload or namespace/workload/component to the least ready replicas.",
    )
    ignored_namespaces: list[str] = Field(
        default_factory=list, description="Shell patterns: what lives there counts as capacity and is no workload."
    )

    @field_validator("priority_tiers")
    @classmethod
    def _ascend(cls, tiers: dict[str, int]) -> dict[str, int]:
        if len(tiers) > 1 and tiers["critical"] <= tiers["standard"]:
            raise ValueError("critical must ask for a higher priority than standard, or nobody is standard")
        return tiers


class IncidentSettings(_Section):
    """When people are told."""

    group_wait: Duration = Field(
        timedelta(seconds=5), description="Wait before an incident's first message: symptoms come before causes."
    )
    repeat_interval: Duration = Field(
        timedelta(hours=4), description="A reminder while an incident stays open, as Alertmanager's default."
    )
    recall_wait: Duration = Field(
        timedelta(minutes=10),
        description=(
            "Where the state was lost, an incident that a channel still shows may stay unconfirmed for so long; then "
            "it is told as ended."
        ),
    )
    rehome_wait: Duration = Field(
        timedelta(seconds=30),
        description="Wait before the first message about symptoms whose cause has just ended: most end by themselves.",
    )
    reopen_within: Duration = Field(
        timedelta(minutes=5),
        description="What comes back so soon after it ended is the same episode: told in the same message.",
    )
    flap_window: Duration = Field(
        timedelta(hours=1), description="Openings of one incident are counted within it, to see whether it flaps."
    )
    flap_limit: int = Field(
        3,
        ge=1,
        description="More openings than this within flap_window are flapping: told by edits only, which wake nobody.",
    )
    flap_hold: Duration = Field(
        timedelta(minutes=10), description="What flapped and then stays open for so long is told aloud again."
    )
    maintenance_hides: Duration = Field(
        timedelta(minutes=30),
        description=(
            "A cordoned node folds what happens on it. What is critical and serves less than it must is told even so "
            "after this long."
        ),
    )
    link: str = Field("", description="Address of your runbooks; shown at the end of each message.")


class WebSettings(_Section):
    """The HTTP door: health, Slack's requests, decisions with a bearer token."""

    listen: str = Field(
        "", description="host:port to listen on, such as 127.0.0.1:8080; empty listens nowhere, which is the default."
    )
    tls_certificate: Path | None = Field(None, description="PEM file; renewed files are picked up within a minute.")
    tls_key: Path | None = Field(None, description="PEM file.")

    @model_validator(mode="after")
    def _is_whole(self) -> WebSettings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together")
        if self.listen:
            parse_listen(self.listen)
        return self


Receiver = Annotated[SlackSettings | PagerDutySettings | WebhookSettings | ConsoleSettings, Field(discriminator="type")]


def _console_only() -> dict[str, Receiver]:
    return {"console": ConsoleSettings(type="console")}


class RouteSettings(_Section):
    """Alertmanager's routing tree: the first child that matches takes the incident, `continue` goes on."""

    matchers: list[str] = Field(
        default_factory=list, description="Such as tier = critical, namespace =~ prod-.*; all must hold."
    )
    receiver: str = Field("", description="Name of a receiver; empty inherits.")
    go_on: bool = Field(False, alias="continue", description="Try the next sibling too.")
    routes: list[RouteSettings] = Field(default_factory=list, description="Children.")

    @field_validator("matchers")
    @classmethod
    def _are_matchers(cls, matchers: list[str]) -> list[str]:
        parse_matchers(matchers)
        return matchers


class Settings(_Section):
    """All settings of one process."""

    cluster: str = Field("", description="Name of the cluster in every message; empty takes the context's name.")
    state: Path = Field(
        Path("~/.local/state/sevenhop"), description="Folder for state and socket; one process at a time."
    )
    rules: list[Path] = Field(
        default_factory=list, description="Folders or files of rules; empty takes the shipped ones."
    )
    playbooks: list[Path] = Field(
        default_factory=list, description="Folders or files of playbooks; empty takes the shipped ones."
    )
    kubernetes: KubernetesSettings = Field(default_factory=KubernetesSettings)
    policy: PolicySettings = Field(default_factory=PolicySettings)
    incidents: IncidentSettings = Field(default_factory=IncidentSettings)
    web: WebSettings = Field(default_factory=WebSettings)
    gpu_push: GpuPushSettings = Field(default_factory=GpuPushSettings)
    dcgm: DcgmSettings = Field(default_factory=DcgmSettings)
    remediation: RemediationSettings = Field(default_factory=RemediationSettings)
    runtime: RuntimeSettings = Field(default_factory=RuntimeSettings)
    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    redis: RedisSettings = Field(default_factory=RedisSettings)
    telemetry: TelemetrySettings = Field(default_factory=lambda: TelemetrySettings())
    receivers: dict[str, Receiver] = Field(default_factory=_console_only, description="Name to receiver.")
    route: RouteSettings = Field(
        default_factory=lambda: RouteSettings.model_validate({"receiver": ""}),
        description="Root of the routing tree; without a receiver all receivers are told.",
    )


def load_settings(path: Path | None, environ: dict[str, str] | None = None, **overrides: Any) -> Settings:
    """
    Read the settings.

    Args:
        path: The YAML file, if any.
        environ: The environment; None takes the process's.
        overrides: Top-level fields from the command line; None is "not given".

    Raises:
        SettingsError: With all problems at once.
    """
    document = _read(path) if path is not None else None
    data: dict[str, Any] = dict(document.data or {}) if document is not None else {}
    variables: dict[Place, str] = {}
    for name, value in sorted((os.environ if environ is None else environ).items()):
        if name.startswith(ENV_PREFIX):
            keys = name.removeprefix(ENV_PREFIX).lower().split("__")
            variables[tuple(keys)] = name
            _put(data, keys, value)
    data |= {name: value for name, value in overrides.items() if value is not None}
    places = Places(path, document, variables)
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise SettingsError(problems_of(found, places, Settings)) from None
    problems = [f"{places.of(place)}: {said}" for place, said in _contradictions(settings)]
    if problems:
        raise SettingsError(problems)
    return settings.model_copy(update={"state": settings.state.expanduser()})


def _contradictions(settings: Settings) -> Iterator[tuple[Place, str]]:
    """What one section asks for and another does not give: (place, what to write)."""
    for line in missing_for(settings.runtime.role, settings.kafka, settings.redis, settings.runtime.lease):
        yield ("runtime", "role"), line
    if settings.gpu_push.accounts and not settings.web.listen:
        yield ("gpu_push", "accounts"), "gpu_push.accounts: nothing listens for the agents; set web.listen too"
    for place, name in _named(settings.route, ("route",)):
        if name not in settings.receivers:
            yield place, f"route: no receiver named {name!r}; there are {', '.join(sorted(settings.receivers))}"


def _read(path: Path) -> Document:
    from sevenhop.rulebook.yaml_nodes import read_document

    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise SettingsError([f"{path}: not UTF-8 text"]) from None
    document = read_document(str(path), text)
    problems = [problem for problem in document.problems if problem.code != "yaml-empty"]
    if problems:
        raise SettingsError([f"{each.path}:{max(1, each.line)}: {each.message}" for each in problems])
    if document.data is not None and not isinstance(document.data, dict):
        kind = type(document.data).__name__
        raise SettingsError([f"{path}:1: expected sections such as `receivers:`, got a {kind}"])
    return document


def _put(data: dict[str, Any], path: list[str], value: str) -> None:
    import yaml

    for key in path[:-1]:
        inner = data.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        data = inner
    # Lists and mappings are written as YAML; everything else is text and the model converts it.
    try:
        data[path[-1]] = yaml.safe_load(value) if value[:1] in ("[", "{") else value
    except yaml.YAMLError:
        name = ENV_PREFIX + "__".join(path).upper()
        raise SettingsError([f"environment {name}: expected a list or a mapping in YAML's short form"]) from None


def _named(route: RouteSettings, place: Place) -> Iterator[tuple[Place, str]]:
    """Receivers that a route and its children name, each with its place."""
    if route.receiver:
        yield (*place, "receiver"), route.receiver
    for number, child in enumerate(route.routes):
        yield from _named(child, (*place, "routes", number))
