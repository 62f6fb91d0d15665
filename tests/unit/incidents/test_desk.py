"""From alerts to messages: who is told what, once, and why not more."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from sevenhop.core.alerts.alert import ChangeReason
from sevenhop.core.alerts.rule import Severity
from sevenhop.core.effects import Notify, Role
from sevenhop.core.events import Outcome, Silenced
from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.incidents.attending import LARGE
from sevenhop.core.incidents.incident import IncidentStatus, NotifyReason, incident_key
from sevenhop.core.incidents.matchers import parse_matchers
from sevenhop.core.incidents.routing import Route
from sevenhop.core.incidents.settings import DeskSettings
from sevenhop.core.subject import Hop, Subject, SubjectKind
from tests.unit.incidents.scene import (
    CLUSTER,
    FAILS_HERE,
    H100,
    IMAGE,
    LIMITED,
    LOAD_FAILS,
    NO_ENDPOINTS,
    NOON,
    OVERDUE,
    RESTARTS,
    SHORT,
    SHORTAGE,
    Scene,
    alert,
    at,
    capacity,
    component,
    context,
    ends,
    fires,
    node,
    pool,
    reasons,
    recalled,
    service,
    waiting,
)

PENDING = {Hop.SCHEDULING: ["d-1"], Hop.SERVICE: ["d-1"]}
MINUTE, HOUR = 60, 3600


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.contexts[component()] = context(component(), PENDING, desired=4, ready=3, minimum=4, diagnosis=SHORTAGE)
    made.contexts[service()] = context(service(), PENDING)
    return made


def texts(notify: Notify, role: Role) -> list[str]:
    return [line.text for line in notify.message.lines if line.role is role]


def decided(scene: Scene, receiver: str = "console") -> list[str]:
    (incident,) = scene.desk.incidents.values()
    return [noted.reason.value for noted in scene.desk.decisions.of(incident.id) if noted.receiver == receiver]


# The first message


def test_the_first_message_waits_for_causes(scene: Scene) -> None:
    """Nothing is told before group_wait, and then on the second."""
    assert scene.step(0, fires(alert(SHORT, component()))) == []
    assert scene.step(4.9) == []
    assert decided(scene) == ["not_due_group_wait"]
    assert scene.desk.next_wake == at(5)

    (notify,) = scene.step(5)

    assert (notify.reason, notify.anew, notify.revision) == ("first_firing", True, 1)
    assert notify.id == f"{notify.incident}/console/1"
    assert notify.message.title == f"llama-70b/decode waits for 2 × {H100} · 3/4 ready"


def test_a_symptom_that_comes_first_is_folded_under_its_cause(scene: Scene) -> None:
    """One message, of the cause, although the symptom fired first; its severity counts."""
    early = alert(NO_ENDPOINTS, service(), since=2)
    cause = alert(SHORT, component(), since=1, tier="standard")
    scene.step(2, fires(early, 2))
    scene.step(4, fires(cause, 4))

    sent = scene.until(60)

    assert [n.message.title.split(" waits")[0] for n in sent] == ["llama-70b/decode"]
    assert sent[0].message.severity is Severity.CRITICAL
    open_ones = [i for i in scene.desk.incidents.values() if i.is_open]
    assert [(i.cause, i.alerts, i.symptoms) for i in open_ones] == [
        (pool(), (cause.fingerprint,), (early.fingerprint,))
    ]
    assert scene.desk.standing(early.fingerprint, at(60)).explained_by == (f"{SHORT.id} on {component()}",)


def test_what_ends_within_group_wait_is_never_told(scene: Scene) -> None:
    """An alert that fires and resolves before anybody was told stays untold, and the reason is named."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(3, ends(firing, 3))

    assert scene.until(HOUR - 1) == []
    assert decided(scene, "") == ["not_due_never_told"]


def test_twelve_workloads_that_wait_for_one_pool_are_one_incident() -> None:
    """One message with a waiting list by tier, not twelve."""
    scene = Scene()
    tiers = ["critical"] * 2 + ["standard"] * 4 + ["batch"] * 6
    queue = tuple(waiting(f"w-{n}", tier) for n, tier in enumerate(tiers))
    changes = []
    for n, tier in enumerate(tiers):
        subject = component(f"w-{n}/decode")
        scene.contexts[subject] = context(
            subject, {Hop.SCHEDULING: [f"w-{n}-x"]}, diagnosis=SHORTAGE, pool=capacity(waiting=queue)
        )
        changes.append(fires(alert(SHORT, subject, tier=tier)))
    scene.step(0, *changes)

    (notify,) = scene.until(30)

    assert notify.message.title == f"w-0/decode waits for 2 × {H100} (and 11 more)"
    queue_lines = [line for line in notify.message.lines if line.role is Role.WAITING]
    assert [line.label for line in queue_lines] == ["Waiting, critical", "Waiting, standard", "Waiting, batch"]
    assert "w-0/decode 2 GPUs" in queue_lines[0].text
    (incident,) = scene.desk.incidents.values()
    assert len(incident.workloads) == 12


def test_a_pool_that_does_not_grow_joins_its_shortage(scene: Scene) -> None:
    """Both are one trouble of one object: whoever was told of it is not woken again because no node comes."""
    scene.step(0, fires(alert(SHORT, component())))
    scene.step(5)

    sent = scene.step(900, fires(alert(LIMITED, pool(), 900), 900))
    again = scene.until(1800)

    assert not [n for n in (*sent, *again) if n.anew]
    assert len(scene.desk.incidents) == 1


def test_what_breaks_after_the_first_was_mended_is_told_anew(scene: Scene) -> None:
    """The image is pulled at last, and the container crashes: the same incident, and a page of its own."""
    first, second = alert(IMAGE, component()), alert(RESTARTS, component(), 100)
    scene.step(0, fires(first))
    scene.step(5)
    joined = scene.step(100, fires(second, 100))

    ended = scene.step(200, ends(first, 200))
    again = scene.until(1800)

    assert not [n for n in joined if n.anew]
    assert [(n.reason, n.anew) for n in ended] == [("new_cause", True)]
    assert not [n for n in again if n.anew]
    assert len(scene.desk.incidents) == 1


def test_what_only_lingers_wakes_nobody(scene: Scene) -> None:
    """A rule that keeps firing for longer than the one that was told has nothing new to say."""
    first, second = alert(IMAGE, component()), alert(RESTARTS, component(), 100)
    scene.step(0, fires(first))
    scene.step(5)
    scene.step(100, fires(second, 100))
    lingering = replace(second, false_since=at(150))
    scene.step(150, fires(lingering, 150, again=True))

    sent = [*scene.step(200, ends(first, 200)), *scene.until(400)]

    assert not [n for n in sent if n.anew]


# What posts anew, and what edits


def test_severity_up_posts_anew_and_down_edits(scene: Scene) -> None:
    """Edits notify nobody, so a page is a new post; it does not page again at the same height."""
    low = alert(SHORT, component(), tier="standard")
    high = alert(SHORT, component(), tier="critical")
    scene.step(0, fires(low))
    scene.step(5)

    up = scene.step(20, fires(high, 20, again=True))
    down = scene.step(40, fires(low, 40, again=True))
    up_again = scene.step(60, fires(high, 60, again=True))

    assert [(n.reason, n.anew, n.message.severity.value) for n in up + down + up_again] == [
        ("severity_up", True, "critical"),
        ("changed", False, "warning"),
        ("changed", False, "critical"),
    ]
    assert [n.revision for n in scene.sent] == [1, 2, 3, 4]


def test_other_changes_edit_in_place(scene: Scene) -> None:
    """A second workload of the same shortage is news for the message, not for the pager."""
    scene.step(0, fires(alert(SHORT, component())))
    scene.step(5)
    other = component("other/decode")
    scene.contexts[other] = context(other, {Hop.SCHEDULING: ["o-1"]}, diagnosis=SHORTAGE)

    (notify,) = scene.step(10, fires(alert(SHORT, other, tier="batch"), 10))

    assert (notify.reason, notify.anew) == ("changed", False)
    assert notify.message.title.endswith("(and 1 more)")


def test_a_new_pod_name_is_no_news(scene: Scene) -> None:
    """The pod re-created under another name: no post, and no edit for the name alone within a minute."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.contexts[component()] = context(
        component(), {Hop.SCHEDULING: ["d-2"], Hop.SERVICE: ["d-2"]}, desired=4, ready=3, minimum=4, diagnosis=SHORTAGE
    )

    soon = scene.step(10, fires(replace(firing, values={"component.waiting.gpus": 2}), 10, again=True))
    later = scene.until(200)

    assert soon == []
    assert [(n.reason, n.anew) for n in later] == [("changed", False)]
    assert texts(later[0], Role.COMMAND) == ["kubectl -n prod describe pod d-2"]


def test_edits_of_a_moment_are_one(scene: Scene) -> None:
    """What changes ten times within a second is written once more, with the last state."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    sent: list[Notify] = []
    for n in range(10):
        changed = replace(firing, values={"component.waiting.gpus": 3 + n})
        sent += scene.step(6.5 + n / 20, fires(changed, 6.5 + n / 20, again=True))
    sent += scene.until(30)

    assert reasons(sent) == ["changed", "changed"]
    assert sent[-1].message.title.startswith("llama-70b/decode waits for 12")


def test_reminders_are_posts_and_edits_do_not_delay_them(scene: Scene) -> None:
    """The interval counts from the last post that notified people."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.step(HOUR, fires(replace(firing, values={"component.waiting.gpus": 4}), HOUR, again=True))

    sent = scene.until(9 * HOUR)

    loud = [(n.reason, (n.message.at - NOON).total_seconds()) for n in sent if n.anew]
    assert loud == [("repeat_interval_elapsed", 4 * HOUR + 5), ("repeat_interval_elapsed", 8 * HOUR + 5)]


def test_it_is_as_old_as_its_first_cause(scene: Scene) -> None:
    """While it is open it keeps its beginning, also when what began it has ended."""
    first, second = alert(SHORT, component(), -30), alert(SHORT, component("b/decode"), -10)
    scene.step(0, fires(first), fires(second))
    scene.step(5)

    (notify,) = scene.step(60, ends(first, 60))

    assert notify.message.since == at(-30)


def test_what_a_message_is_called_stays(scene: Scene) -> None:
    """The first rule and the labels of an end are those of the beginning, whatever joined and left between."""
    first, second = alert(SHORT, component()), alert(LIMITED, pool(), 20)
    scene.step(0, fires(first))
    scene.step(5)
    joined = scene.step(20, fires(second, 20))
    scene.step(40, ends(first, 40))
    (end,) = scene.step(60, ends(second, 60))

    assert [n.causes for n in (scene.sent[0], *joined, end)] == [
        (SHORT.id,),
        (SHORT.id, LIMITED.id),
        (SHORT.id, LIMITED.id),
    ]
    assert end.message.severity is Severity.CRITICAL


def test_a_receiver_that_is_gone_is_told_nothing(scene: Scene) -> None:
    """Taken out of the settings, it is no address any more, whatever it was told before."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.settings = DeskSettings(receivers=("slack",))
    scene.restart()

    sent = scene.step(60, ends(firing, 60))

    assert sent == []


# The end


@pytest.mark.parametrize(
    ("reason", "expected", "said"),
    [
        (ChangeReason.CONDITION_FALSE, "recovered", "recovered"),
        (ChangeReason.SUBJECT_GONE, "subject_gone", "not the same as recovered"),
        (ChangeReason.RULE_REMOVED, "rule_removed", "rule was removed"),
        (ChangeReason.RULE_CHANGED, "rule_changed", "rule was changed"),
    ],
)
def test_the_end_names_its_reason(scene: Scene, reason: ChangeReason, expected: str, said: str) -> None:
    """Resolved is an edit; only what was seen to be well again is called recovered."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)

    (notify,) = scene.step(90, ends(firing, 90, reason))

    assert (notify.reason, notify.anew, notify.message.status) == ("resolved", False, "resolved")
    assert notify.message.end_reason == expected
    assert notify.message.title == f"llama-70b/decode waits for 2 × {H100}"
    assert said in texts(notify, Role.NOTE)[0]
    assert "12:01:30" in texts(notify, Role.NOTE)[0]
    assert texts(notify, Role.WHY) == [SHORTAGE.summary]


def test_a_cause_that_ends_leaves_its_symptoms_as_their_own_incident(scene: Scene) -> None:
    """What still fires is told by itself; the message of the cause says that something goes on."""
    cause, symptom = alert(SHORT, component()), alert(NO_ENDPOINTS, service(), since=1)
    scene.step(0, fires(cause))
    scene.step(1, fires(symptom, 1))
    scene.step(5)
    scene.contexts[service()] = context(service(), {Hop.SERVICE: ["d-1"]})

    (green,) = scene.step(100, ends(cause, 100))
    later = scene.until(200)

    assert green.message.end_reason == "recovered"
    assert "1 symptom still fired" in texts(green, Role.NOTE)[0]
    assert [(n.reason, n.anew) for n in later] == [("first_firing", True)]
    assert later[0].incident != green.incident
    assert (later[0].message.at - at(100)) == scene.settings.rehome_wait


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_symptom_that_is_only_kept_is_not_told_when_its_cause_ends(comes_back: bool) -> None:
    """It is not true any more and ends by itself: nobody hears of it, unless it comes true again."""
    kept_rule = replace(NO_ENDPOINTS, keep_firing=timedelta(minutes=5))
    scene = Scene(rules=(SHORT, kept_rule))
    scene.contexts[component()] = context(component(), PENDING, desired=4, ready=3, minimum=4, diagnosis=SHORTAGE)
    scene.contexts[service()] = context(service(), PENDING)
    cause, symptom = alert(SHORT, component()), alert(kept_rule, service(), since=1)
    scene.step(0, fires(cause))
    scene.step(1, fires(symptom, 1))
    scene.step(5)
    scene.step(90, fires(replace(symptom, false_since=at(90)), 90, again=True))
    (green,) = scene.step(100, ends(cause, 100))
    assert green.message.status == "resolved"

    later = scene.until(200)
    if comes_back:
        later += scene.step(200, fires(symptom, 200, again=True)) + scene.until(300)
    later += scene.until(390) + scene.step(390, ends(symptom, 390)) + scene.until(500)

    assert [(n.reason, n.anew) for n in later][:1] == ([("first_firing", True)] if comes_back else [])


def test_a_cause_found_later_takes_the_incident_over(scene: Scene) -> None:
    """The symptom's own message ends as explained, not as recovered, and says by what."""
    symptom = alert(LOAD_FAILS, component(), since=10)
    scene.contexts[component()] = context(component(), {Hop.MODEL: ["d-1"]}, places={"d-1": "gpu-05"})
    scene.contexts[node()] = context(node(), places={"d-1": "gpu-05"})
    scene.step(10, fires(symptom, 10))
    scene.step(15)

    cause = alert(FAILS_HERE, node(), since=5)
    sent = scene.step(60, fires(cause, 60)) + scene.until(70)

    assert [(n.reason, n.anew, n.message.end_reason) for n in sent] == [
        ("resolved", False, "explained"),
        ("first_firing", True, ""),
    ]
    assert "fails-on-one-node" in texts(sent[0], Role.NOTE)[0]
    assert sent[1].message.severity is Severity.CRITICAL


def test_an_unexplained_pod_makes_a_symptom_its_own_incident_again(scene: Scene) -> None:
    """Once the cause does not cover everything any more, it hides nothing."""
    cause, symptom = alert(SHORT, component()), alert(NO_ENDPOINTS, service(), since=1)
    scene.step(0, fires(cause))
    scene.step(1, fires(symptom, 1))
    scene.step(5)
    scene.contexts[service()] = context(service(), {Hop.SERVICE: ["d-1", "d-9"]})

    sent = scene.step(60, fires(replace(symptom, values={"x": 1}), 60, again=True)) + scene.until(100)

    assert [(n.reason, n.cause) for n in sent if n.anew] == [("first_firing", str(service()))]
    assert len([i for i in scene.desk.incidents.values() if i.is_open]) == 2


# Coming back


def test_what_comes_back_at_once_is_the_same_episode_posted_anew(scene: Scene) -> None:
    """A page after a green message is never only an edit."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.step(60, ends(firing, 60))

    sent = scene.step(120, fires(replace(firing, since=at(120)), 120)) + scene.until(130)

    assert [(n.reason, n.anew, n.episode) for n in sent] == [("changed", False, 1), ("reopened", True, 1)]
    assert sent[-1].message.at == at(125)


def test_what_comes_back_later_is_a_new_episode(scene: Scene) -> None:
    """Identity has no time in it; the episode counts."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.step(60, ends(firing, 60))
    scene.until(1200)

    sent = scene.step(1200, fires(replace(firing, since=at(1200)), 1200)) + scene.until(1210)

    assert [(n.reason, n.key, n.episode) for n in sent] == [
        ("first_firing", incident_key(CLUSTER, pool(), "scheduling"), 2)
    ]


def test_episodes_are_counted_after_the_incident_is_forgotten(scene: Scene) -> None:
    """Hours later, and over a restart, the next episode has the next number."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.step(60, ends(firing, 60))
    scene.until(3 * HOUR)
    assert not scene.desk.incidents
    scene.restart()

    scene.step(4 * HOUR, fires(replace(firing, since=at(4 * HOUR)), 4 * HOUR))

    assert [n.episode for n in scene.until(4 * HOUR + 10)] == [2]


def test_flapping_is_told_by_edits_until_it_stays(scene: Scene) -> None:
    """After a few openings within the hour the pager is quiet; what then stays open is told aloud again."""
    firing = alert(SHORT, component())
    for n in range(8):
        start = n * 120
        scene.until(start)
        scene.step(start, fires(replace(firing, since=at(start)), start))
        scene.until(start + 60)
        scene.step(start + 60, ends(firing, start + 60))
    loud = [n for n in scene.sent if n.anew]
    assert reasons(loud) == ["first_firing", "reopened", "reopened"]
    assert "not_due_flapping" in decided(scene, "console (anew)")

    sent = scene.step(1000, fires(replace(firing, since=at(1000)), 1000))
    sent += scene.until(1000 + 20 * MINUTE)

    assert [(n.reason, n.message.at) for n in sent if n.anew] == [("reopened", at(1000 + 10 * MINUTE))]
    assert any(line.label == "Flapping" for n in sent for line in n.message.lines)


def test_slow_flapping_opens_no_episode_after_episode(scene: Scene) -> None:
    """What comes back every few minutes is the same episode from the fourth time on, and quiet."""
    firing = alert(SHORT, component())
    for n in range(7):
        start = n * 7 * MINUTE
        scene.until(start)
        scene.step(start, fires(replace(firing, since=at(start)), start))
        scene.until(start + 60)
        scene.step(start + 60, ends(firing, start + 60))

    assert [(n.reason, n.episode) for n in scene.sent if n.anew] == [("first_firing", e) for e in (1, 2, 3)]
    assert scene.sent[-1].episode == 3


def test_flapping_hides_no_higher_severity(scene: Scene) -> None:
    """Only what was told before is withheld."""
    firing = alert(SHORT, component(), tier="standard")
    for n in range(6):
        start = n * 120
        scene.step(start, fires(replace(firing, since=at(start)), start))
        scene.until(start + 60)
        scene.step(start + 60, ends(firing, start + 60))
    worse = alert(SHORT, component(), since=800)

    sent = scene.step(800, fires(worse, 800))

    assert [(n.reason, n.anew) for n in sent] == [("severity_up", True)]


# Level, not edge


def test_the_same_changes_again_ask_for_nothing(scene: Scene) -> None:
    """Duplicates and replays are indistinguishable from one delivery."""
    firing = fires(alert(SHORT, component()))
    scene.step(0, firing)
    scene.step(0, firing)
    scene.step(5)

    assert scene.step(5, firing) == []
    assert scene.step(6, firing, firing) == []


def test_a_restart_changes_nothing(scene: Scene) -> None:
    """Loaded from its rows, before and after its facts are known again, the desk says nothing new."""
    cause, symptom = alert(SHORT, component()), alert(NO_ENDPOINTS, service(), since=1)
    scene.step(0, fires(cause))
    scene.step(1, fires(symptom, 1))
    scene.step(5)
    before = {key: incident.members for key, incident in scene.desk.incidents.items()}
    known, scene.contexts = scene.contexts, {}

    scene.restart()
    quiet = scene.step(20) + scene.step(21, fires(replace(cause, blind_since=at(5), missing=("x",)), 21, again=True))
    scene.contexts = known
    quiet += scene.step(22, fires(symptom, 22, again=True)) + scene.step(23, fires(cause, 23, again=True))
    quiet += scene.until(300)

    assert quiet == []
    assert {key: incident.members for key, incident in scene.desk.incidents.items()} == before


def test_a_restart_within_group_wait_loses_no_page(scene: Scene) -> None:
    """What was not told yet is told by the next process, once."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.restart()

    sent = scene.step(20) + scene.step(22, fires(replace(firing, values={"x": 1}), 22, again=True)) + scene.until(300)

    assert [(n.reason, n.anew) for n in sent] == [("first_firing", True)]


def test_alerts_whose_incident_was_lost_find_their_place(scene: Scene) -> None:
    """A damaged row costs a second message at worst, never the page."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.rows = {place: row for place, row in scene.rows.items() if place[0] != "incidents"}
    scene.restart()

    sent = scene.step(20) + scene.until(120)

    assert reasons(sent) == ["first_firing"]


def test_a_symptom_whose_cause_was_lost_goes_on_by_itself(scene: Scene) -> None:
    """The row of the alert that explained it is damaged: it is told as its own incident, and the rest goes on."""
    cause, symptom = alert(SHORT, component()), alert(NO_ENDPOINTS, service(), since=1)
    scene.step(0, fires(cause))
    scene.step(1, fires(symptom, 1))
    scene.step(5)
    del scene.rows[("alerts", cause.fingerprint)]
    scene.restart()

    sent = scene.step(20) + scene.until(120)

    assert [(n.reason, n.cause, n.message.end_reason) for n in sent] == [
        ("resolved", str(pool()), "state_lost"),
        ("first_firing", str(service()), ""),
    ]


def test_after_an_empty_start_the_channel_is_asked(scene: Scene) -> None:
    """With no store the first message asks the channel to adopt what it still shows; later ones do not."""
    firing = alert(SHORT, component())
    scene.restart(keep=False)
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    (second,) = scene.step(20, fires(replace(firing, values={"component.waiting.gpus": 5}), 20, again=True))

    assert (first.adopt, second.adopt) == (True, False)
    scene.step(60, ends(firing, 60))
    scene.until(3 * HOUR)
    scene.restart()
    scene.step(4 * HOUR, fires(firing, 4 * HOUR))
    (later,) = scene.until(4 * HOUR + 10)
    assert not later.adopt


# What channels answer


def test_the_channels_own_id_comes_back_with_the_next_edit(scene: Scene) -> None:
    """The reference of an outcome is kept, also over a restart, and an outcome alone asks for nothing."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.arrives(first, "C1/17.1")
    assert scene.step(5.5) == []
    scene.restart()

    (edit,) = scene.step(20, fires(replace(firing, values={"component.waiting.gpus": 5}), 20, again=True))

    assert edit.reference == "C1/17.1"


def test_an_answer_without_an_id_keeps_the_one_we_know(scene: Scene) -> None:
    """A channel that does not name the message again has not lost it."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.arrives(first, "C1/17.1")
    scene.arrives(first, "")

    (edit,) = scene.step(20, fires(replace(firing, values={"component.waiting.gpus": 5}), 20, again=True))

    assert edit.reference == "C1/17.1"


def test_outcomes_of_another_episode_are_not_ours(scene: Scene) -> None:
    """An outcome that comes late, of an episode that is over, changes nothing."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.step(60, ends(firing, 60))
    scene.step(1200, fires(replace(firing, since=at(1200)), 1200))
    scene.until(1210)
    before = dict(scene.desk.incidents)

    scene.arrives(first, "C1/17.1")
    scene.desk.hear(Outcome(at=at(1300), effect_id="not/an/effect of ours", delivered=True, reference="x"))

    assert scene.desk.incidents == before


def test_what_was_refused_for_good_is_tried_again_while_it_is_true(scene: Scene) -> None:
    """A page that a channel refuses is not lost: when somebody has mended it, it comes."""
    scene.step(0, fires(alert(SHORT, component())))
    (first,) = scene.step(5)
    scene.desk.hear(Outcome(at=at(6), effect_id=first.id, delivered=False, detail="channel_not_found"))
    scene.step(6)

    assert scene.until(300) == []
    assert "not_due_refused" in decided(scene)
    again = scene.until(400)
    assert [(n.reason, n.anew, n.revision) for n in again] == [("first_firing", True, 2)]
    assert again[0].message.at == at(306)


def test_a_refused_page_that_ended_is_not_resolved_either(scene: Scene) -> None:
    """Who never saw it has nothing to close."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.desk.hear(Outcome(at=at(6), effect_id=first.id, delivered=False, detail="channel_not_found"))

    assert scene.step(400, ends(firing, 400)) == []


def test_an_end_that_was_refused_is_shown_later(scene: Scene) -> None:
    """A message that says "firing" for ever would be a lie: its end is tried again."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.arrives(first, "C1/17.1")
    (end,) = scene.step(60, ends(firing, 60))
    scene.until(100)
    scene.desk.hear(Outcome(at=at(101), effect_id=end.id, delivered=False, detail="not_in_channel"))
    scene.step(101)

    sent = scene.until(HOUR)

    assert [(n.reason, n.message.at, n.message.end_reason) for n in sent] == [("resolved", at(401), "recovered")]


def test_an_emptied_store_is_filled_from_the_channel(scene: Scene) -> None:
    """What is still true is edited under its old episode, and nobody is paged twice."""
    scene.restart(keep=False)
    scene.desk.hear(recalled())
    assert scene.step(0) == []

    sent = scene.step(30, fires(alert(SHORT, component()), 30)) + scene.until(HOUR)

    assert [(n.reason, n.anew, n.episode, n.reference) for n in sent[:1]] == [("changed", False, 3, "C1/9.9")]
    assert sent[0].revision > 7
    assert not [n for n in sent if n.anew]


def test_what_a_channel_shows_and_nothing_confirms_is_closed_without_green(scene: Scene) -> None:
    """After a lost store, an open message whose alert never fires again does not stay red for ever."""
    scene.restart(keep=False)
    scene.desk.hear(recalled())
    scene.step(0)
    assert scene.until(9 * MINUTE) == []

    (notify,) = scene.until(11 * MINUTE)

    assert (notify.reason, notify.message.end_reason, notify.reference) == ("resolved", "state_lost", "C1/9.9")
    assert notify.message.title == "llama-70b/decode waits"


def test_episodes_are_read_back_from_closed_messages(scene: Scene) -> None:
    """The number goes on where the channel left off."""
    scene.restart(keep=False)
    scene.desk.hear(recalled(is_open=False))
    scene.step(30, fires(alert(SHORT, component()), 30))

    (notify,) = scene.until(40)

    assert (notify.reason, notify.episode, notify.adopt) == ("first_firing", 4, False)


def test_another_clusters_incidents_are_left_alone(scene: Scene) -> None:
    """Several installations may speak in one channel; what is not ours is neither adopted nor closed."""
    scene.restart(keep=False)
    scene.desk.hear(recalled(key=incident_key("prod-us", pool(), "scheduling")))

    assert scene.step(0) + scene.until(HOUR) == []
    assert not scene.desk.incidents


@pytest.mark.parametrize("bad", [{"cause": "nonsense"}, {"severity": "loud"}])
def test_what_a_channel_says_may_be_nonsense(scene: Scene, bad: dict[str, str]) -> None:
    """Metadata that cannot be read are named and left out."""
    scene.desk.hear(recalled(**bad))

    assert not scene.desk.incidents
    assert len(scene.desk.problems) == 1


# Silences


def silence(until: float, *where: str, silence_id: str = "s-1", start: float = 0) -> Silenced:
    return Silenced(
        at=at(start),
        silence_id=silence_id,
        matchers={},
        author="kim",
        comment="known",
        expires_at=at(until),
        where=where,
    )


def test_a_silenced_incident_is_told_when_the_silence_ends(scene: Scene) -> None:
    """Quiet while it holds; what is still true afterwards is told on the second."""
    scene.desk.hear(silence(600, "namespace=prod"))
    scene.step(0, fires(alert(SHORT, component())))
    assert scene.until(599) == []
    assert decided(scene) == ["not_due_silenced"]

    assert [(n.reason, n.message.at) for n in scene.until(700)] == [("first_firing", at(600))]


def test_a_silence_never_resolves_and_hides_no_end(scene: Scene) -> None:
    """The message shows who silenced it; its end is still shown."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(5)
    scene.desk.hear(silence(6000, "tier=critical", start=20))

    (shown,) = scene.step(20)
    (incident,) = scene.desk.incidents.values()
    (end,) = scene.step(60, ends(firing, 60))

    assert (shown.reason, shown.anew) == ("changed", False)
    assert any("by kim until 13:40:00 UTC: known" in text for text in texts(shown, Role.NOTE))
    assert incident.status is IncidentStatus.OPEN
    assert end.message.end_reason == "recovered"


def test_one_member_that_is_not_silenced_keeps_the_incident_loud(scene: Scene) -> None:
    """A silence on one workload does not hide another that waits for the same pool."""
    scene.desk.hear(silence(6000, "workload=llama-70b"))
    scene.step(0, fires(alert(SHORT, component())))
    assert scene.until(30) == []
    other = component("other/decode")
    scene.contexts[other] = context(other, {Hop.SCHEDULING: ["o-1"]})

    assert reasons(scene.step(30, fires(alert(SHORT, other), 30))) == ["first_firing"]


def test_severity_that_rose_under_a_silence_is_told_afterwards(scene: Scene) -> None:
    """What is owed is withheld, not forgotten."""
    scene.step(0, fires(alert(SHORT, component(), tier="standard")))
    scene.step(5)
    scene.desk.hear(silence(600, "namespace=prod", start=10))
    scene.step(10)

    quiet = scene.step(60, fires(alert(SHORT, component()), 60, again=True)) + scene.until(599)
    loud = scene.until(650)

    assert [(n.anew, n.message.severity.value) for n in quiet] == [(False, "critical")]
    assert "not_due_silenced" in decided(scene, "console (anew)")
    assert [(n.reason, n.anew) for n in loud] == [("severity_up", True)]


def test_a_silence_survives_a_resolve_a_new_pod_and_a_restart(scene: Scene) -> None:
    """It is bound to labels, and ends at its own time only."""
    scene.desk.hear(silence(6000, "workload=llama-70b"))
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    scene.step(30, ends(firing, 30))
    scene.restart()
    scene.contexts[component()] = context(component(), {Hop.SCHEDULING: ["d-77"]})

    assert scene.step(60, fires(replace(firing, since=at(60)), 60)) + scene.until(3000) == []
    assert [s.id for s in scene.desk.silences(at(3000))] == ["s-1"]


def test_a_silence_can_be_taken_back(scene: Scene) -> None:
    """Expired by hand, it stops to hold at once."""
    scene.desk.hear(silence(6000, "workload=llama-70b"))
    scene.step(0, fires(alert(SHORT, component())))
    assert scene.until(60) == []

    scene.desk.hear(silence(59, "workload=llama-70b", start=60))

    assert reasons(scene.step(60)) == ["first_firing"]
    assert scene.desk.silences(at(60)) == []


def test_a_silence_of_one_incident_covers_whatever_joins_it(scene: Scene) -> None:
    """Bound to the incident's key, as a button in a message makes it."""
    key = incident_key(CLUSTER, pool(), "scheduling")
    scene.desk.hear(silence(6000, f"incident={key}"))
    scene.step(0, fires(alert(SHORT, component())), fires(alert(NO_ENDPOINTS, service(), 1)))

    assert scene.until(3000) == []


def test_a_silence_of_everything_is_refused_and_named(scene: Scene) -> None:
    """It would hide what nobody thought of."""
    scene.desk.hear(silence(6000, "namespace=~.*"))
    scene.step(0, fires(alert(SHORT, component())))

    assert reasons(scene.until(30)) == ["first_firing"]
    assert len(scene.desk.problems) == 1


# Routes


def test_each_member_is_routed_and_everybody_hears_the_end() -> None:
    """A symptom's owner is told too; whoever was told once is told how it ended."""
    routes = (
        Route(matchers=parse_matchers(["owner=web"]), receiver="web"),
        Route(matchers=parse_matchers(["severity=critical"]), receiver="pager"),
    )
    settings = DeskSettings(receivers=("all", "pager", "web"), route=Route(receiver="all", routes=routes))
    scene = Scene(settings)
    scene.contexts[component()] = context(component(), PENDING)
    scene.contexts[service()] = context(service(), PENDING)
    cause, symptom = alert(SHORT, component(), tier="standard"), alert(NO_ENDPOINTS, service(), 1, owner="web")

    scene.step(0, fires(cause), fires(symptom, 0))
    first = scene.step(5)
    scene.step(60, ends(symptom, 60))
    last = scene.step(70, ends(cause, 70))

    assert [n.receiver for n in first] == ["pager", "web"]
    assert [n.receiver for n in last] == ["pager", "web"]
    assert {n.message.end_reason for n in last} == {"recovered"}


# Maintenance


def drained(scene: Scene, subject: Subject, worked_on: tuple[str, ...] = ("gpu-05",)) -> None:
    scene.contexts[subject] = context(
        subject, {Hop.POD: ["d-1"]}, places={"d-1": "gpu-05"}, maintenance=worked_on, desired=4, ready=3
    )


def test_what_breaks_on_a_node_under_maintenance_is_folded(scene: Scene) -> None:
    """A drain folds everything under it; what still fires afterwards is told."""
    drained(scene, component())
    firing = alert(IMAGE, component())
    scene.step(0, fires(firing))
    assert scene.until(600) == []
    standing = scene.desk.standing(firing.fingerprint, at(600))
    assert standing.maintained_node == "gpu-05"
    assert standing.incident is not None
    assert (standing.incident.cause, standing.incident.family) == (node(), "maintenance")

    drained(scene, component(), ())
    scene.step(700, fires(replace(firing, values={"x": 1}), 700, again=True))

    assert reasons(scene.until(760)) == ["first_firing"]


def test_maintenance_hides_what_users_feel_for_a_while(scene: Scene) -> None:
    """A node may stay cordoned for days: what is critical and below its minimum is told after half an hour."""
    drained(scene, component())
    scene.step(0, fires(alert(IMAGE, component(), tier="critical")))
    assert scene.until(1799) == []
    sent = scene.until(1801)
    assert reasons(sent) == ["first_firing"]
    assert "image-not-pulled (gpu-05 is under maintenance) · 3/4 ready" in sent[0].message.title


def test_maintenance_hides_what_only_warns(scene: Scene) -> None:
    """What is at or above its minimum is what a drain is expected to do, for as long as it takes."""
    drained(scene, component())
    spared = {"component.ready": 3, "component.min": 3}
    scene.step(0, fires(alert(IMAGE, component(), tier="critical", values=spared)))
    assert scene.until(4 * HOUR) == []


def test_maintenance_elsewhere_folds_nothing(scene: Scene) -> None:
    """A broken pod that is not on the node is told."""
    scene.contexts[component()] = context(
        component(),
        {Hop.POD: ["d-1", "d-2"]},
        places={"d-1": "gpu-05", "d-2": "gpu-06"},
        maintenance=("gpu-05",),
    )
    scene.step(0, fires(alert(IMAGE, component())))

    assert reasons(scene.until(30)) == ["first_firing"]


def test_a_cordon_in_answer_to_an_incident_hides_nothing(scene: Scene) -> None:
    """Who was told and then works on the node keeps the incident."""
    drained(scene, component(), ())
    firing = alert(IMAGE, component())
    scene.step(0, fires(firing))
    scene.step(5)

    drained(scene, component())
    sent = scene.step(100, fires(replace(firing, values={"x": 1}), 100, again=True)) + scene.until(600)

    assert not [n for n in sent if n.message.status == "resolved"]
    assert [i.family for i in scene.desk.incidents.values() if i.is_open] == ["pod"]


# Blindness


def test_blindness_is_said_and_neither_resolves_nor_rewrites(scene: Scene) -> None:
    """Firing and blind for a minute: last confirmed, and what is silent; what was seen before still stands."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.contexts.clear()
    blind = replace(firing, confirmed_at=at(50), blind_since=at(60), missing=("component.waiting: stale (Pod)",))

    soon = scene.step(60, fires(blind, 60, again=True)) + scene.until(119)
    (said,) = scene.until(125)

    assert soon == []
    assert (said.reason, said.anew, said.message.status) == ("changed", False, "firing")
    assert said.message.at == at(120)
    assert texts(said, Role.NOTE)[-1] == ("last confirmed 12:00:50; since then unknown: component.waiting: stale (Pod)")
    assert texts(said, Role.WHY) == texts(first, Role.WHY)
    assert scene.until(3 * HOUR) == []


# Identity


def test_a_pods_trouble_stays_one_incident_under_new_names(scene: Scene) -> None:
    """Pods come back under other names; the component's incident stays."""
    old = alert(OVERDUE, Subject(SubjectKind.POD, "prod", "d-1"), workload="llama-70b", component="decode")
    new = alert(OVERDUE, Subject(SubjectKind.POD, "prod", "d-2"), 60, workload="llama-70b", component="decode")
    scene.step(0, fires(old))
    scene.step(5)

    sent = scene.step(60, fires(new, 60), ends(old, 60, ChangeReason.SUBJECT_GONE)) + scene.until(300)

    assert not [n for n in sent if n.anew or n.message.status == "resolved"]
    assert len(scene.desk.incidents) == 1


def test_restarts_fold_under_the_model_that_does_not_load(scene: Scene) -> None:
    """Two rules see the same pods; the one whose hop broke is the cause."""
    scene.contexts[component()] = context(component(), {Hop.MODEL: ["d-1"]})
    load, restarts = alert(LOAD_FAILS, component()), alert(RESTARTS, component(), since=2)

    scene.step(0, fires(load))
    scene.step(2, fires(restarts, 2))
    (notify,) = scene.until(30)

    assert notify.causes == (LOAD_FAILS.id,)
    assert len(texts(notify, Role.SYMPTOMS)) == 1


# Size


def test_a_storm_costs_one_look_a_second(scene: Scene) -> None:
    """A very large incident is not written again for each of its alerts, and ends in the right state."""
    changes = []
    for n in range(3 * LARGE):
        subject = component(f"w-{n}/decode")
        scene.contexts[subject] = context(subject, {Hop.SCHEDULING: [f"w-{n}"]}, diagnosis=SHORTAGE)
        changes.append(alert(SHORT, subject, tier="batch"))
    for n, firing in enumerate(changes):
        scene.step(n / 100, fires(firing, n / 100))
    sent = scene.until(7.6)
    assert sent[-1].message.title.endswith(f"(and {3 * LARGE - 1} more)")
    for n, firing in enumerate(changes):
        soon = 9 + n / 150
        sent += scene.step(soon, fires(replace(firing, values={"component.waiting.gpus": 9}), soon, again=True))
    assert "waits for 9" in (sent + scene.until(10.6))[-1].message.title
    for n, firing in enumerate(changes):
        sent += scene.step(30 + n / 100, ends(firing, 30 + n / 100))
    sent += scene.until(60)

    assert reasons(sent)[0] == "first_firing"
    assert reasons(sent)[-1] == "resolved"
    assert len(sent) < 12
    (incident,) = scene.desk.incidents.values()
    assert incident.end_reason == "recovered"


def test_a_louder_alert_does_not_wait_in_a_storm(scene: Scene) -> None:
    """The look of a large incident is put off for what people do not wait for only."""
    for n in range(LARGE + 5):
        subject = component(f"w-{n}/decode")
        scene.contexts[subject] = context(subject, {Hop.SCHEDULING: [f"w-{n}"]}, diagnosis=SHORTAGE)
        scene.step(0, fires(alert(SHORT, subject, tier="batch")))
    scene.until(10)
    scene.step(10.1, fires(alert(SHORT, component("w-1/decode"), tier="standard"), 10.1, again=True))

    assert reasons(scene.step(10.2, fires(alert(SHORT, component()), 10.2))) == ["severity_up"]


def test_decisions_are_bounded_and_do_not_repeat(scene: Scene) -> None:
    """A decision that stays the same is noted once."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    for second in range(20, 40):
        scene.step(second, fires(replace(firing, confirmed_at=at(second)), second, again=True))

    noted = decided(scene)
    assert noted.count("not_due_group_wait") == 1
    assert noted.count("not_due_nothing_new") <= 2
    assert scene.desk.decisions.counts[NotifyReason.FIRST_FIRING] == 1


def test_a_disagreement_is_shown_with_both_sides(scene: Scene) -> None:
    """Where our verdict and the scheduler's differ, the message says unknown and names both, and plans nothing."""
    doubted = replace(SHORTAGE, disagreement="0/6 nodes are available: 6 node(s) had untolerated taint")
    scene.contexts[component()] = context(component(), PENDING, diagnosis=doubted, pool=capacity())
    scene.step(0, fires(alert(SHORT, component())))

    (notify,) = scene.step(5)

    (why,) = texts(notify, Role.WHY)
    assert why.startswith("unknown (disagree): we find needs 2 GPUs")
    assert "untolerated taint" in why
    assert texts(notify, Role.PLAN) == []
    assert SHORTAGE.category is Category.RESOURCE


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("hidden", [[component()], [service()], [component(), service()]])
def test_a_symptom_stays_folded_while_it_cannot_be_seen(scene: Scene, hidden: list[Subject], restarted: bool) -> None:
    """Blindness on either side takes no explanation away, in the same process and in the next."""
    cause, symptom = alert(SHORT, component()), alert(NO_ENDPOINTS, service(), since=1)
    scene.step(0, fires(cause))
    scene.step(1, fires(symptom, 1))
    scene.step(5)
    for subject in hidden:
        del scene.contexts[subject]
    if restarted:
        scene.restart()
        scene.step(9)

    sent = scene.step(10, fires(replace(symptom, blind_since=at(10)), 10, again=True)) + scene.until(50)

    assert not [n for n in sent if n.anew]
    assert [i.symptoms for i in scene.desk.incidents.values() if i.is_open] == [(symptom.fingerprint,)]


def test_after_a_restart_a_cause_is_looked_at_before_it_hides_anything(scene: Scene) -> None:
    """The explanation from the store holds only until both sides are seen again."""
    cause, symptom = alert(SHORT, component()), alert(NO_ENDPOINTS, service(), since=1)
    scene.step(0, fires(cause))
    scene.step(1, fires(symptom, 1))
    scene.step(5)
    scene.restart()
    scene.step(9)
    scene.contexts[service()] = context(service(), {Hop.SERVICE: ["d-1", "d-9"]})

    scene.step(10, fires(replace(symptom, values={"x": 1}), 10, again=True))

    assert scene.desk.standing(symptom.fingerprint, at(10)).is_cause


def test_what_is_not_true_any_more_is_said_before_it_ends(scene: Scene) -> None:
    """While an alert fires on for its hold, the message keeps what it was about and says that it is ending."""
    firing = alert(SHORT, component())
    scene.step(0, fires(firing))
    (first,) = scene.step(5)
    scene.contexts[component()] = context(component(), {}, desired=4, ready=4, minimum=4)
    going = replace(firing, false_since=at(30))

    soon = scene.step(30, fires(going, 30, again=True)) + scene.until(39)
    (said,) = scene.until(41)
    back = scene.step(50, fires(firing, 50, again=True))

    assert soon == []
    assert (said.reason, said.message.status, said.message.at) == ("changed", "firing", at(40))
    assert texts(said, Role.WHY) == texts(first, Role.WHY)
    assert texts(said, Role.NOTE)[-1].startswith("not true any more since 12:00:30 UTC")
    assert not [n for n in back if n.anew]
