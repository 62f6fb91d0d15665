"""The game with numbers and the game on the cluster itself give the same answers where only room decides."""

from __future__ import annotations

from random import Random

from sevenhop.core.inventory.objects import Key
from sevenhop.core.remediation.planning.board import Board, Role, Room
from sevenhop.core.remediation.planning.kinds import Kinds
from sevenhop.core.remediation.planning.queue import queue_of
from sevenhop.core.remediation.planning.simulate import Simulation
from tests.unit.remediation.planning.generated_clusters import made, world_of

CLUSTERS = 60


def test_numbers_and_cluster_agree() -> None:
    """For random sets of victims in generated clusters: the same verdict, and the same nodes where it holds."""
    compared = held = 0
    seed = 10_000
    while compared < CLUSTERS:
        seed += 1
        spec = made(seed)
        if spec is None or len(spec.waiting) < 2:
            continue  # somebody else must wait too, or nothing is decided on the way
        cluster = world_of(spec).state.placement
        need = [pod for key, pod in sorted(cluster.pending.items()) if key[1].startswith("needy")]
        victims = sorted(key for view in cluster.order for key in view.residents)
        gone = frozenset[Key](Random(seed).sample(victims, min(len(victims), 4)))
        queue = queue_of(cluster, need, ())
        by_number = Simulation(cluster, need, queue).outcome(gone, tell=True)
        kinds = Kinds(cluster)
        on_cluster = Simulation(cluster, need, queue, kinds=kinds)
        kinds.plain[:] = [False] * len(kinds.plain)
        played = on_cluster.outcome(gone, tell=True)
        if played.too_many:
            continue
        assert (by_number.holds, by_number.nodes) == (played.holds, played.nodes), f"seed {seed}"
        compared += 1
        held += by_number.holds
    assert 5 < held < CLUSTERS - 5, f"{held} of {CLUSTERS} hold: the clusters say too little"


def test_who_may_be_passed_over_is_no_protection() -> None:
    """A small pod that comes first would keep out a large one; that it may come is not that it comes."""
    board = Board()
    small, large, mine = board.learn([(0, 1)]), board.learn([(0, 4)]), board.learn([(0, 3)])
    room = Room((4,), 10, 0b111)
    rest = [(large, Role.OTHER), (mine, Role.MINE)]
    assert board.holds([(small, Role.OTHER), *rest], [room], frozenset())
    assert not board.holds([(small, Role.MAYBE), *rest], [room], frozenset())
    assert not board.holds([(small, Role.OTHER), *rest], [room], frozenset({small})), "it may go to another node"
