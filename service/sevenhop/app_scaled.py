"""
The composition root of the scaled runtime; the parts of one cluster are built as in `app.py`.

    worker: settings → rulebook → parts → Faust, Kafka, Redis       edge: API server → Kubernetes source → Kafka
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TextIO

import redis.asyncio as aioredis

from sevenhop.actions.executor import ClusterExecutor
from sevenhop.app import build_engine
from sevenhop.channels import build_channel
from sevenhop.channels.door import Handler
from sevenhop.core.engine import Engine
from sevenhop.core.hops.failures_text import prepare
from sevenhop.rulebook.load import Rulebook
from sevenhop.runtime.acting import Acting
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.embedded import Source
from sevenhop.runtime.scaled.cell import Parts
from sevenhop.runtime.scaled.edge import Edge
from sevenhop.runtime.scaled.edge_keys import EdgeKeys
from sevenhop.runtime.scaled.hands import Hands, Refused
from sevenhop.runtime.scaled.orders import Orders
from sevenhop.runtime.scaled.quiet import quieten
from sevenhop.runtime.scaled.remote import Heard, RemoteTransport, Waiting
from sevenhop.runtime.scaled.signing import key_at_edge, signing_as_edge
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.runtime.writing import ApiTransport
from sevenhop.settings import Settings
from sevenhop.sources.gpu_push.receiver import GpuPush
from sevenhop.sources.kubernetes.api import ApiServer
from sevenhop.sources.kubernetes.limits import Limits
from sevenhop.sources.kubernetes.source import KubernetesSource
from sevenhop.stores.redis_fence import connect as connect_redis
from sevenhop.telemetry.meter import Meter
from sevenhop.web.server import WebServer


def build_worker(
    settings: Settings,
    rulebook: Callable[[], Rulebook],
    topics: Topics,
    client: aioredis.Redis,
    orders: Orders,
    clock: Clock,
    on_end: Callable[[str], None],
    stream: TextIO | None = None,
    meter: Meter | None = None,
) -> Worker:
    """
    Args:
        rulebook: The rules that hold when an engine is built.
        client: Of Redis (`redis_of`).
        orders: Started.
        on_end: Told why this process has to end.
        stream: Where the console writes; None is the standard output.
        meter: Counts what the guards refuse.
    """
    prepare()
    quieten()
    channels = {
        name: build_channel(receiver, clock=clock, stream=stream) for name, receiver in settings.receivers.items()
    }
    waiting = Waiting()
    keys = EdgeKeys(settings.runtime.decision_key.get_secret_value())

    def build_acting(cluster: str, engine: Engine, heard: Callable[[], Heard]) -> Acting:
        transport = RemoteTransport(
            cluster, orders.send, waiting, clock, heard, orders.write, lambda: keys.doubt(cluster)
        )
        permit = engine.permit if meter is None else meter.of(cluster).counting(engine.permit)
        return Acting(ClusterExecutor(transport, clock), permit, clock)

    parts = Parts(
        build_engine=lambda cluster: build_engine(settings, rulebook(), cluster),
        channels=channels,
        clock=clock,
        silence=settings.runtime.edge_silence,
        build_acting=build_acting,
    )
    return Worker(settings.kafka, settings.runtime, topics, parts, client, on_end, answers=waiting, keys=keys)


def redis_of(settings: Settings) -> aioredis.Redis:
    """The client that the settings ask for."""
    redis = settings.redis
    return connect_redis(redis.url, password=redis.password.get_secret_value(), ca=str(redis.ca or ""))


def build_edge(
    settings: Settings,
    topics: Topics,
    api: ApiServer,
    cluster: str,
    term: int,
    clock: Clock,
    refused: Refused = lambda _reason: None,
) -> tuple[Edge, list[Source]]:
    """
    The edge of one cluster for one term, and its sources: the API server's objects, and orders to carry out.

    Args:
        refused: Told of each order that is not carried out.
    """
    quieten()
    kafka = settings.kafka
    limits = Limits(
        silence_s=settings.kubernetes.silence_limit.total_seconds(),
        discovery_s=settings.kubernetes.discovery_interval.total_seconds(),
    )
    key = key_at_edge(settings.runtime, cluster)
    edge = Edge(
        cluster, term, kafka, topics, clock,
        buffered_events=settings.runtime.buffered_events, sign=signing_as_edge(key),
    )  # fmt: skip
    sources: list[Source] = [
        KubernetesSource(api, clock=clock, limits=limits),
        Hands(cluster, kafka, topics, ApiTransport(api), clock, key, refused),
    ]
    return edge, sources


def build_door(
    settings: Settings,
    push: GpuPush | None,
    ready: Callable[[], str],
    *,
    healthy: Callable[[], str] = lambda: "",
    gets: Mapping[str, Handler] | None = None,
    posts: Mapping[str, Handler] | None = None,
) -> WebServer | None:
    """
    Health of a part of the scaled runtime, where people decide, and where an edge's agents send their samples; None
    where nobody listens.

    Args:
        healthy, ready: Empty if all is well, else why not.
        gets, posts: Further paths, such as /metrics and /decide.
    """
    web = settings.web
    if not web.listen:
        return None
    return WebServer(
        web.listen,
        certificate=web.tls_certificate,
        key=web.tls_key,
        posts={**(posts or {}), **(push.routes() if push is not None else {})},
        gets=gets,
        healthy=healthy,
        ready=ready,
    )
