"""
Signatures of what passes through Kafka and lets something happen, so that writing to a topic is not enough for it.

    decisions   of any door, for the worker that has the cluster
    orders      of a worker, for the cluster's edge
    answers     of the edge, for the worker that gave the order
    ticks       of the edge, so that workers know its key before they order anything (`edge_keys`)

Workers have one key for all clusters; the edge of a cluster has a key made of it for that cluster alone.  Whoever takes
over an edge, or its credentials for Kafka, can then decide about no other cluster, and order nothing there.  Without a
key nothing is signed, and the topics are as trusted as those who may write to them.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from hashlib import sha256

from msgspec.structs import replace

from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet
from sevenhop.runtime.codec import Answered, Carried, Record, RecordError
from sevenhop.settings_scaled import RuntimeSettings

HEADER = "s"
"""Of a record: the signature over its value, HMAC-SHA256 in hex."""

SIGNED = (Decided, SwitchSet, BreakerReset, Silenced, Answered)
"""What people decide, and what an edge says of an order."""

_ORDER = b"sevenhop order\n"
"""Before what is signed of an order: no signature of a decision is one of an order, nor the other way round."""

Sign = Callable[[str, Record], Record]
"""(cluster, record) to the record as it is sent."""

SignOrder = Callable[[str, bytes], bytes]
"""(cluster, an order's bytes) to its signature; empty where there is no key."""


class UnsignedError(RecordError):
    """
    Attributes:
        event: What the record says, of which nobody knows who says it.
    """

    def __init__(self, text: str, event: Carried) -> None:
        super().__init__(text)
        self.event = event


def unsigned(_cluster: str, record: Record) -> Record:
    """Where there is no key."""
    return record


def not_signed(_cluster: str, _value: bytes) -> bytes:
    """Where there is no key."""
    return b""


def edge_key(key: str, cluster: str) -> str:
    """
    The key of a cluster's edge, made of that of the workers.

    >>> edge_key("a key of the workers", "prod-eu")
    '6fceffb1d6de109493b4e9efc587ac180d2809e9d5506586df7154394f94844b'
    """
    return _hmac(key, f"sevenhop edge {cluster}".encode())


def key_at_edge(runtime: RuntimeSettings, cluster: str) -> str:
    """The key of the edge of a cluster in this process, whose settings have that of the workers if it is one too."""
    key = runtime.decision_key.get_secret_value()
    return key if runtime.role == "edge" or not key else edge_key(key, cluster)


def why_unsigned(runtime: RuntimeSettings, *, approves: bool = False) -> str:
    """
    What is to be said once about a process without a key; empty if it has one.

    Args:
        approves: Whether anything is carried out here once people approve it.
    """
    if runtime.decision_key.get_secret_value():
        return ""
    if runtime.role == "edge":
        return (
            "runtime.decision_key is not set: this edge carries out what anybody writes into the topic of orders, as "
            "far as its role allows"
        )
    said = (
        "runtime.decision_key is not set: decisions, orders to the edges and their answers are not signed, so whoever "
        "may write to Kafka can forge them"
    )
    return f"{said}; and plans are carried out here once they are approved" if approves else said


def signing_as_worker(key: str) -> Sign:
    """With the key of the workers, for any cluster; an empty one signs nothing."""
    return (lambda cluster, record: _signed(edge_key(key, cluster), record)) if key else unsigned


def signing_as_edge(key: str) -> Sign:
    """With the key of one cluster's edge; an empty one signs nothing."""
    return (lambda _cluster, record: _signed(key, record)) if key else unsigned


def signing_orders(key: str) -> SignOrder:
    """With the key of the workers, for any cluster; an empty one signs nothing."""
    return (lambda cluster, value: _hmac(edge_key(key, cluster), _ORDER + value).encode()) if key else not_signed


def is_workers_order(key: str, value: bytes, signature: bytes) -> bool:
    """Whether a worker signed these bytes as an order for the cluster whose edge has this key."""
    return hmac.compare_digest(signature, _hmac(key, _ORDER + value).encode())


def signature_in(headers: Sequence[tuple[str, bytes]]) -> bytes:
    """Of a record; empty of one that nobody signed."""
    return next((content for name, content in headers if name == HEADER), None) or b""  # Kafka has empty headers


def is_signed_for(key: str, cluster: str, value: bytes | None, signature: bytes) -> bool:
    """
    Whether a door or the edge of a cluster signed this record.

    Args:
        key: Of the workers.
    """
    return hmac.compare_digest(signature, _hmac(edge_key(key, cluster), value or b"").encode())


def check_signature(
    key: str, cluster: str, event: Carried, value: bytes | None, headers: Sequence[tuple[str, bytes]]
) -> None:
    """
    Args:
        key: Of the workers; an empty one takes everything.
        cluster: Whose record it says it is.

    Raises:
        UnsignedError: It is a decision, or an answer, that nobody signed who may speak for this cluster.
    """
    if not key or not isinstance(event, SIGNED):
        return
    if not is_signed_for(key, cluster, value, signature_in(headers)):
        what = "an answer" if isinstance(event, Answered) else "a decision"
        raise UnsignedError(f"unsigned: {what} without the signature of a door, or the edge, of this cluster", event)


def _signed(key: str, record: Record) -> Record:
    return replace(record, headers=[*record.headers, (HEADER, _hmac(key, record.value or b"").encode())])


def _hmac(key: str, content: bytes) -> str:
    return hmac.new(key.encode(), content, sha256).hexdigest()
