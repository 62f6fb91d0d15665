"""Which Service leads to which pods: selectors, EndpointSlices, and the workload that a Service stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.base import Labels
from sevenhop.core.objects.cluster import EndpointSlice, Service

SERVICE_NAME = "kubernetes.io/service-name"
"""Label of an EndpointSlice that names its Service."""

_NONE: frozenset[Key] = frozenset()
_NO_SLICES: Mapping[Key, EndpointSlice] = {}


class ServiceIndex:
    """
    Kept current one object at a time.

    A pod is looked up by its labels among the Services of its namespace, never the other way round, so a pod event
    costs what the pod's labels cost.
    """

    def __init__(self) -> None:
        self.services: dict[Key, Service] = {}
        self._by_label: dict[tuple[str, str, str], set[Key]] = {}
        self._selects: dict[Key, set[Key]] = {}
        self._of_pod: dict[Key, frozenset[Key]] = {}
        self._labels: dict[str, dict[Key, Labels]] = {}
        self._slices: dict[Key, dict[Key, EndpointSlice]] = {}

    # What it answers

    def of_pod(self, pod: Key) -> frozenset[Key]:
        return self._of_pod.get(pod, _NONE)

    def selects(self, service: Key) -> Iterable[Key]:
        """Keys of the pods that a Service's selector matches, finished ones too."""
        return self._selects.get(service, _NONE)

    def ready_endpoints(self, service: Key) -> int:
        """Addresses that are ready; a condition that is not stated means ready."""
        return sum(
            len(endpoint.addresses) or 1
            for found in self._slices.get(service, _NO_SLICES).values()
            for endpoint in found.endpoints
            if endpoint.conditions.ready is not False
        )

    def ready_pods(self, service: Key) -> set[Key]:
        """Pods that its EndpointSlices list as ready."""
        return {
            (service[0], endpoint.target_ref.name)
            for found in self._slices.get(service, _NO_SLICES).values()
            for endpoint in found.endpoints
            if endpoint.conditions.ready is not False
            and endpoint.target_ref is not None
            and endpoint.target_ref.kind in ("", "Pod")
        }

    # What changes it

    def put_service(self, service: Service) -> None:
        key = service.metadata.key
        before = self.services.get(key)
        self.services[key] = service
        if before is not None and before.spec.selector == service.spec.selector:
            return
        if before is not None:
            self._unindex(before)
        if not service.spec.selector:
            return
        self._by_label.setdefault(_index_of(service), set()).add(key)
        for pod, labels in self._labels.get(key[0], {}).items():
            if _matches(service, labels):
                self._join(pod, key)

    def drop_service(self, key: Key) -> None:
        service = self.services.pop(key, None)
        if service is not None:
            self._unindex(service)

    def put_pod(self, pod: Key, labels: Labels) -> frozenset[Key]:
        """Returns the Services that selected it before or select it now, where that changed."""
        here = self._labels.setdefault(pod[0], {})
        known = here.get(pod)
        here[pod] = labels  # the newest object's own dictionary, so that the older object can be freed
        if known == labels:
            return _NONE
        before = self.of_pod(pod)
        after = frozenset(
            key
            for label, value in labels.items()
            for key in self._by_label.get((pod[0], label, value), _NONE)
            if _matches(self.services[key], labels)
        )
        for key in before - after:
            self._leave(pod, key)
        for key in after - before:
            self._join(pod, key)
        return before ^ after

    def drop_pod(self, pod: Key) -> frozenset[Key]:
        """Returns the Services that selected it."""
        before = self.of_pod(pod)
        for key in before:
            self._leave(pod, key)
        here = self._labels.get(pod[0], {})
        here.pop(pod, None)
        if not here:
            self._labels.pop(pod[0], None)
        return before

    def put_slice(self, before: EndpointSlice | None, after: EndpointSlice | None) -> Key | None:
        """Returns the Service that it belongs to; None if it names none."""
        service: Key | None = None
        if before is not None and (service := _service_of(before)) is not None:
            here = self._slices.get(service, {})
            here.pop(before.metadata.key, None)
            if not here:
                self._slices.pop(service, None)
        if after is not None and (service := _service_of(after)) is not None:
            self._slices.setdefault(service, {})[after.metadata.key] = after
        return service

    def _unindex(self, service: Service) -> None:
        key = service.metadata.key
        for pod in list(self._selects.get(key, ())):
            self._leave(pod, key)
        if service.spec.selector:
            slot = _index_of(service)
            self._by_label[slot].discard(key)
            if not self._by_label[slot]:
                del self._by_label[slot]

    def _join(self, pod: Key, service: Key) -> None:
        self._selects.setdefault(service, set()).add(pod)
        self._of_pod[pod] = self.of_pod(pod) | {service}

    def _leave(self, pod: Key, service: Key) -> None:
        self._selects.get(service, set()).discard(pod)
        if not self._selects.get(service):
            self._selects.pop(service, None)
        rest = self.of_pod(pod) - {service}
        if rest:
            self._of_pod[pod] = rest
        else:
            self._of_pod.pop(pod, None)


def _index_of(service: Service) -> tuple[str, str, str]:
    label, value = min(service.spec.selector.items())
    return (service.metadata.namespace, label, value)


def _matches(service: Service, labels: Labels) -> bool:
    return all(labels.get(label) == value for label, value in service.spec.selector.items())


def _service_of(found: EndpointSlice) -> Key | None:
    name = found.metadata.labels.get(SERVICE_NAME, "")
    return (found.metadata.namespace, name) if name else None
