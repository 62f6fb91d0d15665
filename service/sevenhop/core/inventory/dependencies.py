"""Which workloads were read from an object that is not their own, such as a runtime."""

from __future__ import annotations

from sevenhop.core.inventory.framework import RootRef
from sevenhop.core.inventory.objects import Key

ObjectKey = tuple[str, Key]


class Dependencies:
    """Roots by what they were read from, and the other way round; also of objects that are not there yet."""

    def __init__(self) -> None:
        self._roots: dict[ObjectKey, set[RootRef]] = {}
        self._read: dict[RootRef, set[ObjectKey]] = {}

    def add(self, root: RootRef, read: ObjectKey) -> None:
        self._roots.setdefault(read, set()).add(root)
        self._read.setdefault(root, set()).add(read)

    def of(self, read: ObjectKey) -> set[RootRef]:
        """A copy of the roots that were read from this object."""
        return set(self._roots.get(read, ()))

    def forget(self, root: RootRef) -> None:
        """Before it is read anew, and when it is gone."""
        for read in self._read.pop(root, ()):
            roots = self._roots[read]
            roots.discard(root)
            if not roots:
                del self._roots[read]
