"""One scheduling class against all nodes: which constraints keep it from each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from sevenhop.core.inventory.objects import Key
from sevenhop.core.objects.pod import Pod
from sevenhop.core.placement import constraints as c
from sevenhop.core.placement.claims import ClaimsDemand, claims_demand
from sevenhop.core.placement.cluster import Cluster
from sevenhop.core.placement.demand import AffinityTerm, Demand, Spread, demand_of, ports_conflict
from sevenhop.core.placement.devices import ClaimNeed, allocate
from sevenhop.core.placement.nodes import NodeView
from sevenhop.core.placement.residents import Counts
from sevenhop.core.placement.selectors import NodeTerms, node_matches
from sevenhop.core.placement.volumes import (
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    VolumeDemand,
    can_bind,
    volume_demand,
    zone_allows,
)

_MOST_EVALUATIONS = 1024

Check = Callable[[NodeView], int]
"""A node to the bits of what keeps the class from it."""


class SchedulingClass(msgspec.Struct, frozen=True, gc=False):
    """
    Everything that decides where a pod may run: pods with equal classes have equal verdicts.

    Attributes:
        repelled_by: Anti-affinity terms of running pods that speak of this one.
        priority: None unless some pod is nominated to a node, which then holds its place against lower priorities.
        own: The pod itself where it is nominated, so that it does not stand in its own way.
    """

    demand: Demand
    volumes: VolumeDemand
    claims: ClaimsDemand
    repelled_by: tuple[AffinityTerm, ...] = ()
    priority: int | None = None
    own: Key | None = None

    @property
    def trouble(self) -> str:
        """Slug of what keeps it from every node alike; empty if nothing does."""
        return str(self.volumes.trouble or self.claims.trouble or "")

    @property
    def trouble_text(self) -> str:
        return self.volumes.trouble_text or self.claims.trouble_text

    @property
    def is_local(self) -> bool:
        """Whether a node's verdict depends on that node alone."""
        d = self.demand
        return not (
            d.spreads
            or d.affinity
            or d.anti_affinity
            or self.repelled_by
            or self.volumes.exclusive
            or self.claims.needs
        )


class Evictable(msgspec.Struct, frozen=True, gc=False):
    """
    Where an eviction could help a class, whoever is evicted.

    Attributes:
        views: Nodes whose refusal an eviction can change, and that could hold the pod if they were empty; in order.
        lowest: Lowest priority bound on them; None without nodes or without pods there.
    """

    views: tuple[NodeView, ...]
    lowest: int | None


class Evaluation(msgspec.Struct, gc=False):
    """
    Attributes:
        masks: Per node in `Cluster.order`, the bits of `constraints` that keep the class away; 0 fits.
        resources: Name of each resource bit, by index.
        problems: What could not be modelled.
        delegated: Extended resources that a device class serves where no plugin does.
        grouped, evictable: Made of the masks when first asked for, and forgotten when one of them changes.
    """

    masks: list[int]
    resources: tuple[str, ...]
    problems: tuple[str, ...] = ()
    delegated: tuple[str, ...] = ()
    epoch: int = 0
    seen: int = 0
    grouped: dict[int, list[int]] | None = None
    evictable: Evictable | None = None

    def groups(self) -> dict[int, list[int]]:
        """Mask to the indexes of the nodes that have it; few masks differ, so words are made from these."""
        if self.grouped is None:
            self.grouped = {}
            for index, mask in enumerate(self.masks):
                self.grouped.setdefault(mask, []).append(index)
        return self.grouped

    def counts(self) -> dict[int, int]:
        """How many nodes have each mask."""
        return {mask: len(indexes) for mask, indexes in self.groups().items()}

    @property
    def fits(self) -> bool:
        """Whether any node fits."""
        return 0 in self.groups()

    def index(self, resource: str) -> int | None:
        return self.resources.index(resource) if resource in self.resources else None


def class_of(cluster: Cluster, pod: Pod) -> SchedulingClass:
    """The scheduling class of a pod as the cluster is now."""
    claims, _ = claims_demand(cluster, pod)
    return SchedulingClass(
        demand_of(pod, cluster.namespace_labels(pod.metadata.namespace)),
        volume_demand(
            cluster.objects,
            pod,
            absence_counts=cluster.absence.counts(VOLUME_CLAIMS),
            classes_count=cluster.absence.counts(STORAGE_CLASSES),
        )
        if pod.spec.volumes
        else VolumeDemand(),
        claims,
        cluster.residents.repelled_by(pod),
        (pod.spec.priority or 0) if cluster.has_nominated() else None,
        pod.metadata.key if pod.status.nominated_node_name and cluster.has_nominated() else None,
    )


def evaluate(cluster: Cluster, wanted: SchedulingClass) -> Evaluation:
    """
    The class against every node; remembered until something changes.

    A class that looks at nodes one by one is patched for the nodes that changed.
    """
    known = cluster.evaluations.get(wanted)
    if isinstance(known, Evaluation) and known.epoch == cluster.epoch:
        if known.seen == len(cluster.log):
            return known
        changed = set(cluster.log[known.seen :])
        if wanted.is_local and len(changed) * 2 < len(cluster.order):
            views = [cluster.order[i] for i in changed]
            for view, mask in zip(views, _Checker(cluster, wanted).masks(views), strict=True):
                known.masks[view.index] = mask
            known.grouped = known.evictable = None
            known.seen = len(cluster.log)
            return known
    checker = _Checker(cluster, wanted)
    evaluation = Evaluation(
        checker.masks(cluster.order),
        tuple(name for name, _ in wanted.demand.needs),
        tuple(sorted({*checker.problems, *wanted.volumes.unseen, *wanted.claims.unseen})),
        tuple(checker.delegated),
        cluster.epoch,
        len(cluster.log),
    )
    if len(cluster.evaluations) >= _MOST_EVALUATIONS:
        cluster.evaluations.pop(next(iter(cluster.evaluations)))
    cluster.evaluations[wanted] = evaluation
    return evaluation


def masks_of(cluster: Cluster, wanted: SchedulingClass, views: Sequence[NodeView]) -> list[int]:
    """The same for a few nodes, not remembered."""
    return _Checker(cluster, wanted).masks(views)


class _Checker:
    """Everything about one class that is the same for all nodes, worked out once."""

    def __init__(self, cluster: Cluster, wanted: SchedulingClass) -> None:
        self.cluster = cluster
        self.wanted = wanted
        self.problems: set[str] = set()
        self.delegated: dict[str, ClaimNeed] = {}
        demand = wanted.demand
        self._static = cluster.static_masks(demand.static)
        for resource, amount in demand.needs:
            if "/" in resource:
                device_class = cluster.ledger.class_for_resource(resource)
                if device_class is not None:
                    self.delegated[resource] = cluster.ledger.need_of_resource(device_class, resource, amount)
        self._checks = list(self._build_checks())

    def masks(self, views: Iterable[NodeView]) -> list[int]:
        static, checks, delegated = self._static, self._checks, self.delegated
        needs = [(c.resource_bit(i), name, amount) for i, (name, amount) in enumerate(self.wanted.demand.needs)]
        priority = self.wanted.priority
        out: list[int] = []
        for view in views:
            mask = static[view.index] & ~c.TAINTED
            free: Mapping[str, int] = view.free
            pods = len(view.residents)
            if view.nominated and priority is not None:
                free, pods = _with_nominated(view, priority, self.wanted.own)
            if pods >= view.max_pods:
                mask |= c.TOO_MANY_PODS
            for bit, name, amount in needs:
                if amount > free.get(name, 0) and not (name in delegated and view.allocatable.get(name, 0) <= 0):
                    mask |= bit
            for check in checks:
                mask |= check(view)
            out.append(mask)
        return out

    def _build_checks(self) -> Iterable[Check]:
        wanted, demand = self.wanted, self.wanted.demand
        if demand.ports:
            yield _ports_check(demand)
        if any(self.cluster.residents.users_of(claim) for claim in wanted.volumes.exclusive):
            yield lambda _view: c.IN_USE
        if wanted.volumes.affinity or wanted.claims.nodes:
            yield _terms_check(wanted.volumes.affinity, c.VOLUME_AFFINITY)
            yield _terms_check(wanted.claims.nodes, c.DEVICES)
        if wanted.volumes.unbound:
            yield self._binding_check()
        if wanted.volumes.zones:
            zones = wanted.volumes.zones
            yield lambda view: 0 if zone_allows(zones, view.labels) else c.ZONE
        if demand.spreads:
            yield self._spread_check(demand.spreads)
        if demand.affinity:
            yield self._affinity_check(demand)
        if demand.anti_affinity:
            yield self._anti_affinity_check(demand.anti_affinity)
        if wanted.repelled_by:
            yield self._repelled_check(wanted.repelled_by)
        if wanted.claims.needs or self.delegated:
            yield self._device_check(wanted.claims.needs)

    def _binding_check(self) -> Check:
        unbound, objects = self.wanted.volumes.unbound, self.cluster.objects
        if not objects.of(VOLUMES) and not objects.is_known(VOLUMES):
            self.problems.add("PersistentVolumes were not seen")
            return lambda _view: 0
        if any(u.provisions for u in unbound):
            self.problems.add("storage capacity of the driver that would provision the volume")
        return lambda view: 0 if can_bind(objects, unbound, view.name, view.labels) else c.VOLUME_BINDING

    def _spread_check(self, spreads: Sequence[Spread]) -> Check:
        keys = {s.topology_key for s in spreads}
        tables = [(s, *self._domains(s, keys)) for s in spreads]

        def check(view: NodeView) -> int:
            for spread, domains, least in tables:
                value = view.labels.get(spread.topology_key)
                if value is None:
                    return c.SPREAD_LABEL
                if domains.get(value, 0) + spread.counts_itself - least > spread.max_skew:
                    return c.SPREAD
            return 0

        return check

    def _domains(self, spread: Spread, keys: set[str]) -> tuple[dict[str, int], int]:
        """Pods per domain, and the smallest count; only nodes that the constraint looks at make a domain."""
        counts = self.cluster.residents.spread_counts(self.wanted.demand.namespace, spread.selector)
        skip = (c.SELECTOR | c.NODE_AFFINITY if spread.honors_affinity else 0) | (
            c.TAINTED if spread.honors_taints else 0
        )
        domains: dict[str, int] = {}
        for view, static in zip(self.cluster.order, self._static, strict=True):
            labels = view.labels
            if static & skip or any(key not in labels for key in keys):
                continue
            value = labels[spread.topology_key]
            domains[value] = domains.get(value, 0) + counts.get(view.name, 0)
        if len(domains) < spread.min_domains:
            return domains, 0
        return domains, min(domains.values())

    def _by_domain(self, counts: Counts, key: str) -> dict[str, int]:
        out: dict[str, int] = {}
        for name, count in counts.items():
            view = self.cluster.views.get(name)
            value = view.labels.get(key) if view is not None else None
            if value is not None:
                out[value] = out.get(value, 0) + count
        return out

    def _affinity_check(self, demand: Demand) -> Check:
        self._note_namespaces(demand.affinity)
        counts = self.cluster.residents.affinity_counts(demand.affinity)
        tables = [(t.topology_key, self._by_domain(counts, t.topology_key)) for t in demand.affinity]
        first_of_its_kind = demand.affinity_includes_itself and not any(domains for _, domains in tables)

        def check(view: NodeView) -> int:
            met = True
            for key, domains in tables:
                value = view.labels.get(key)
                if value is None:
                    return c.AFFINITY
                met = met and value in domains
            return 0 if met or first_of_its_kind else c.AFFINITY

        return check

    def _anti_affinity_check(self, terms: Sequence[AffinityTerm]) -> Check:
        self._note_namespaces(terms)
        tables = [
            (t.topology_key, self._by_domain(self.cluster.residents.affinity_counts((t,)), t.topology_key))
            for t in terms
        ]
        return lambda view: (
            c.ANTI_AFFINITY if any(view.labels.get(key) in domains for key, domains in tables if domains) else 0
        )

    def _repelled_check(self, terms: Sequence[AffinityTerm]) -> Check:
        tables = [(t.topology_key, self._by_domain(self.cluster.residents.repelling(t), t.topology_key)) for t in terms]
        return lambda view: c.REPELLED if any(view.labels.get(key) in domains for key, domains in tables) else 0

    def _note_namespaces(self, terms: Iterable[AffinityTerm]) -> None:
        if any(t.namespace_selector is not None for t in terms) and not self.cluster.objects.of("Namespace"):
            self.problems.add("namespace labels were not seen")

    def _device_check(self, needs: tuple[ClaimNeed, ...]) -> Check:
        ledger, delegated = self.cluster.ledger, self.delegated

        def check(view: NodeView) -> int:
            here = needs + tuple(need for name, need in delegated.items() if view.allocatable.get(name, 0) <= 0)
            if not here:
                return 0
            answer = allocate(ledger, view.name, view.labels, here)
            self.problems.update(answer.problems)
            return c.DEVICES if answer.devices is None else 0

        return check


def _ports_check(demand: Demand) -> Check:
    wanted = demand.ports

    def check(view: NodeView) -> int:
        for each in view.residents.values():
            if each.ports and ports_conflict(wanted, each.ports):
                return c.PORTS
        return 0

    return check


def _terms_check(all_terms: tuple[NodeTerms, ...], bit: int) -> Check:
    return lambda view: 0 if all(node_matches(t, view.name, view.labels) for t in all_terms) else bit


def _with_nominated(view: NodeView, priority: int, own: Key | None) -> tuple[Mapping[str, int], int]:
    """Free amounts once the pods that preempted for this node, and rank no lower, have come."""
    free = dict(view.free)
    pods = len(view.residents)
    for each in view.nominated.values():
        if each.priority >= priority and each.key != own:
            pods += 1
            for name, value in each.holds.items():
                free[name] = free.get(name, 0) - value
    return free, pods
