"""
Pods from bytes, and what a pod's last version said already is not read again.

Nearly all that is told of a pod is its status; the spec is half of its bytes, and stays the same once it has a node.
"""

from __future__ import annotations

import msgspec

from sevenhop.core.objects.base import Labels, Meta
from sevenhop.core.objects.decode import decode
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.objects.pod import Pod, PodSpec, PodStatus
from sevenhop.sources.kubernetes.sharing import Sharing
from sevenhop.sources.kubernetes.told import Key


class _Cover(msgspec.Struct, gc=False):
    """A pod whose spec is not read yet."""

    metadata: Meta
    spec: msgspec.Raw
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class _Last(msgspec.Struct, gc=False):
    """
    Of one pod.

    Attributes:
        digest: Of the spec's bytes: 64 bits, keyed by the process, and compared with those of the same pod only.
    """

    digest: int
    spec: PodSpec
    labels: Labels


_cover_decoder = msgspec.json.Decoder(_Cover)
_spec_decoder = msgspec.json.Decoder(PodSpec)
_POD = KINDS["Pod"]


class PodReader:
    """Mutable, owned by one source."""

    def __init__(self) -> None:
        self._last: dict[Key, _Last] = {}
        self._sharing = Sharing()

    def read(self, raw: bytes | msgspec.Raw) -> Pod:
        """
        One pod, its spec and labels those of its last version where they are the same.

        Raises:
            UndecodableError: As `decode`.
        """
        try:
            cover = _cover_decoder.decode(raw)
            meta, spec = cover.metadata, bytes(cover.spec)
            key = (meta.namespace, meta.name)
            digest = hash(spec)
            last = self._last.get(key)
            if last is not None and last.digest == digest:
                if last.labels == meta.labels:
                    meta.labels = last.labels
                return Pod(metadata=meta, spec=last.spec, status=cover.status)
            pod = Pod(metadata=meta, spec=_spec_decoder.decode(spec), status=cover.status)
        except (msgspec.DecodeError, RecursionError):
            pod = self._unusual(raw)
            self._sharing.share(pod)
            return pod
        self._sharing.share(pod)
        self._last[key] = _Last(digest, pod.spec, pod.metadata.labels)
        return pod

    def forget(self, key: Key) -> None:
        """It is gone."""
        self._last.pop(key, None)

    def _unusual(self, raw: bytes | msgspec.Raw) -> Pod:
        """One that the forgiving way may still read; where not, it knows what to say of it."""
        pod = decode(_POD, raw)
        assert isinstance(pod, Pod)  # what the kind is decoded to
        return pod
