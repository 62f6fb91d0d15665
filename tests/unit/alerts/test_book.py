"""The alert book: exact seconds, blindness, reloads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.core.alerts.alert import AlertChanged, AlertState, ChangeReason
from sevenhop.core.alerts.book import AlertBook
from sevenhop.core.alerts.digest import COUNT, digest_subject
from sevenhop.core.alerts.history import KEPT_OF_ENDED, KEPT_PER_ALERT
from sevenhop.core.alerts.rule import Evaluation, Rule, Verdict
from sevenhop.core.facts.schema import Facts, FactValue, Unknown
from sevenhop.core.subject import Subject
from tests.unit.alerts.rules_for_tests import STALE, at, is_bad, rule, subject

A = subject("a")
N, P, F = AlertState.INACTIVE, AlertState.PENDING, AlertState.FIRING
R = ChangeReason


def book(*rules: Rule, most_at_once: int = 20) -> AlertBook:
    return AlertBook(rules, "prod", most_at_once=most_at_once)


def tell(b: AlertBook, seconds: float, bad: FactValue | Unknown, **more: FactValue | Unknown) -> list[AlertChanged]:
    """The component is (not) bad from here on."""
    facts: Facts = {"component.bad": bad, "component": "a", **more}
    return b.evaluate({A: facts}, (), at(seconds))


def short(changes: list[AlertChanged]) -> list[tuple[AlertState, AlertState, ChangeReason, float]]:
    return [(c.was, c.alert.state, c.reason, (c.at - at(0)).total_seconds()) for c in changes]


def test_fires_at_the_exact_second_and_resolves_at_the_exact_second() -> None:
    """
    Pending for `for`, firing until it has been false for `keep_firing_for`.
    """
    b = book(rule(hold=120, keep=60))

    assert short(tell(b, 0, True)) == [(N, P, R.CONDITION_TRUE, 0)]
    assert b.next_wake == at(120)
    assert b.tick(at(119.999)) == []
    assert short(b.tick(at(120))) == [(P, F, R.HELD, 120)]
    assert short(tell(b, 300, False)) == [(F, F, R.CONDITION_FALSE, 300)]
    assert b.next_wake == at(360)
    assert b.tick(at(359.999)) == []
    assert short(b.tick(at(360))) == [(F, N, R.CONDITION_FALSE, 360)]
    assert b.snapshot() == []
    assert b.next_wake is None


@pytest.mark.parametrize(("until", "fires"), [(119, False), (120, False), (120.001, True)])
def test_true_up_to_the_last_second_does_not_fire(until: float, fires: bool) -> None:
    """
    False at the very second of `for` is in time; later it is not, even when nobody ticked in between.
    """
    b = book(rule(hold=120))
    tell(b, 0, True)

    changes = tell(b, until, False)

    assert (F in [c.alert.state for c in changes]) is fires


def test_a_late_tick_fires_at_the_moment_that_was_due() -> None:
    """
    When an alert fired does not depend on how often somebody looks.
    """
    b = book(rule(hold=120))
    tell(b, 0, True)

    changes = b.tick(at(500))

    assert short(changes) == [(P, F, R.HELD, 120)]
    assert changes[0].alert.fired_at == at(120)


def test_without_for_it_fires_at_once_and_says_so_once() -> None:
    """
    `for: 0s` needs no tick.
    """
    b = book(rule())

    assert short(tell(b, 5, True)) == [(N, F, R.HELD, 5)]
    assert short(tell(b, 6, False)) == [(F, N, R.CONDITION_FALSE, 6)]


def test_being_false_again_does_not_put_off_the_end() -> None:
    """
    The time in which it must stay false runs from the first false.
    """
    b = book(rule(keep=60))
    tell(b, 0, True)
    tell(b, 10, False)
    tell(b, 40, False, owner="somebody else")

    assert short(b.tick(at(70))) == [(F, N, R.CONDITION_FALSE, 70)]


def test_what_is_due_at_the_time_of_an_event_is_told_with_it() -> None:
    """
    An event about another subject at the very second brings it too.
    """
    b = book(rule(hold=60))
    tell(b, 0, True)

    changes = b.evaluate({subject("b"): {"component.bad": False}}, (), at(60))

    assert short(changes) == [(P, F, R.HELD, 60)]


def test_true_again_while_it_keeps_firing_is_one_alert() -> None:
    """
    A short good spell is no recovery, and the next one starts from its own beginning.
    """
    b = book(rule(keep=60))
    tell(b, 0, True)
    tell(b, 10, False)
    tell(b, 40, True)
    tell(b, 100, False)

    assert b.tick(at(159)) == []
    assert short(b.tick(at(160))) == [(F, N, R.CONDITION_FALSE, 160)]


def test_the_clock_of_for_stands_still_while_blind() -> None:
    """
    40 s blind make it fire 40 s later.
    """
    b = book(rule(hold=120))
    tell(b, 0, True)

    assert short(tell(b, 60, STALE)) == [(P, P, R.FACT_UNKNOWN, 60)]
    tell(b, 100, True)

    assert b.tick(at(159)) == []
    assert short(b.tick(at(160))) == [(P, F, R.HELD, 160)]


@pytest.mark.parametrize(("hold", "given_up"), [(120, 660), (1800, 1860)], ids=["ten minutes", "for, if longer"])
def test_pending_and_blind_is_given_up(hold: float, given_up: float) -> None:
    """
    After max(for, 10 min) without sight: inactive, and the reason is blindness, not recovery.
    """
    b = book(rule(hold=hold))
    tell(b, 0, True)
    tell(b, 60, STALE)

    assert b.tick(at(given_up - 1)) == []
    assert short(b.tick(at(given_up))) == [(P, N, R.BLIND, given_up)]


def test_firing_and_blind_stays_firing() -> None:
    """
    A source that goes silent resolves nothing, for however long, and the alert says since when it is unconfirmed.
    """
    b = book(rule(keep=60))
    tell(b, 0, True)
    changes = tell(b, 100, STALE)

    assert short(changes) == [(F, F, R.FACT_UNKNOWN, 100)]
    assert (changes[0].alert.confirmed_at, changes[0].alert.blind_since) == (at(0), at(100))
    assert changes[0].alert.missing == ("component.bad: unknown (stale: Pod)",)
    assert b.next_wake is None
    assert b.tick(at(10**6)) == []


def test_blindness_stops_the_way_out() -> None:
    """
    False, then blind: the time in which it must stay false starts again when it can be seen.
    """
    b = book(rule(keep=60))
    tell(b, 0, True)
    tell(b, 10, False)
    tell(b, 30, STALE)
    assert b.tick(at(500)) == []

    tell(b, 600, False)

    assert b.tick(at(659)) == []
    assert short(b.tick(at(660))) == [(F, N, R.CONDITION_FALSE, 660)]


def test_inactive_and_blind_stays_inactive() -> None:
    """
    Unknown is not broken.
    """
    b = book(rule())

    assert tell(b, 0, STALE) == []
    assert b.tick(at(10**6)) == []


@pytest.mark.parametrize("bad", [True, STALE, "broken"], ids=["firing", "blind", "broken"])
def test_a_subject_that_is_gone_ends_its_alert(bad: FactValue | Unknown) -> None:
    """
    Gone is an end with its own reason, also while blind or broken.
    """
    b = book(rule())
    tell(b, 0, True)
    tell(b, 5, bad)

    assert short(b.evaluate({}, [A], at(10))) == [(F, N, R.SUBJECT_GONE, 10)]
    assert b.broken() == []
    assert b.evaluate({}, [A], at(11)) == []


def test_gone_and_back_in_one_batch_is_a_new_alert() -> None:
    """
    What is deleted and created anew in one batch ends and opens.
    """
    b = book(rule())
    tell(b, 0, True)

    changes = b.evaluate({A: {"component.bad": True}}, [A], at(9))

    assert short(changes) == [(F, N, R.SUBJECT_GONE, 9), (N, F, R.HELD, 9)]


def test_a_broken_rule_freezes_its_alert_and_only_its_own() -> None:
    """
    No resolve, no firing, told once; other rules go on, and the rule is named.
    """
    good = rule("good", evaluate=lambda facts: Evaluation(Verdict.FALSE if facts["component.bad"] else Verdict.TRUE))
    b = book(rule(hold=60, keep=30), good)
    tell(b, 0, True)

    changes = tell(b, 10, "broken")

    assert short(changes) == [(P, P, R.RULE_BROKEN, 10)]
    assert b.tick(at(5000)) == []
    assert [(r.rule_id, r.subjects, r.error) for r in b.broken()] == [("r", 1, "division by zero")]
    assert short(tell(b, 5010, False))[0] == (P, N, R.CONDITION_FALSE, 5010)
    assert b.broken() == []


def test_broken_is_told_once() -> None:
    """
    Another change of a subject on which the rule fails is no news.
    """
    b = book(rule())
    tell(b, 0, True)
    tell(b, 10, "broken")

    assert tell(b, 11, "broken", owner="somebody else") == []


def test_broken_without_an_alert_is_forgotten_with_its_subject() -> None:
    """
    A rule is named as broken only while there is something to fail on.
    """
    b = book(rule())
    tell(b, 0, "broken")
    assert [r.example for r in b.broken()] == [A]

    b.evaluate({}, [A], at(1))

    assert b.broken() == []


def test_time_spent_broken_does_not_count() -> None:
    """
    What held for 10 s before the rule broke needs 50 s more of a minute.
    """
    b = book(rule(hold=60))
    tell(b, 0, True)
    tell(b, 10, "broken")
    tell(b, 1000, True)

    assert b.tick(at(1049)) == []
    assert short(b.tick(at(1050))) == [(P, F, R.HELD, 1050)]


SINCE: dict[str, Any] = {"since": "component.since", "reads": frozenset({"component.bad"})}


def test_since_counts_from_the_servers_time() -> None:
    """
    The clock of `for` began when the server says, not when we came.
    """
    b = book(rule(hold=120, **SINCE))

    tell(b, 100, True, **{"component.since": at(0)})

    assert b.next_wake == at(120)


def test_since_in_the_future_is_now() -> None:
    """
    A server's clock that runs ahead does not delay.
    """
    b = book(rule(hold=120, **SINCE))

    tell(b, 100, True, **{"component.since": at(150)})

    assert b.next_wake == at(220)


def test_another_member_that_waits_later_does_not_start_the_clock_again() -> None:
    """
    The pod under a new name is the same alert, with the same beginning.
    """
    b = book(rule(hold=120, **SINCE))
    tell(b, 0, True, **{"component.since": at(0)})
    tell(b, 50, True, **{"component.since": at(45)})

    assert b.next_wake == at(120)


def test_what_began_anew_while_blind_counts_from_there() -> None:
    """
    A later beginning after blindness means that it was over in between.
    """
    b = book(rule(hold=120, **SINCE))
    tell(b, 0, True, **{"component.since": at(0)})
    tell(b, 50, STALE)
    tell(b, 100, True, **{"component.since": at(80)})

    assert b.next_wake == at(220)  # 80 + 120, and the 20 s blind since then


def test_what_began_anew_just_before_blindness_counts_from_there_too() -> None:
    """
    All of the blind time is left out, and none of the time before it.
    """
    b = book(rule(hold=120, **SINCE))
    tell(b, 0, True, **{"component.since": at(0)})
    tell(b, 50, STALE)
    tell(b, 100, True, **{"component.since": at(40)})

    assert b.next_wake == at(210)  # 40 + 120 + 50 blind


def test_what_began_anew_while_down_counts_from_there() -> None:
    """
    The server tells another beginning: what was pending before is over.
    """
    r = rule(hold=120, **SINCE)
    before = book(r)
    tell(before, 0, True, **{"component.since": at(0)})
    after = book(r)
    after.load(before.snapshot(), at(95), down_since=at(30))
    tell(after, 100, True, **{"component.since": at(80)})

    assert after.next_wake == at(220)


def test_blind_time_from_before_a_restart_is_remembered() -> None:
    """
    20 s blind, then 20 s more until the stop, then 40 s down: none of it counts.
    """
    before = book(rule(hold=120))
    for seconds, bad in ((0, True), (10, STALE), (30, True), (40, STALE)):
        tell(before, seconds, bad)
    after = book(rule(hold=120))
    after.load(before.snapshot(), at(95), down_since=at(60))
    tell(after, 100, True)

    assert after.next_wake == at(200)


def test_downtime_counts_where_the_server_tells_the_same_beginning() -> None:
    """
    A restart does not start the clock again.
    """
    r = rule(hold=120, **SINCE)
    before = book(r)
    tell(before, 0, True, **{"component.since": at(0)})
    after = book(r)

    assert after.load(before.snapshot(), at(100), down_since=at(30)) == []
    changes = tell(after, 101, True, **{"component.since": at(0)})

    assert after.next_wake == at(120)
    assert all(c.alert.state is P for c in changes)


def test_downtime_does_not_count_without_a_servers_time() -> None:
    """
    70 s down make it fire 70 s later.
    """
    before = book(rule(hold=120))
    tell(before, 0, True)
    after = book(rule(hold=120))

    after.load(before.snapshot(), at(90), down_since=at(30))
    tell(after, 100, True)

    assert after.next_wake == at(190)


def test_what_ends_unseen_after_a_restart_begins_anew() -> None:
    """
    Its subject went before its facts were known; when it comes back, its clock is no more that of what was loaded.
    """
    before = book(rule(hold=120))
    tell(before, 0, True)
    after = book(rule(hold=120))
    after.load(before.snapshot(), at(90), down_since=at(30))

    after.evaluate({}, [A], at(95))
    tell(after, 100, True)

    assert after.next_wake == at(220)


def test_a_long_downtime_is_not_blindness() -> None:
    """
    An alert that was pending an hour ago is not given up before somebody looked.
    """
    r = rule(hold=120, **SINCE)
    before = book(r)
    tell(before, 0, True, **{"component.since": at(0)})
    after = book(r)
    after.load(before.snapshot(), at(3600), down_since=at(30))

    assert after.tick(at(3601)) == []
    assert short(tell(after, 3605, True, **{"component.since": at(0)})) == [(P, F, R.HELD, 3605)]


def test_after_a_restart_a_firing_alert_goes_on_until_it_is_seen() -> None:
    """
    Loading tells nothing, unknown facts resolve nothing, and false facts do.
    """
    before = book(rule())
    tell(before, 0, True)
    after = book(rule())

    assert after.load(before.snapshot(), at(100), down_since=at(50)) == []
    assert [c.alert.state for c in tell(after, 101, STALE)] == [F]
    assert short(tell(after, 102, False)) == [(F, N, R.CONDITION_FALSE, 102)]


def test_alerts_of_rules_that_changed_while_down_end() -> None:
    """
    With the reason, and without touching the others.
    """
    before = book(rule("a"), rule("b"), rule("c"))
    tell(before, 0, True)
    after = book(rule("a"), rule("b", hold=60))

    changes = after.load(before.snapshot(), at(100))

    assert {c.alert.rule_id: c.reason for c in changes} == {"b": R.RULE_CHANGED, "c": R.RULE_REMOVED}
    assert [a.rule_id for a in after.snapshot()] == ["a"]
    assert after.subjects() == {A}


def test_the_same_digest_keeps_state_over_a_reload() -> None:
    """
    New words for a firing alert are told as such; a pending one goes on counting.
    """
    b = book(rule("fires"), rule("waits", hold=120))
    tell(b, 0, True)
    current: dict[Subject, Facts] = {A: {"component.bad": True, "component": "a"}}

    done = b.reload([rule("fires", annotations={"summary": "other"}), rule("waits", hold=120)], current, at(10))

    assert short(done.changes) == [(F, F, R.RULE_CHANGED, 10)]
    assert (done.added, done.changed, done.removed) == ((), (), ())
    assert b.next_wake == at(120)


def test_a_changed_rule_ends_its_alerts_and_begins_anew() -> None:
    """
    Not as recovered.
    """
    b = book(rule())
    tell(b, 0, True)

    done = b.reload([rule(hold=60)], {A: {"component.bad": True}}, at(10))

    assert short(done.changes) == [(F, N, R.RULE_CHANGED, 10), (N, P, R.CONDITION_TRUE, 10)]
    assert done.changed == ("r",)


@pytest.mark.parametrize("without", [[], [rule(enabled=False)]], ids=["removed", "disabled"])
def test_a_rule_that_is_taken_away_ends_its_alerts(without: list[Rule]) -> None:
    """
    Removed or switched off: not as recovered.
    """
    b = book(rule())
    tell(b, 0, True)

    done = b.reload(without, {A: {"component.bad": True}}, at(10))

    assert short(done.changes) == [(F, N, R.RULE_REMOVED, 10)]


def many(count: int, bad: FactValue | Unknown = True) -> dict[Subject, Facts]:
    return {subject(f"s{i}"): {"component.bad": bad} for i in range(count)}


def test_a_new_rule_that_is_true_of_too_many_is_told_as_one() -> None:
    """
    One digest alert with the number, and the reload says so.
    """
    b = book(most_at_once=20)

    done = b.reload([rule()], many(21), at(0))

    assert done.demoted == (("r", 21),)
    assert [(c.alert.subject, c.alert.state, c.alert.values) for c in done.changes] == [
        (digest_subject("r"), F, {COUNT: 21})
    ]
    assert b.demoted() == {"r": 21}


def test_a_new_rule_that_is_true_of_few_is_told_of_each() -> None:
    """
    The limit itself is few.
    """
    b = book(most_at_once=20)

    done = b.reload([rule()], many(20), at(0))

    assert (done.demoted, len(done.changes)) == ((), 20)


def test_a_digest_ends_when_it_is_true_of_none_and_the_rule_is_as_any_other() -> None:
    """
    Blindness does not end it.
    """
    b = book(most_at_once=2)
    b.reload([rule()], many(3), at(0))

    assert [c.alert.state for c in b.evaluate(many(3, bad=False) | many(1, bad=STALE), (), at(10))] == [F]
    ended = b.evaluate(many(1, bad=False), (), at(20))
    assert [(c.alert.subject, c.alert.state) for c in ended] == [(digest_subject("r"), N)]
    assert [c.alert.subject for c in b.evaluate(many(1), (), at(30))] == [subject("s0")]


def test_a_changed_rule_that_was_told_of_each_stays_so() -> None:
    """
    Only what would be new counts towards too many.
    """
    b = book(rule(), most_at_once=2)
    b.evaluate(many(3), (), at(0))

    done = b.reload([rule(keep=60)], many(4), at(10))

    assert done.demoted == ()
    assert len(b.snapshot()) == 4


def test_a_digest_ends_when_its_subjects_are_gone() -> None:
    """
    Deleted subjects are not counted for ever.
    """
    b = book(most_at_once=2)
    b.reload([rule()], many(3), at(0))

    changes = b.evaluate({}, list(many(3)), at(10))

    assert [(c.alert.subject, c.alert.state) for c in changes] == [(digest_subject("r"), N)]
    assert b.demoted() == {}


def test_a_digest_ends_with_its_rule() -> None:
    """
    As removed.
    """
    b = book(most_at_once=2)
    b.reload([rule()], many(3), at(0))

    done = b.reload([], many(3), at(10))

    assert [c.reason for c in done.changes] == [R.RULE_REMOVED]
    assert (b.demoted(), b.snapshot(), b.evaluate(many(3), (), at(20))) == ({}, [], [])


def test_a_digest_from_the_store_does_not_wait_for_what_never_comes() -> None:
    """
    After ten minutes, subjects that were not seen are gone.
    """
    before = book(most_at_once=2)
    before.reload([rule()], many(3), at(0))
    after = book(rule(), most_at_once=2)
    after.load(before.snapshot(), at(100))
    after.evaluate(many(1, bad=False), (), at(101))

    assert after.evaluate({}, (), at(699)) == []
    assert [c.alert.state for c in after.evaluate({}, (), at(700))] == [N]


def test_a_digest_from_the_store_waits_until_it_has_looked() -> None:
    """
    The first subject that is well does not end it.
    """
    before = book(most_at_once=2)
    before.reload([rule()], many(3), at(0))
    after = book(rule(), most_at_once=2)
    after.load(before.snapshot(), at(100))

    assert [c.alert.state for c in after.evaluate(many(1, bad=False), (), at(101))] == [F]
    assert [c.alert.state for c in after.evaluate(many(3, bad=False), (), at(102))] == [N]


def test_a_change_of_another_fact_evaluates_nothing() -> None:
    """
    A rule runs only when a fact that it reads changed value.
    """
    asked: list[Facts] = []

    def counting(facts: Facts) -> Evaluation:
        asked.append(facts)
        return is_bad(facts)

    b = book(rule(evaluate=counting))
    tell(b, 0, False)
    tell(b, 1, False, **{"component.other": 5})
    tell(b, 2, False)

    assert len(asked) == 1


def test_only_the_rules_that_read_what_changed_are_asked() -> None:
    """
    Another rule of the same subject costs nothing.
    """
    asked: list[str] = []

    def asks(name: str) -> Rule:
        def evaluate(facts: Facts) -> Evaluation:
            asked.append(name)
            return is_bad(facts)

        return rule(name, reads=frozenset({f"component.{name}"}), evaluate=evaluate)

    b = book(asks("x"), asks("y"))
    tell(b, 0, False, **{"component.x": 1, "component.y": 1})
    asked.clear()
    tell(b, 1, False, **{"component.x": 1, "component.y": 2})

    assert asked == ["y"]


def test_shown_values_of_a_firing_alert_are_told_when_they_change() -> None:
    """
    The message is edited; nothing fires anew.
    """
    b = book(rule(shows=frozenset({"component.gpus"})))
    tell(b, 0, True, **{"component.gpus": 2})

    changes = tell(b, 1, True, **{"component.gpus": 4})

    assert [(c.was, c.alert.state, c.alert.values["component.gpus"]) for c in changes] == [(F, F, 4)]


def test_labels_of_a_firing_alert_are_told_when_they_change() -> None:
    """
    A new owner is told although no rule reads the owner.
    """
    b = book(rule())
    tell(b, 0, True, owner="x")

    changes = tell(b, 1, True, owner="y")

    assert [(c.was, c.alert.labels["owner"], c.alert.labels["cluster"]) for c in changes] == [(F, "y", "prod")]
    assert tell(b, 2, True, owner="y") == []


def test_identity_does_not_depend_on_time() -> None:
    """
    The same rule on the same subject in the same cluster has one fingerprint for ever.
    """
    prints = set()
    for start in (0, 5000):
        b = book(rule())
        prints |= {c.alert.fingerprint for c in tell(b, start, True)}

    assert len(prints) == 1


def test_history_is_bounded_and_answers_for_a_time() -> None:
    """
    The last 20 transitions of an alert, and which was in force when.
    """
    b = book(rule())
    for i in range(40):
        tell(b, i, i % 2 == 0)

    kept = b.histories.of("r", A)

    assert len(kept) == KEPT_PER_ALERT
    now = b.histories.at("r", A, at(38.5))
    assert now is not None
    assert (now.state, now.at) == (F, at(38))
    assert b.histories.at("r", A, at(3)) is None


def test_flapping_does_not_grow() -> None:
    """
    Appointments that no longer count do not pile up.
    """
    b = book(rule(keep=10**6), rule("first", hold=50_000))
    b.evaluate({subject("b"): {"component.bad": True}}, (), at(0))
    for i in range(5000):
        tell(b, i * 2, True)
        tell(b, i * 2 + 1, False)

    assert len(b._standing._wake) < 1100


def test_histories_of_ended_alerts_are_bounded() -> None:
    """
    Memory grows with the cluster, not with what has come and gone.
    """
    b = book(rule())
    for i in range(KEPT_OF_ENDED + 50):
        b.evaluate({subject(f"s{i}"): {"component.bad": True}}, (), at(i))
        b.evaluate({}, [subject(f"s{i}")], at(i))

    assert len(b.histories._kept) == KEPT_OF_ENDED
    assert b.histories.of("r", subject(f"s{KEPT_OF_ENDED + 49}"))


STEPS = st.lists(
    st.tuples(
        st.integers(0, 90),
        st.sampled_from(["a", "b"]),
        st.sampled_from([True, False, STALE, "broken", "gone"]),
    ),
    max_size=25,
)


def play(steps: list[tuple[int, str, object]], *, twice: bool = False, ticks: bool = False) -> list[AlertChanged]:
    b = book(rule("slow", hold=120, keep=60), rule("quick"), rule("late", hold=30, keep=5))
    told, now = [], 0
    for wait, name, bad in steps:
        if ticks:
            while (wake := b.next_wake) is not None and wake < at(now + wait):
                told += b.tick(wake)
        now += wait
        who = subject(name)
        for _ in range(2 if twice else 1):
            if bad == "gone":
                told += b.evaluate({}, [who], at(now))
            else:
                told += b.evaluate({who: {"component.bad": bad}}, (), at(now))  # type: ignore[dict-item]
    told += b.tick(at(now + 7200))
    return told


@settings(deadline=None)
@given(STEPS)
def test_each_input_twice(steps: list[tuple[int, str, object]]) -> None:
    """
    At-least-once delivery is indistinguishable from exactly-once.
    """
    assert play(steps, twice=True) == play(steps)


@settings(deadline=None)
@given(STEPS)
def test_ticks_in_between_change_nothing(steps: list[tuple[int, str, object]]) -> None:
    """
    Called at every moment it asked for, or only when something happens: the same is told, with the same times.
    """
    assert play(steps, ticks=True) == play(steps)


@settings(deadline=None)
@given(STEPS)
def test_what_is_told_is_a_chain(steps: list[tuple[int, str, object]]) -> None:
    """
    Each change begins where the last one of its alert ended, time runs forward, and blindness never ends a firing one.
    """
    state: dict[str, AlertState] = {}
    last = at(0)
    for change in play(steps):
        key = change.alert.fingerprint
        assert change.was is state.get(key, N)
        assert change.at >= last
        state[key], last = change.alert.state, change.at
        if change.was is F and change.alert.state is N:
            assert change.reason in (R.CONDITION_FALSE, R.SUBJECT_GONE)


@settings(deadline=None)
@given(STEPS, st.integers(0, 25))
def test_a_restart_loses_no_firing_alert(steps: list[tuple[int, str, object]], cut: int) -> None:
    """
    Stopped anywhere, loaded, and told the present: firing alerts are those of a book that never stopped.
    """
    rules = [rule("quick"), rule("late", keep=5)]
    steady, other, now = book(*rules), book(*rules), 0
    present: dict[Subject, Facts] = {}
    for i, (wait, name, bad) in enumerate(steps):
        if i == cut:
            stored = other.snapshot()
            other = book(*rules)
            other.load(stored, at(now), down_since=at(now))
            other.evaluate(present, (), at(now))
        now += wait
        facts: dict[Subject, Facts] = {} if bad == "gone" else {subject(name): {"component.bad": bad}}  # type: ignore[dict-item]
        gone = [subject(name)] if bad == "gone" else []
        for b in (steady, other):
            b.evaluate(facts, gone, at(now))
        present = {s: f for s, f in present.items() if s not in gone} | facts
    for b in (steady, other):
        b.tick(at(now + 10))

    assert {a.fingerprint for a in other.snapshot()} == {a.fingerprint for a in steady.snapshot()}


@settings(deadline=None)
@given(st.integers(0, 600), st.integers(0, 600), st.integers(1, 2000))
def test_the_seconds_of_firing_and_resolving(hold: int, keep: int, lasts: int) -> None:
    """
    True for `lasts` seconds fires iff that is longer than `for`, at `for`; it resolves `keep` after its end.
    """
    b = book(rule(hold=hold, keep=keep))
    told = tell(b, 0, True) + tell(b, lasts, False) + b.tick(at(10_000))

    edges = [(c.alert.state, c.at) for c in told if c.was is not c.alert.state and F in (c.was, c.alert.state)]

    assert edges == ([(F, at(hold)), (N, at(lasts + keep))] if lasts > hold else [])


def test_rules_of_other_kinds_are_not_asked() -> None:
    """
    A subject costs nothing where no rule looks at its kind.
    """
    b = book()

    assert tell(b, 0, True) == []
    assert b._seen == {}


def test_a_late_event_does_not_turn_the_clock_back() -> None:
    """
    What arrives with an older time counts as of the newest.
    """
    b = book(rule(hold=60))
    b.tick(at(100))

    changes = tell(b, 10, True)

    assert short(changes) == [(N, P, R.CONDITION_TRUE, 100)]
    assert b.next_wake == at(160)


def test_replaced_rules_are_compared_by_digest_only() -> None:
    """
    Another object with the same digest is the same rule.
    """
    b = book(rule(hold=60))
    tell(b, 0, True)

    done = b.reload(
        [replace(rule(hold=60), description="new words")], {A: {"component.bad": True, "component": "a"}}, at(10)
    )

    assert done.changes == []
    assert b.next_wake == at(0) + timedelta(seconds=60)
