"""One copy of what thousands of pods have in common."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod

_T = TypeVar("_T")
_MOST = 32_768
"""
Distinct values in a generation.  The largest cluster's templates have some twice ten thousand; a limit below what is in
use would forget at every turn what the next update asks for, and each pod would come to have its own copy.
"""

_encoder = msgspec.json.Encoder()


class Sharing:
    """
    Lets pods of one template share containers, labels and tolerations: objects are frozen by agreement.

    A pod of 8 KB then takes 6 KB of memory rather than 20, for about 2 µs.  The raw bytes would be cheaper to compare,
    but differ between replicas: each has its own ``kube-api-access-…`` volume mount.
    """

    def __init__(self) -> None:
        self._young: dict[bytes, object] = {}
        self._old: dict[bytes, object] = {}

    def share(self, obj: Object) -> None:
        """Replace parts of `obj` by equal ones seen earlier."""
        if isinstance(obj, Pod):
            spec, meta = obj.spec, obj.metadata
            spec.containers = self._one(b"c", spec.containers)
            if spec.init_containers:
                spec.init_containers = self._one(b"c", spec.init_containers)
            if spec.tolerations:
                spec.tolerations = self._one(b"t", spec.tolerations)
            if meta.labels:
                meta.labels = self._one(b"l", meta.labels)

    def _one(self, type_: bytes, value: _T) -> _T:
        key = type_ + _encoder.encode(value)
        known = self._young.get(key)
        if known is None:
            known = self._old.get(key, value)
            if len(self._young) >= _MOST:
                # What is still in use moves on to the next generation when it is asked for; the rest goes.
                self._old, self._young = self._young, {}
            self._young[key] = known
        return known  # type: ignore[return-value]  # equal bytes of one type are equal values
