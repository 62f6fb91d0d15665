"""What a source has told of one kind: the ground for diffs, synthesised deletions and silence about repeats."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.objects.base import Meta

Key = tuple[str, str]
"""(namespace, name)"""


class Told:
    """
    uid and resourceVersion of each object that was told and not taken back.

    A resourceVersion says *same or not*, never *older or newer*.
    """

    def __init__(self) -> None:
        self._versions: dict[Key, tuple[str, str]] = {}

    def __len__(self) -> int:
        return len(self._versions)

    def is_news(self, meta: Meta) -> bool:
        """Whether this state of the object was not told last; an object without resourceVersion always is."""
        told = self._versions.get((meta.namespace, meta.name))
        return told is None or not meta.resource_version or told != (meta.uid, meta.resource_version)

    def tell(self, meta: Meta) -> str:
        """Note that it was told; returns the uid of an earlier object of that name which nobody has taken back."""
        before = self._versions.get((meta.namespace, meta.name))
        self._versions[meta.namespace, meta.name] = (meta.uid, meta.resource_version)
        return before[0] if before is not None and before[0] != meta.uid else ""

    def take_back(self, key: Key) -> str | None:
        """Forget an object; its uid, or None if it was not told."""
        told = self._versions.pop(key, None)
        return None if told is None else told[0]

    def missing_from(self, listed: set[Key]) -> list[tuple[Key, str]]:
        """(key, uid) of what was told but is not in a complete list, in the order of telling."""
        return [(key, uid) for key, (uid, _) in self._versions.items() if key not in listed]

    def doubt_all(self) -> None:
        """Tell everything again when it is listed next: it will be read in another version of the API."""
        self._versions = {key: (uid, "") for key, (uid, _) in self._versions.items()}

    def keys(self) -> Iterable[Key]:
        return self._versions.keys()
