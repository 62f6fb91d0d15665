"""
The composition root: what is built from what, top to bottom.

    settings → rulebook → engine (core) → store, channels → outbox → embedded runtime ← Kubernetes source
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sevenhop.channels import CHANNELS, build_channel
from sevenhop.channels.door import Door, Front, Handler
from sevenhop.core.engine import Engine
from sevenhop.core.events import Event
from sevenhop.core.facts.table import FACTS
from sevenhop.core.hops.failures_text import prepare
from sevenhop.core.incidents.matchers import parse_matchers
from sevenhop.core.incidents.routing import Route
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.workloads import Tier
from sevenhop.core.remediation.audit import verify_lines
from sevenhop.core.remediation.person import Person
from sevenhop.core.remediation.settings import RemediationSettings
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.frameworks.scaling import SCALING
from sevenhop.playbooks_of import build_playbooks, remediation_of
from sevenhop.rulebook.load import Rulebook, load_rulebook
from sevenhop.rulebook.shipped import shipped_rules
from sevenhop.runtime.acting import build_acting
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.deciding import Deciding, IdentityError, Review
from sevenhop.runtime.embedded import Embedded, Emit
from sevenhop.runtime.outbox import Outbox
from sevenhop.settings import RouteSettings, Settings
from sevenhop.sources.dcgm.source import Dcgm
from sevenhop.sources.gpu_push.receiver import GpuPush
from sevenhop.sources.kubernetes.api import ApiServer
from sevenhop.sources.kubernetes.identity import UnverifiedError, UserInfo, review_token, review_user
from sevenhop.stores.sqlite import SqliteStore
from sevenhop.web.server import WebServer

if TYPE_CHECKING:
    from sevenhop.stores.redis import RedisStore
    from sevenhop.telemetry.meter import Meter

log = logging.getLogger("sevenhop.app")


def build_rulebook(settings: Settings, paths: Iterable[Path] = ()) -> Rulebook:
    """The rules that hold: those of `paths`, else of the settings, else the shipped ones; with all their problems."""
    found = list(paths) or settings.rules or [shipped_rules()]
    return load_rulebook(found, FACTS, build_playbooks(settings).names)


def build_engine(settings: Settings, rulebook: Rulebook, cluster: str) -> Engine:
    """The core, empty."""
    remediation = remediation_of(settings, build_playbooks(settings))
    return Engine(cluster, FRAMEWORKS, rulebook.rules, policy_of(settings), desk_of(settings), remediation, SCALING)


def build_embedded(
    settings: Settings,
    engine: Engine,
    store: SqliteStore | RedisStore,
    clock: Clock,
    stream: TextIO | None = None,
    api: ApiServer | None = None,
    meter: Meter | None = None,
) -> Embedded:
    """
    The embedded runtime around an engine, which takes over what the store holds.

    Args:
        stream: Where the console writes; None is the standard output.
        api: Where approved plans are carried out; without it they wait.
        meter: Counts what the guards refuse.

    Raises:
        StoreError: The state cannot be used.
    """
    prepare()
    if store.set_aside is not None:
        log.warning("the state was damaged: moved to %s, and began empty", store.set_aside)
    step = engine.load(store.rows(), clock(), store.last_record())
    for problem in engine.problems:
        log.warning("state not understood, left out: %s", problem)
    store.commit(step.saves, step.effects, step.records, now=clock().timestamp())
    channels = {
        name: build_channel(receiver, clock=clock, stream=stream) for name, receiver in settings.receivers.items()
    }
    permit = engine.permit if meter is None else meter.counting(engine.permit)
    acting = None if api is None else build_acting(api, permit, clock)
    return Embedded(engine, store, Outbox(store, channels, clock, acting), clock)


def policy_of(settings: Settings) -> Policy:
    """What the settings say of workloads."""
    policy = settings.policy
    return Policy(
        namespaces=tuple((pattern, Tier(tier)) for pattern, tier in policy.tiers.items()),
        priority_classes={name: Tier(tier) for name, tier in policy.priority_classes.items()},
        default=Tier(policy.default_tier) if policy.default_tier else None,
        priority_tiers=tuple(
            sorted(((least, Tier(tier)) for tier, least in policy.priority_tiers.items()), key=lambda row: -row[0])
        ),
        owners=tuple(policy.owners.items()),
        minimums=tuple(policy.minimums.items()),
        ignored_namespaces=tuple(policy.ignored_namespaces),
    )


def desk_of(settings: Settings) -> DeskSettings:
    """What the settings say of incidents."""
    return DeskSettings(
        receivers=tuple(settings.receivers),
        route=_route(settings.route),
        group_wait=settings.incidents.group_wait,
        repeat_interval=settings.incidents.repeat_interval,
        recall_wait=settings.incidents.recall_wait,
        maintenance_hides=settings.incidents.maintenance_hides,
        rehome_wait=settings.incidents.rehome_wait,
        reopen_within=settings.incidents.reopen_within,
        flap_window=settings.incidents.flap_window,
        flap_limit=settings.incidents.flap_limit,
        flap_hold=settings.incidents.flap_hold,
        link=settings.incidents.link,
    )


def _route(route: RouteSettings) -> Route:
    return Route(
        matchers=parse_matchers(route.matchers),
        receiver=route.receiver,
        go_on=route.go_on,
        routes=tuple(_route(child) for child in route.routes),
    )


def build_doors(settings: Settings, engine: Engine, front: Front, clock: Clock) -> list[Door]:
    """What hears people's decisions, one for each app that several receivers may share."""
    return doors_to(front, settings, deciders_of(engine.remediation.settings), clock)


def doors_to(front: Front, settings: Settings, deciders: list[str], clock: Clock) -> list[Door]:
    """The same, for whatever stands behind the front."""
    doors: dict[str, Door] = {}
    for receiver in settings.receivers.values():
        spec = CHANNELS[receiver.type]
        key = spec.door_key(receiver) if spec.door is not None else ""
        if spec.door is not None and key and key not in doors:
            doors[key] = spec.door(receiver, front, deciders, clock)
    return list(doors.values())


def deciders_of(remediation: RemediationSettings) -> list[str]:
    """Ids and groups that any playbook allows."""
    playbooks = remediation.playbooks.values()
    return sorted({person for playbook in playbooks for person in playbook.approvers})


def build_web(
    settings: Settings,
    front: Front,
    review: Review,
    clock: Clock,
    doors: Iterable[Door],
    ready: Callable[[], str],
    *,
    healthy: Callable[[], str] = lambda: "",
    gets: Mapping[str, Handler] | None = None,
    push: GpuPush | None = None,
) -> WebServer | None:
    """
    The HTTP door, if the settings want one.

    Args:
        healthy, ready: Empty if all is well, else why not.
        gets: Further paths, such as /metrics.
        push: Takes GPU samples.
    """
    web = settings.web
    if not web.listen:
        return None
    posts = dict(Deciding(front, review, clock, takes_peers=False, via="http").routes())
    for door in doors:
        posts.update(door.routes())
    posts.update(push.routes() if push is not None else {})
    return WebServer(
        web.listen,
        certificate=web.tls_certificate,
        key=web.tls_key,
        posts=posts,
        gets=gets,
        healthy=healthy,
        ready=ready,
    )


def build_gpu_push(
    settings: Settings, api: ApiServer, emit: Emit, clock: Clock, observe: Callable[[Event, None], None] | None = None
) -> GpuPush | None:
    """What takes the GPU agents' samples, if the settings name any."""
    push = settings.gpu_push
    if not push.accounts:
        return None

    async def review(token: str) -> UserInfo:
        return await review_user(api, token, push.audience)

    return GpuPush(push, review, emit, clock, observe=observe)


def build_dcgm(settings: Settings, clock: Clock, observe: Callable[[Event, None], None] | None = None) -> list[Dcgm]:
    """dcgm-exporter as a source, if the settings name it."""
    is_on = settings.dcgm.pages or settings.dcgm.prometheus
    return [Dcgm(settings.dcgm, clock, observe=observe)] if is_on else []


def reviewer(api: ApiServer, clock: Clock) -> Review:
    """Says whom a bearer token stands for, by the word of the watched cluster's API server."""

    async def review(token: str) -> Person:
        try:
            return await review_token(api, token, clock())
        except UnverifiedError as error:
            raise IdentityError(str(error)) from None

    return review


def trail_of(store: SqliteStore | RedisStore) -> dict[str, Any]:
    """The audit trail and what is wrong with it, as the local socket shows it."""
    problems = verify_lines(store.audit_lines(), store.audit_head())
    return {
        "records": [line.decode("utf-8", "replace") for line in store.audit_lines()],
        "problems": [{"number": each.number, "kind": each.kind, "text": each.text} for each in problems],
    }
