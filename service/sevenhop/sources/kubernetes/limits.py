"""How long the Kubernetes source waits, and how much it takes at once."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """
    Times in seconds, sizes in bytes or objects.

    Attributes:
        page_size: Objects per page of a list; the API server's own clients ask for 500.
        silence_s: A watch without a line or bookmark for this long is not trusted.  API servers send a bookmark
            about once a minute.
        stale_after_silences: Without any success for this many silences, what is known counts as stale.
        watch_s: Range of the life asked for each watch, jittered so that not all end together.
        list_silence_s: A list without a byte for this long has failed.
        connect_s: A connection that is not there by then has failed.
        discovery_s: How often the served kinds are asked for: a CRD that appears is seen within this time.
        backoff_base_s: Mean of twice the first pause after a failure; doubles up to `backoff_cap_s`.
        forbidden_retry_s: How often a refused kind is tried again: permissions may be granted at any time.
        slice_objects: Objects decoded before other tasks get their turn, 10 ms at the very most.
        slice_bytes: The same, counted in bytes.
    """

    page_size: int = 500
    silence_s: float = 90.0
    stale_after_silences: float = 2.0
    watch_s: tuple[float, float] = (240.0, 300.0)
    list_silence_s: float = 60.0
    connect_s: float = 10.0
    discovery_s: float = 60.0
    backoff_base_s: float = 0.5
    backoff_cap_s: float = 30.0
    forbidden_retry_s: float = 60.0
    slice_objects: int = 100
    slice_bytes: int = 512 * 1024
