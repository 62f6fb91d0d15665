"""What a new edge does not see any more is told as gone, once and before its kind counts as known."""

from __future__ import annotations

from sevenhop.core.events import Deleted, SourceChanged, SyncState
from sevenhop.runtime.scaled.leftovers import Leftovers
from tests import builders as b


def names(events: list[object]) -> list[str]:
    return [f"{type(e).__name__} {getattr(e, 'name', '') or getattr(e, 'kind', '')}" for e in events]


def test_what_is_not_in_the_first_list_is_gone() -> None:
    """The deletion comes before the kind is told as known, and at its place in the order."""
    feed = b.Feed()
    left = Leftovers({"Pod": {("default", "a"), ("default", "gone")}, "Node": {("", "n")}})

    told = left.with_deletions(feed.applied(b.pod("a", namespace="default")))
    told += left.with_deletions(feed.synced("Pod"))

    assert names([*told]) == ["Applied Pod", "Deleted gone", "SourceChanged Pod"]
    gone, known = told[1], told[2]
    assert isinstance(gone, Deleted)
    assert isinstance(known, SourceChanged)
    assert (gone.epoch, gone.seq) == (known.epoch, known.seq)


def test_it_is_told_once() -> None:
    """The next list of the kind has nothing left over, and other kinds wait for their own."""
    feed = b.Feed()
    left = Leftovers({"Pod": {("default", "gone")}, "Node": {("", "n")}})
    left.with_deletions(feed.synced("Pod"))

    assert names([*left.with_deletions(feed.synced("Pod"))]) == ["SourceChanged Pod"]
    assert names([*left.with_deletions(feed.synced("Node"))]) == ["Deleted n", "SourceChanged Node"]


def test_a_list_that_failed_says_nothing_of_what_is_gone() -> None:
    """Forbidden is not empty."""
    feed = b.Feed()
    left = Leftovers({"Pod": {("default", "a")}})
    (told,) = left.with_deletions(feed.synced("Pod", state=SyncState.FORBIDDEN))
    assert isinstance(told, SourceChanged)


def test_a_kind_that_is_not_served_any_more_has_no_objects() -> None:
    """Absent means that there are none."""
    left = Leftovers({"Pod": {("default", "a")}})
    assert names([*left.with_deletions(b.Feed().synced("Pod", state=SyncState.ABSENT))])[0] == "Deleted a"
