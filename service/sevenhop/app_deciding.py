"""
The composition root of the scaled runtime's doors: where people decide, silence and ask, for many clusters.

    worker: local socket, Slack, HTTP → fleet front → signals → owner      edge: HTTP, reviewed there → signals
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import redis.asyncio as aioredis

from sevenhop.app import deciders_of, doors_to, reviewer, trail_of
from sevenhop.channels.door import Door, Handler
from sevenhop.core.remediation.playbook import Mode
from sevenhop.playbooks_of import build_playbooks, remediation_of
from sevenhop.runtime.clock import Clock
from sevenhop.runtime.deciding import Deciding
from sevenhop.runtime.scaled.decisions import Decisions, Replies
from sevenhop.runtime.scaled.directory import Directory
from sevenhop.runtime.scaled.edge_front import EdgeFront
from sevenhop.runtime.scaled.fleet import FleetDoor
from sevenhop.runtime.scaled.fleet_front import FleetFront
from sevenhop.runtime.scaled.hands import Refused
from sevenhop.runtime.scaled.kept_switch import KeptSwitches
from sevenhop.runtime.scaled.orders import Orders
from sevenhop.runtime.scaled.partition import Partition
from sevenhop.runtime.scaled.questions import Answering
from sevenhop.runtime.scaled.signing import key_at_edge, signing_as_edge, signing_as_worker, why_unsigned
from sevenhop.runtime.scaled.topics import Topics
from sevenhop.runtime.scaled.worker import Worker
from sevenhop.settings import Settings
from sevenhop.sources.kubernetes.api import ApiServer

INSTEAD = (
    "a worker has no API server to ask who you are; decide in Slack, at the cluster's edge (--server with its "
    "web.listen), or on the worker's own host without --kubeconfig; nothing was done"
)


class FleetDoors(msgspec.Struct, frozen=True):
    """
    Attributes:
        unsigned: What is to be said once where decisions and orders are not signed; empty where they are.
        local: At the socket in the state folder.
        doors: Of Slack apps and the like.
        posts: For the HTTP server, if there is one.
    """

    local: FleetDoor
    doors: list[Door]
    posts: Mapping[str, Handler]
    unsigned: str = ""


def build_fleet_doors(
    settings: Settings, worker: Worker, client: aioredis.Redis, orders: Orders, topics: Topics, clock: Clock
) -> FleetDoors:
    """What a worker listens at; its own cells answer from here on."""
    partitions = settings.kafka.partitions
    replies = Replies(client, orders.reply)
    directory = Directory(worker, client, partitions, clock, trail_of)

    sign = signing_as_worker(settings.runtime.decision_key.get_secret_value())
    switches = KeptSwitches(orders.put, topics, sign)

    def watch(partition: Partition) -> None:
        partition.observers.append(replies.observe)
        partition.watches.append(switches.watching(partition))
        partition.on_cell.append(lambda cell: directory.telling.begin(cell.cluster))

    worker.on_partition.append(watch)
    worker.reports.append(switches.report)
    front = FleetFront(directory, Decisions(orders.put, topics, client, sign))
    at_socket = Deciding(front, None, clock, takes_peers=True, via="terminal", instead=INSTEAD)
    over_http = Deciding(front, None, clock, takes_peers=False, via="http", instead=INSTEAD)
    remediation = remediation_of(settings, build_playbooks(settings))
    approves = any(playbook.mode is Mode.APPROVE for playbook in remediation.playbooks.values())
    said = why_unsigned(settings.runtime, approves=approves)
    worker.reports.append(lambda: {"unsigned": said})
    deciders = deciders_of(remediation)
    doors = doors_to(front, settings, deciders, clock)
    answering = Answering(client, lambda: _ready(worker), directory.answer, clock)
    local = FleetDoor(worker, directory, front, answering, clock, settings.state, at_socket.routes())
    posts: dict[str, Handler] = {}
    for door in doors:
        posts.update(door.routes())
    if settings.runtime.role == "worker":
        posts.update(over_http.routes())
    return FleetDoors(local, doors, posts, said)


def build_edge_front(
    settings: Settings, api: ApiServer, cluster: str, topics: Topics, clock: Clock, refused: Refused
) -> tuple[EdgeFront, Mapping[str, Handler]]:
    """What takes decisions at an edge, and its paths: a token is reviewed by the cluster's own API server."""
    key = key_at_edge(settings.runtime, cluster)
    front = EdgeFront(cluster, settings.kafka, topics, clock, signing_as_edge(key), key, refused)
    deciding = Deciding(front, reviewer(api, clock), clock, takes_peers=False, via="http")
    return front, deciding.routes()


def _ready(worker: Worker) -> list[int]:
    return [number for number, partition in sorted(worker.partitions.items()) if partition.is_ready]
