"""
Signatures of decisions, so that writing to the topic is not enough to decide.

Workers have one key for all clusters; the edge of a cluster has a key made of it for that cluster alone.  Whoever takes
over an edge, or its credentials for Kafka, can then decide about no other cluster.  Without a key nothing is signed,
and the topic is as trusted as those who may write to it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from hashlib import sha256

from msgspec.structs import replace

from sevenhop.core.events import BreakerReset, Decided, Silenced, SwitchSet
from sevenhop.runtime.codec import Carried, Record, RecordError

HEADER = "s"
"""Of a record: the signature over its value, HMAC-SHA256 in hex."""

SIGNED = (Decided, SwitchSet, BreakerReset, Silenced)
"""What people decide."""

Sign = Callable[[str, Record], Record]
"""(cluster, record) to the record as it is sent."""


def unsigned(_cluster: str, record: Record) -> Record:
    """Where there is no key."""
    return record


def edge_key(key: str, cluster: str) -> str:
    """
    The key of a cluster's edge, made of that of the workers.

    >>> edge_key("a key of the workers", "prod-eu")
    '6fceffb1d6de109493b4e9efc587ac180d2809e9d5506586df7154394f94844b'
    """
    return _hmac(key, f"sevenhop edge {cluster}".encode())


def signing_as_worker(key: str) -> Sign:
    """With the key of the workers, for any cluster; an empty one signs nothing."""
    return (lambda cluster, record: _signed(edge_key(key, cluster), record)) if key else unsigned


def signing_as_edge(key: str) -> Sign:
    """With the key of one cluster's edge; an empty one signs nothing."""
    return (lambda _cluster, record: _signed(key, record)) if key else unsigned


def check_signature(
    key: str, cluster: str, event: Carried, value: bytes | None, headers: Sequence[tuple[str, bytes]]
) -> None:
    """
    Args:
        key: Of the workers; an empty one takes everything.
        cluster: Whose record it says it is.

    Raises:
        RecordError: It is a decision that nobody signed who may decide about this cluster.
    """
    if not key or not isinstance(event, SIGNED):
        return
    given = next((content for name, content in headers if name == HEADER), None) or b""  # Kafka has empty headers
    if not hmac.compare_digest(given, _hmac(edge_key(key, cluster), value or b"").encode()):
        raise RecordError("unsigned: a decision without the signature of a door of this cluster")


def _signed(key: str, record: Record) -> Record:
    return replace(record, headers=[*record.headers, (HEADER, _hmac(key, record.value or b"").encode())])


def _hmac(key: str, content: bytes) -> str:
    return hmac.new(key.encode(), content, sha256).hexdigest()
