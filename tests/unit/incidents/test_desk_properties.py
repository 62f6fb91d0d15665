"""What must hold whatever happens: no page lost, none sent twice, nothing resolved by silence or blindness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.effects import Notify
from sevenhop.core.events import Silenced
from sevenhop.core.incidents.incident import NotifyReason
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.subject import Hop, Subject
from tests.unit.incidents.scene import (
    FAILS_HERE,
    IMAGE,
    LIMITED,
    LOAD_FAILS,
    NO_ENDPOINTS,
    RESTARTS,
    SHORT,
    Scene,
    alert,
    at,
    component,
    context,
    ends,
    fires,
    node,
    pool,
    reasons,
    service,
)

SLOTS: list[tuple[Any, Subject]] = [
    (SHORT, component("a/decode")),
    (SHORT, component("b/decode")),
    (LIMITED, pool()),
    (LOAD_FAILS, component("a/decode")),
    (RESTARTS, component("a/decode")),
    (IMAGE, component("b/decode")),
    (NO_ENDPOINTS, service("a")),
    (NO_ENDPOINTS, service("b")),
    (FAILS_HERE, node("n-1")),
]
SUBJECTS = sorted({subject for _, subject in SLOTS})
PODS = ["p-1", "p-2", "p-3"]
TIERS = ["critical", "standard"]

_fire = st.tuples(st.just("fire"), st.sampled_from(range(len(SLOTS))), st.sampled_from(TIERS), st.integers(0, 30))
_end = st.tuples(st.just("end"), st.sampled_from(range(len(SLOTS))))
_wait = st.tuples(st.just("wait"), st.sampled_from([1, 4, 7, 40, 400, 4000]))
_world = st.tuples(
    st.just("world"),
    st.sampled_from(SUBJECTS),
    st.dictionaries(
        st.sampled_from([Hop.SCHEDULING, Hop.POD, Hop.MODEL, Hop.SERVICE]),
        st.lists(st.sampled_from(PODS), unique=True, max_size=3),
        max_size=3,
    ),
    st.booleans(),
    st.booleans(),
)
_hide = st.tuples(st.just("hide"), st.sampled_from(SUBJECTS))
_silence = st.tuples(
    st.just("silence"), st.sampled_from(["workload=a", "tier=critical", "node=~n.*"]), st.integers(5, 600)
)
_restart = st.tuples(st.just("restart"))
ACTIONS = st.lists(st.one_of(_fire, _fire, _end, _wait, _wait, _world, _hide, _silence), max_size=30)
WITH_RESTARTS = st.lists(st.one_of(_fire, _fire, _end, _wait, _wait, _world, _restart), max_size=30)


class Play:
    """Plays actions on a desk, and knows which alerts fire."""

    def __init__(self, times: int = 1) -> None:
        self.scene = Scene(DeskSettings(receivers=("console", "slack")))
        self.firing: dict[int, Alert] = {}
        self.now = 0.0
        self._times = times
        self._silences = 0

    def play(self, actions: Sequence[tuple[Any, ...]]) -> list[Notify]:
        for action in actions:
            getattr(self, f"_{action[0]}")(*action[1:])
            self.check()
        return self.scene.sent

    def check(self) -> None:
        """Every firing alert is in exactly one open incident, and in nothing else."""
        found = sorted(fp for i in self.scene.desk.incidents.values() if i.is_open for fp in i.members)
        assert found == sorted(each.fingerprint for each in self.firing.values())

    def _fire(self, slot: int, tier: str, ago: int) -> None:
        rule, subject = SLOTS[slot]
        known = self.firing.get(slot)
        since = self.now - ago if known is None else (known.since - at(0)).total_seconds()
        made = alert(rule, subject, since, tier=tier)
        self.firing[slot] = made
        for _ in range(self._times):
            self.scene.step(self.now, fires(made, self.now, again=known is not None))

    def _end(self, slot: int) -> None:
        known = self.firing.pop(slot, None)
        for _ in range(self._times if known else 0):
            self.scene.step(self.now, ends(known, self.now))  # type: ignore[arg-type]

    def _wait(self, seconds: int) -> None:
        self.now += seconds
        self.scene.until(self.now)
        self.scene.step(self.now)

    def _world(self, subject: Subject, broken: dict[Hop, list[str]], on_node: bool, worked_on: bool) -> None:
        places = dict.fromkeys({p for pods in broken.values() for p in pods}, "n-1") if on_node else {}
        self.scene.contexts[subject] = context(
            subject, broken, places=places, maintenance=("n-1",) if worked_on and on_node else ()
        )

    def _hide(self, subject: Subject) -> None:
        self.scene.contexts.pop(subject, None)

    def _silence(self, matcher: str, seconds: int) -> None:
        self._silences += 1
        event = Silenced(
            at=at(self.now),
            silence_id=f"s-{self._silences}",
            matchers={},
            author="kim",
            comment="",
            expires_at=at(self.now + seconds),
            where=(matcher,),
        )
        for _ in range(self._times):
            self.scene.desk.hear(event)
            self.scene.step(self.now)

    def _restart(self) -> None:
        self.scene.restart()
        self.scene.step(self.now)  # as the engine does when it has loaded


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_every_firing_alert_is_told_or_a_reason_is_named(actions: list[tuple[Any, ...]]) -> None:
    """After everything has settled, each firing alert is in a told incident, or its incident says why it is not."""
    play = Play()
    play.play([*actions, ("wait", 4000)])

    for firing in play.firing.values():
        standing = play.scene.desk.standing(firing.fingerprint, at(play.now))
        assert standing.incident is not None
        assert standing.incident.is_open
        told = {told.receiver for told in standing.incident.told}
        if told != {"console", "slack"}:
            assert standing.incident.family == "maintenance"
            assert "not_due_maintenance" in {noted.reason for noted in standing.decisions}


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_no_effect_is_asked_for_twice(actions: list[tuple[Any, ...]]) -> None:
    """Ids are unique, and revisions of a receiver's incident only rise."""
    sent = Play().play([*actions, ("wait", 4000)])

    assert len({n.id for n in sent}) == len(sent)
    last: dict[tuple[str, str], int] = {}
    for notify in sent:
        place = (notify.incident, notify.receiver)
        assert notify.revision > last.get(place, 0)
        last[place] = notify.revision


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_each_change_twice(actions: list[tuple[Any, ...]]) -> None:
    """At-least-once delivery is indistinguishable from exactly-once."""
    once, twice = Play(), Play(times=2)

    assert twice.play([*actions, ("wait", 40)]) == once.play([*actions, ("wait", 40)])


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_what_a_receiver_sees_last_is_the_truth(actions: list[tuple[Any, ...]]) -> None:
    """Whoever was told of an incident sees it open exactly as long as it is; nobody hears of an end first."""
    play = Play()
    sent = play.play([*actions, ("wait", 40)])

    last: dict[tuple[str, str], Notify] = {}
    for notify in sent:
        place = (notify.incident, notify.receiver)
        assert place in last or notify.anew
        last[place] = notify
    open_now = {i.id for i in play.scene.desk.incidents.values() if i.is_open}
    for (incident, _), notify in last.items():
        assert (notify.message.status == "firing") is (incident in open_now)


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_silences_neither_open_nor_resolve(actions: list[tuple[Any, ...]]) -> None:
    """With and without silences the same incidents are open, and end for the same reasons."""
    without = [action for action in actions if action[0] != "silence"]
    loud, quiet = Play(), Play()
    loud.play([*without, ("wait", 1)])
    quiet.play([*actions, ("wait", 1)])

    def state(play: Play) -> list[tuple[str, str, str, tuple[str, ...]]]:
        return [(i.id, i.status, i.end_reason, i.members) for i in play.scene.desk.incidents.values()]

    assert state(quiet) == state(loud)


@settings(max_examples=60, deadline=None)
@given(WITH_RESTARTS)
def test_restarts_at_any_point_lose_no_page_and_add_none(actions: list[tuple[Any, ...]]) -> None:
    """
    With restarts between the same things happening, nobody is paged more often, and whoever is to know knows.

    After a start a first message may wait until the cluster is seen again; what ends meanwhile is then never told, and
    what calmed down meanwhile is told as calm, so that getting worse again is a page that there was no need for before.
    """

    def count(sent: list[Notify]) -> int:
        return len([n for n in sent if n.anew and n.reason != NotifyReason.SEVERITY_UP])

    without = [action for action in actions if action[0] != "restart"]
    restarted, straight = Play(), Play()

    assert count(restarted.play([*actions, ("wait", 400)])) <= count(straight.play([*without, ("wait", 400)]))
    for firing in restarted.firing.values():
        standing = restarted.scene.desk.standing(firing.fingerprint, at(restarted.now))
        assert standing.incident is not None
        told = {told.receiver for told in standing.incident.told}
        assert told == {"console", "slack"} or standing.incident.family == "maintenance"


def test_a_message_of_each_kind_is_reached() -> None:
    """The plays above do meet posts, edits and ends: they prove something."""
    play = Play()
    sent = play.play(
        [
            ("world", component("a/decode"), {Hop.SCHEDULING: ["p-1"]}, False, False),
            ("world", service("a"), {Hop.SERVICE: ["p-1"]}, False, False),
            ("fire", 0, "standard", 5),
            ("fire", 6, "standard", 0),
            ("wait", 7),
            ("fire", 0, "critical", 0),
            ("wait", 40),
            ("end", 0),
            ("wait", 400),
            ("end", 6),
        ]
    )

    assert set(reasons(sent)) == {"first_firing", "severity_up", "resolved"}
    assert replace(sent[0], receiver="slack", id=sent[1].id) == sent[1]
