"""
The game against the scheduler where only room decides: nodes are numbers, pods are what they take of them.

The scheduler serves the line in order.  Whoever fits somewhere must be placed, on any node that fits; the need loses if
one of its pods fits nowhere when its turn has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import msgspec

from sevenhop.core.inventory.objects import Key

MOST_STEPS = 20_000
"""Positions looked at for one question; a game that is larger is not vouched for."""


class Room(msgspec.Struct, frozen=True, gc=False, order=True):
    """
    One node.

    Attributes:
        free: Units of each resource, by the board's index.
        places: Pods that it still takes.
        open_to: Bit per kind of pod that nothing but room keeps away.
    """

    free: tuple[int, ...]
    places: int
    open_to: int


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """
    Attributes:
        holds: Every pod of the need gets a node, whatever the scheduler chooses.
        nodes: Of each pod of the need, where it may come to run; only told where it holds.
        too_many: There were more cases than are looked at, so it is taken not to hold.
        served: Pods of others that may take a place before.
    """

    holds: bool
    nodes: tuple[tuple[Key, tuple[str, ...]], ...] = ()
    too_many: bool = False
    served: int = 0


class TooManyError(Exception):
    """The game is larger than `MOST_STEPS`."""


class Role(IntEnum):
    """Whose turn it is."""

    OTHER = 0  # is served when its turn has come
    MINE = 1  # is of the need
    MAYBE = 2  # may be served now, or after all


Turn = tuple[int, Role]
"""(kind of pod, role)"""


class Board:
    """Kinds of pods by index; answers are remembered by position."""

    def __init__(self) -> None:
        self._needs: list[tuple[tuple[int, int], ...]] = []
        self._known: dict[object, bool] = {}

    def learn(self, needs: Iterable[tuple[int, int]]) -> int:
        """A kind of pod by (index of resource, units); returns its number."""
        self._needs.append(tuple(needs))
        return len(self._needs) - 1

    def fits(self, kind: int, room: Room) -> bool:
        if room.places <= 0 or not room.open_to >> kind & 1:
            return False
        free = room.free
        return all(amount <= free[index] for index, amount in self._needs[kind])

    def relevant(self, line: Iterable[Turn], rooms: Sequence[Room]) -> list[Turn]:
        """The line without those who can never be placed: room only gets less."""
        most: dict[int, int] = {}
        kept: list[Turn] = []
        for kind, role in line:
            if kind not in most:
                most[kind] = sum(self._most(kind, room) for room in rooms if self.fits(kind, room))
            if role is Role.MINE:
                kept.append((kind, role))
            elif most[kind] > 0:
                most[kind] -= role is Role.OTHER  # who may be passed over is no reason to leave out another
                kept.append((kind, role))
        return kept

    def holds(self, line: Sequence[Turn], rooms: Sequence[Room], elsewhere: frozenset[int]) -> bool:
        """
        Whether the need wins.

        Args:
            elsewhere: Kinds of others that the scheduler may also place on nodes that are not on the board.

        Raises:
            TooManyError: Undecided.
        """
        key = (tuple(line), tuple(sorted(rooms)), elsewhere)
        if key not in self._known:
            game = _Game(self, line, elsewhere, None)
            self._known[key] = not game.loses(0, tuple(sorted(rooms)))
        return self._known[key]

    def where(self, line: Sequence[Turn], rooms: Sequence[Room], elsewhere: frozenset[int]) -> dict[int, set[int]]:
        """
        Position in the line to the rooms that this pod of the need may get.

        Raises:
            TooManyError: Not told.
        """
        told: dict[int, set[int]] = {}
        _Game(self, line, elsewhere, told).loses(0, tuple(rooms))
        return told

    def taken(self, kind: int, room: Room) -> Room:
        free = list(room.free)
        for index, amount in self._needs[kind]:
            free[index] -= amount
        return Room(tuple(free), room.places - 1, room.open_to)

    def _most(self, kind: int, room: Room) -> int:
        return min((room.free[index] // amount for index, amount in self._needs[kind] if amount), default=room.places)


class _Game:
    def __init__(self, board: Board, line: Sequence[Turn], elsewhere: frozenset[int], told: dict[int, set[int]] | None):
        self._board, self._line, self._elsewhere, self._told = board, line, elsewhere, told
        self._lost: dict[tuple[int, tuple[Room, ...]], bool] = {}

    def loses(self, turn: int, rooms: tuple[Room, ...]) -> bool:
        fits, line = self._board.fits, self._line
        while turn < len(line):
            kind, role = line[turn]
            options = [index for index, room in enumerate(rooms) if fits(kind, room)]
            if options:
                break
            if role is Role.MINE:
                return True
            turn += 1
        else:
            return False
        if self._told is not None and role is Role.MINE:
            self._told.setdefault(turn, set()).update(options)
        position = (turn, rooms)
        if position not in self._lost:
            if len(self._lost) >= MOST_STEPS:
                raise TooManyError
            self._lost[position] = False  # positions only go forward: it is not asked for again before it is known
            self._lost[position] = self._loses_by_any(turn, rooms, options)
        return self._lost[position]

    def _loses_by_any(self, turn: int, rooms: tuple[Room, ...], options: Sequence[int]) -> bool:
        kind, role = self._line[turn]
        tried: set[Room] = set()
        for index in options:
            if self._told is None and rooms[index] in tried:
                continue
            tried.add(rooms[index])
            after = (*rooms[:index], self._board.taken(kind, rooms[index]), *rooms[index + 1 :])
            if self.loses(turn + 1, after if self._told is not None else tuple(sorted(after))):
                return True
        may_pass = role is Role.MAYBE or (role is Role.OTHER and kind in self._elsewhere)
        return may_pass and self.loses(turn + 1, rooms)
