"""An outage of the service costs data, in a known order, and never memory."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from sevenhop.agent.buffer import Buffer, Sent
from sevenhop.core.events import GpusSampled, XidSeen
from sevenhop.core.gpu_sample import GpuReading

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def event(sort: str, seq: int) -> Sent:
    if sort == "xid":
        return XidSeen(at=AT, epoch=1, seq=seq, node="n", xid=79)
    reading = GpuReading(index=0, uuid="GPU-0", product="x" * 100)
    return GpusSampled(at=AT, epoch=1, seq=seq, node="n", is_whole=sort == "summary", readings=(reading,))


def test_the_oldest_summary_goes_first_and_xids_last() -> None:
    """A newer summary says more than an older one; nothing says an XID again."""
    buffer = Buffer(max_bytes=1500)
    for seq in range(60):
        buffer.add(event(("xid", "change", "summary")[seq % 3], seq))

    kept = buffer.next_batch(10**6)
    sorts = [type(each).__name__ for each in kept]
    assert buffer.size_bytes <= 1500
    assert sorts.count("XidSeen") + buffer.dropped["xid"] == 20
    assert buffer.dropped["summary"] == 20
    assert buffer.dropped["change"] == 20
    assert sorts == ["XidSeen"] * len(sorts)
    assert kept[-1].seq == 57  # the newest is among them


def test_the_newest_of_a_sort_stays() -> None:
    """What is dropped is old."""
    buffer = Buffer(max_bytes=1500)
    for seq in range(20):
        buffer.add(event("summary", seq))

    kept = [each.seq for each in buffer.next_batch(10**6)]
    assert 1 < len(kept) < 20
    assert kept == list(range(20 - len(kept), 20))
    assert buffer.dropped == {"summary": 20 - len(kept), "change": 0, "xid": 0}


def test_a_batch_is_in_order_and_bounded() -> None:
    """However the sorts mix, what was seen first is sent first."""
    buffer = Buffer()
    for seq, sort in enumerate(["summary", "xid", "change", "xid", "summary"]):
        buffer.add(event(sort, seq))

    assert [each.seq for each in buffer.next_batch(10**6)] == [0, 1, 2, 3, 4]
    assert [each.seq for each in buffer.next_batch(1)] == [0]


def test_what_came_during_a_call_stays() -> None:
    """Only what was sent is acknowledged, and what was dropped meanwhile does no harm."""
    buffer = Buffer(max_bytes=1200)
    buffer.add(event("summary", 1))
    batch = buffer.next_batch(10**6)
    for seq in range(2, 12):
        buffer.add(event("summary", seq))
    before = len(buffer)
    buffer.acknowledge(batch)

    assert len(buffer) == before
    buffer.acknowledge(buffer.next_batch(10**6))
    assert (len(buffer), buffer.size_bytes) == (0, 0)


@given(st.lists(st.sampled_from(["summary", "change", "xid"]), max_size=60), st.integers(1, 3000))
def test_nothing_is_lost_uncounted(sorts: list[str], limit: int) -> None:
    """Kept and dropped are all that was added, within the limit or a single one."""
    buffer = Buffer(max_bytes=limit)
    for seq, sort in enumerate(sorts):
        buffer.add(event(sort, seq))

    assert len(buffer) + sum(buffer.dropped.values()) == len(sorts)
    assert buffer.size_bytes <= limit or len(buffer) == 1
