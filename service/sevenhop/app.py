"""
The composition root: what is built from what, top to bottom.

    settings → rulebook → engine (core) → store, channels → outbox → embedded runtime ← Kubernetes source
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from sevenhop.channels import build_channel
from sevenhop.core.engine import Engine
from sevenhop.core.facts.table import FACTS
from sevenhop.core.hops.failures_text import prepare
from sevenhop.core.incidents.matchers import parse_matchers
from sevenhop.core.incidents.routing import Route
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.inventory.policy import Policy
from sevenhop.core.inventory.workloads import Tier
from sevenhop.frameworks import FRAMEWORKS
from sevenhop.rulebook.load import Rulebook, load_rulebook
from sevenhop.rulebook.shipped import shipped_rules
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.embedded import Embedded
from sevenhop.runtime.outbox import Outbox
from sevenhop.settings import RouteSettings, Settings
from sevenhop.stores.sqlite import SqliteStore

log = logging.getLogger("sevenhop.app")


def build_rulebook(settings: Settings, paths: Iterable[Path] = ()) -> Rulebook:
    """The rules that hold: those of `paths`, else of the settings, else the shipped ones; with all their problems."""
    return load_rulebook(list(paths) or settings.rules or [shipped_rules()], FACTS)


def build_engine(settings: Settings, rulebook: Rulebook, cluster: str) -> Engine:
    """The core, empty."""
    return Engine(cluster, FRAMEWORKS, rulebook.rules, policy_of(settings), desk_of(settings))


def build_embedded(
    settings: Settings, engine: Engine, store: SqliteStore, clock: Clock, stream: TextIO | None = None
) -> Embedded:
    """
    The embedded runtime around an engine, which takes over what the store holds.

    Args:
        stream: Where the console writes; None is the standard output.

    Raises:
        StoreError: The state cannot be used.
    """
    prepare()
    if store.set_aside is not None:
        log.warning("the state was damaged: moved to %s, and began empty", store.set_aside)
    step = engine.load(store.rows(), clock())
    for problem in engine.problems:
        log.warning("state not understood, left out: %s", problem)
    store.commit(step.saves, step.effects, now=clock().timestamp())
    channels = {
        name: build_channel(receiver, clock=clock, stream=stream) for name, receiver in settings.receivers.items()
    }
    return Embedded(engine, store, Outbox(store, channels, clock), clock)


def policy_of(settings: Settings) -> Policy:
    """What the settings say of workloads."""
    policy = settings.policy
    return Policy(
        namespaces=tuple((pattern, Tier(tier)) for pattern, tier in policy.tiers.items()),
        priority_classes={name: Tier(tier) for name, tier in policy.priority_classes.items()},
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
        link=settings.incidents.link,
    )


def _route(route: RouteSettings) -> Route:
    return Route(
        matchers=parse_matchers(route.matchers),
        receiver=route.receiver,
        go_on=route.go_on,
        routes=tuple(_route(child) for child in route.routes),
    )
