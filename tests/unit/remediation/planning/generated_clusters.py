"""Generated clusters as plain numbers, and an exhaustive search over them that shares nothing with the planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from random import Random

from tests import builders as b
from tests.unit.remediation.planning.planning_scene import World

A100 = "NVIDIA-A100-SXM4-80GB"
PRODUCT_LABEL = "nvidia.com/gpu.product"
RANK = {"critical": 2, "standard": 1, "batch": 0}


@dataclass
class MadeDonor:
    """Pods by place: the node ("" for one that waits), and whether it is ready."""

    name: str
    tier: str
    chooser: str
    gpus: int
    floor: int
    pods: list[tuple[str, bool]]


@dataclass
class MadeWaiting:
    """Pods of one workload that wait; with equal priority the one with the smaller `since` has waited longer."""

    name: str
    tier: str
    gpus: int
    pods: int
    since: int
    priority: int
    product: str


@dataclass
class Made:
    nodes: dict[str, tuple[int, str]] = field(default_factory=dict)
    donors: list[MadeDonor] = field(default_factory=list)
    waiting: list[MadeWaiting] = field(default_factory=list)
    priority: int = 0

    @property
    def need(self) -> MadeWaiting:
        return self.waiting[0]

    def free(self) -> dict[str, int]:
        left = {name: gpus for name, (gpus, _) in self.nodes.items()}
        for donor in self.donors:
            for node, _ in donor.pods:
                if node:
                    left[node] -= donor.gpus
        return left


def made(seed: int) -> Made | None:
    """A cluster in which nobody who waits fits as it is; None if this seed makes none."""
    rng = Random(seed)
    out = Made(priority=rng.choice((0, 0, 1000)))
    for number in range(rng.randint(2, 5)):
        out.nodes[f"gpu-{number}"] = (rng.choice((2, 4, 4, 8)), rng.choice((b.H100, b.H100, A100)))
    for number in range(rng.randint(1, 4)):
        _add_donor(rng, out, number)
    product_wanted = rng.choice(("", b.H100, b.H100))
    size = rng.choice((1, 2, 2, 3, 4))
    pods = rng.choice((1, 1, 1, 2, 3))
    out.waiting.append(MadeWaiting("needy", "critical", size, pods, 60, out.priority, product_wanted))
    for number in range(rng.choice((0, 0, 1, 1, 2))):
        out.waiting.append(
            MadeWaiting(
                f"rival-{number}",
                rng.choice(("batch", "standard")),
                rng.choice((1, 2, 2, 4)),
                rng.choice((1, 1, 2)),
                rng.choice((30, 60, 90)),
                rng.choice((out.priority, 0)),
                rng.choice(("", "", b.H100, A100)),
            )
        )
    free = out.free()
    asked = [(each.gpus, each.product) for each in out.waiting]
    asked += [(donor.gpus, "") for donor in out.donors if ("", False) in donor.pods]
    if any(_fits(out, free, gpus, product_asked) for gpus, product_asked in asked):
        return None
    return out


def _add_donor(rng: Random, out: Made, number: int) -> None:
    gpus = rng.choice((1, 1, 2, 2, 4))
    free = out.free()
    pods: list[tuple[str, bool]] = []
    for _ in range(rng.randint(2, 5)):
        room = [name for name, left in free.items() if left >= gpus]
        if not room:
            break
        node = rng.choice(room)
        free[node] -= gpus
        pods.append((node, rng.random() < 0.85))
    if not pods:
        return
    chooser = rng.choice(("replica-set", "replica-set", "highest", "named", "any"))
    tier = rng.choice(("batch", "batch", "standard", "critical"))
    if tier != "critical" and rng.random() < 0.2:
        pods.append(("", False))  # one of the need's own tier would come first in the list
    out.donors.append(MadeDonor(f"donor-{number}", tier, chooser, gpus, rng.choice((0, 0, 1, 2)), pods))


def world_of(spec: Made) -> World:
    """The same, as objects."""
    world = World()
    for name, (gpus, product_name) in spec.nodes.items():
        world.objects.append(b.node(name, gpus=gpus, product=product_name))
    for donor in spec.donors:
        world.donor(
            donor.name,
            [node for node, _ in donor.pods if node],
            gpus=donor.gpus,
            tier=donor.tier,
            chooser=donor.chooser,
            unready=[place for place, (_, ready) in enumerate(donor.pods) if not ready],
            annotations={"test/floor": str(donor.floor)},
            priority=spec.priority,
            waiting=sum(not node for node, _ in donor.pods),
        )
    for each in spec.waiting:
        selector = {PRODUCT_LABEL: each.product} if each.product else None
        world.waits(
            each.name, gpus=each.gpus, pods=each.pods, tier=each.tier, since=each.since, priority=each.priority,
            selector=selector,
        )  # fmt: skip
    return world


# The exhaustive search


Cut = tuple[int, tuple[tuple[int, ...], ...]]
"""(place of the donor, every set of pods that may go)"""


Entry = tuple[int, str, str]
"""(GPUs, product or empty for any, one of mine, other, maybe)"""


def smallest_safe(spec: Made, most_replicas: int, helped: int) -> int | None:
    """Fewest replicas with which, whatever anybody chooses, so many pods of the need run; None if there are none."""
    for replicas in range(1, most_replicas + 1):
        if any(is_safe(spec, cuts, helped) for cuts in _all_cuts(spec, replicas)):
            return replicas
    return None


def is_safe(spec: Made, cuts: Sequence[Cut], helped: int) -> bool:
    """Whether so many pods of the need run, for every choice of victims, nodes and order among equals."""
    return all(
        _fewest(spec, dict(zip((place for place, _ in cuts), chosen, strict=True))) >= helped
        for chosen in product(*(sets for _, sets in cuts))
    )


def cut_of(spec: Made, place: int, victims: Sequence[int]) -> Cut:
    """What may go if the plan means these pods of a donor to go."""
    donor = spec.donors[place]
    if donor.chooser == "any":
        return (place, tuple(combinations(range(len(donor.pods)), len(victims))))
    return (place, (tuple(sorted(victims)),))


def is_reachable(donor: MadeDonor, victims: Sequence[int]) -> bool:
    """Whether its controller can be made to choose exactly these."""
    if donor.chooser == "highest":
        return sorted(victims) == list(range(len(donor.pods) - len(victims), len(donor.pods)))
    if donor.chooser == "replica-set":
        stays = [donor.pods[i] for i in range(len(donor.pods)) if i not in victims]
        return all(_standing(donor.pods[i]) <= _standing(other) for i in victims for other in stays)
    return True


def _standing(pod: tuple[str, bool]) -> tuple[bool, bool]:
    return (bool(pod[0]), pod[1])


def keeps_floor(donor: MadeDonor, victims: Sequence[int]) -> bool:
    floor = max(1, donor.floor)
    ready = sum(is_ready for _, is_ready in donor.pods)
    lost = min(len(victims), ready) if donor.chooser == "any" else sum(donor.pods[i][1] for i in victims)
    return len(donor.pods) - len(victims) >= floor and ready - lost >= floor


def _all_cuts(spec: Made, replicas: int) -> Iterator[list[Cut]]:
    lower = [place for place, donor in enumerate(spec.donors) if RANK[donor.tier] < RANK[spec.need.tier]]
    for counts in product(range(replicas + 1), repeat=len(lower)):
        if sum(counts) != replicas:
            continue
        options: list[list[Cut]] = []
        for place, number in zip(lower, counts, strict=True):
            if not number:
                continue
            donor = spec.donors[place]
            sets = [v for v in combinations(range(len(donor.pods)), number) if is_reachable(donor, v)]
            sets = [v for v in sets if keeps_floor(donor, v)]
            options.append([cut_of(spec, place, v) for v in (sets[:1] if donor.chooser == "any" else sets)])
        yield from (list(chosen) for chosen in product(*options))


def _fewest(spec: Made, gone: dict[int, tuple[int, ...]]) -> int:
    """Pods of the need that run if everybody chooses against it."""
    free = spec.free()
    line: list[Entry] = []
    for place, donor in enumerate(spec.donors):
        for index, (node, _) in enumerate(donor.pods):
            if index in gone.get(place, ()):
                if node:
                    free[node] += donor.gpus
            elif not node and place in gone:
                line.append((donor.gpus, "", "other"))
    order: list[tuple[tuple[int, int, bool], Entry]] = []
    for each in spec.waiting:
        mine = each is spec.need
        role = "mine" if mine else "other"
        order += [((-each.priority, each.since, mine), (each.gpus, each.product, role))] * each.pods
    # A donor that gives nothing may wait too: its pods are as old as everything else is.
    for place, donor in enumerate(spec.donors):
        if place not in gone:
            order += [((-spec.priority, 0, False), (donor.gpus, "", "other")) for node, _ in donor.pods if not node]
    order.sort(key=lambda each: each[0])
    last = max(place for place, (_, entry) in enumerate(order) if entry[2] == "mine")
    leaving = sum(bool(spec.donors[place].pods[i][0]) for place, indexes in gone.items() for i in indexes)
    for (priority, _, _), (gpus, wanted, _) in order[last + 1 :]:
        # Equals are tried in the order of their last attempts, and where several pods leave one after the other
        # anybody who is behind may come in between.
        if priority == -spec.need.priority or leaving > 1:
            line.insert(0, (gpus, wanted, "maybe"))
    served = [entry for _, entry in order]
    return _worst(spec, free, [*line, *served[: last + 1]])


def _worst(spec: Made, free: dict[str, int], line: Sequence[Entry]) -> int:
    if not line:
        return 0
    gpus, product_wanted, role = line[0]
    options = _fits(spec, free, gpus, product_wanted)
    outcomes = [_worst(spec, {**free, node: free[node] - gpus}, line[1:]) for node in options]
    if not options or role == "maybe":
        outcomes.append(_worst(spec, free, line[1:]))
        return min(outcomes)
    return (role == "mine") + min(outcomes)


def _fits(spec: Made, free: dict[str, int], gpus: int, product_wanted: str) -> list[str]:
    return [name for name, left in free.items() if left >= gpus and product_wanted in ("", spec.nodes[name][1])]
