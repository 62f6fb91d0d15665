"""InferencePools: which pods each one selects."""

from __future__ import annotations

from sevenhop.core.inventory.objects import Key, Objects
from sevenhop.core.inventory.placements import Placements
from sevenhop.core.objects.base import Custom, Meta, Object

POOL_KINDS = ("InferencePool.inference.networking.k8s.io", "InferencePool.inference.networking.x-k8s.io")

ObjectKey = tuple[str, Key]


class ServingPools:
    """By namespace."""

    def __init__(self) -> None:
        self._pools: dict[str, dict[ObjectKey, Custom]] = {}

    def __len__(self) -> int:
        """Of namespaces that have any."""
        return len(self._pools)

    def put(self, kind: str, key: Key, pool: Object | None) -> None:
        """A pool as it is now, None for one that is gone."""
        here = self._pools.setdefault(key[0], {})
        if isinstance(pool, Custom):
            here[(kind, key)] = pool
        else:
            here.pop((kind, key), None)
        if not here:
            del self._pools[key[0]]

    def of(self, namespace: str) -> list[ObjectKey]:
        """In order."""
        return sorted(self._pools.get(namespace, {}))

    def selecting(self, namespace: str, meta: Meta) -> tuple[str, ...]:
        """Names of the pools that select pods with these labels, in order."""
        names = set()
        for (_, key), pool in self._pools.get(namespace, {}).items():
            wanted = _labels(pool)
            if wanted and all(meta.labels.get(k) == v for k, v in wanted.items()):
                names.add(key[1])
        return tuple(sorted(names))

    def is_in_use(self, kind: str, key: Key, objects: Objects, placements: Placements) -> bool:
        """Whether a pool selects pods of any workload; looks at all pods, so only when somebody asks."""
        pool = self._pools.get(key[0], {}).get((kind, key))
        if pool is None:
            return False
        wanted = _labels(pool).items()
        pods = objects.pods()
        members = (pods[pod] for pod in placements.members(key[0]) if pod in pods)
        return bool(wanted) and any(wanted <= pod.metadata.labels.items() for pod in members)


def _labels(pool: Custom) -> dict[str, str]:
    """``selector.matchLabels`` in v1, plain labels in v1alpha2."""
    selector = pool.spec.get("selector")
    if not isinstance(selector, dict):
        return {}
    labels = selector.get("matchLabels", {k: v for k, v in selector.items() if isinstance(v, str)})
    return {str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {}
