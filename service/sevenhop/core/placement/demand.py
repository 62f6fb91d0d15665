"""What a pod asks of the cluster, compiled to a value: pods with equal demands are one scheduling class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sevenhop.core.objects.pod import Pod, PodAffinity, PodAffinityTerm, TopologySpread
from sevenhop.core.placement.requests import pod_requests
from sevenhop.core.placement.selectors import (
    NodeTerms,
    Selector,
    compile_node_selector,
    compile_selector,
)
from sevenhop.core.placement.taints import Tolerance, tolerances

HostPort = tuple[str, str, int]
"""(address, protocol, port)"""

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 (the scheduler's spelling of "every address", not a socket)


class Static(msgspec.Struct, frozen=True, gc=False):
    """The part that only looks at a node itself, not at what runs on it."""

    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: NodeTerms | None = None
    tolerances: tuple[Tolerance, ...] = ()


class AffinityTerm(msgspec.Struct, frozen=True, gc=False):
    """
    One required term of pod (anti-)affinity.

    Attributes:
        namespaces: Named ones, the pod's own if the term says nothing.
        namespace_selector: None if namespaces are only named.
    """

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector | None = None

    def covers(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod of that namespace with these labels is one the term speaks of."""
        if namespace not in self.namespaces and not (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.selector.matches(labels)


class Spread(msgspec.Struct, frozen=True, gc=False):
    """One topology spread constraint that must hold (`DoNotSchedule`)."""

    topology_key: str
    max_skew: int
    selector: Selector
    counts_itself: bool
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class Demand(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Attributes:
        namespace: The pod's own, in which spreads count; empty without one, for then namespaces schedule alike.
        needs: (resource, units), sorted; see `requests.Amounts`.
        ports: Host ports.
        affinity_includes_itself: The pod matches all of its own affinity terms: the first of its kind may start.
    """

    namespace: str
    static: Static
    needs: tuple[tuple[str, int], ...] = ()
    ports: tuple[HostPort, ...] = ()
    spreads: tuple[Spread, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    affinity_includes_itself: bool = False
    anti_affinity: tuple[AffinityTerm, ...] = ()


def demand_of(pod: Pod, namespace_labels: Mapping[str, str]) -> Demand:
    """
    Compile what one pod asks, without its volumes and claims, which need other objects.

    Args:
        namespace_labels: Of the pod's own namespace.
    """
    spec = pod.spec
    affinity = spec.affinity
    node_affinity = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    required = affinity_terms(affinity.pod_affinity if affinity else None, pod)
    spreads = tuple(
        _spread(c, pod) for c in spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"
    )
    return Demand(
        namespace=pod.metadata.namespace if spreads else "",
        static=Static(
            tuple(sorted(spec.node_selector.items())),
            compile_node_selector(node_affinity) if node_affinity is not None else None,
            tolerances(spec.tolerations),
        ),
        needs=tuple(sorted(pod_requests(pod).items())),
        ports=host_ports(pod),
        spreads=spreads,
        affinity=required,
        affinity_includes_itself=bool(required)
        and all(t.covers(pod.metadata.namespace, pod.metadata.labels, namespace_labels) for t in required),
        anti_affinity=affinity_terms(affinity.pod_anti_affinity if affinity else None, pod),
    )


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Host ports of containers and sidecars."""
    sidecars = (c for c in pod.spec.init_containers if c.restart_policy == "Always")
    return tuple(
        sorted(
            {
                (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
                for container in (*pod.spec.containers, *sidecars)
                for port in container.ports
                if port.host_port > 0
            }
        )
    )


def ports_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> HostPort | None:
    """The first wanted port that is in use; one bound to every address conflicts with each single one."""
    held = list(used)
    for address, protocol, port in wanted:
        for other, other_protocol, other_port in held:
            if (protocol, port) == (other_protocol, other_port) and (
                address == other or ANY_ADDRESS in (address, other)
            ):
                return (address, protocol, port)
    return None


def affinity_terms(affinity: PodAffinity | None, pod: Pod) -> tuple[AffinityTerm, ...]:
    """Required terms of one kind of affinity, with the pod's own namespace where they name none."""
    if affinity is None:
        return ()
    return tuple(_term(t, pod) for t in affinity.required)


def _term(term: PodAffinityTerm, pod: Pod) -> AffinityTerm:
    selector = compile_selector(term.label_selector)
    for keys, operator in ((term.match_label_keys, "In"), (term.mismatch_label_keys, "NotIn")):
        for key in keys:
            selector = _merged(selector, key, operator, pod)
    names = frozenset(term.namespaces)
    by_labels = None if term.namespace_selector is None else compile_selector(term.namespace_selector)
    if not names and by_labels is None:
        names = frozenset((pod.metadata.namespace,))
    return AffinityTerm(term.topology_key, selector, names, by_labels)


def _spread(constraint: TopologySpread, pod: Pod) -> Spread:
    selector = compile_selector(constraint.label_selector)
    for key in constraint.match_label_keys:
        selector = _merged(selector, key, "In", pod)
    return Spread(
        constraint.topology_key,
        constraint.max_skew,
        selector,
        selector.matches(pod.metadata.labels),
        constraint.min_domains or 1,
        constraint.node_affinity_policy == "Honor",
        constraint.node_taints_policy == "Honor",
    )


def _merged(selector: Selector, key: str, operator: str, pod: Pod) -> Selector:
    # The API server has written the pod's value of the key into the stored selector (affinity since 1.29, spread since
    # 1.34); what it has written is not added again, and a key that the pod lacks is passed over.
    value = pod.metadata.labels.get(key)
    if value is None or selector.nothing or selector.names(key):
        return selector
    return selector.having(key, operator, value)
