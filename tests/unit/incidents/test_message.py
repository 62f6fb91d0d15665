"""The message: in order, honest about what is unknown, and safe whatever the cluster calls its things."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sevenhop.core.alerts.rule import Severity
from sevenhop.core.effects import Message, Role
from sevenhop.core.hops.diagnosis import Category, Confidence, Diagnosis, Evidence
from sevenhop.core.incidents import message_parts as parts
from sevenhop.core.incidents.labels import ALWAYS, common, outward
from sevenhop.core.incidents.message import TITLE_MOST
from sevenhop.core.incidents.text import plain
from sevenhop.core.inventory.capacity import Change, Holding
from sevenhop.core.subject import Hop, Subject, SubjectKind
from tests.unit.incidents.scene import (
    BLIND,
    FEWER,
    H100,
    LOAD_FAILS,
    NO_ENDPOINTS,
    NOON,
    SHORT,
    SHORTAGE,
    Scene,
    alert,
    at,
    capacity,
    component,
    context,
    fires,
    node,
    pool,
    service,
    waiting,
)

PENDING = {Hop.SCHEDULING: ["d-1"]}
CHANGE = Change(
    at=at(-60), kind="Node", namespace="", name="gpu-05", what="allocatable", before="8", after="7", by="kim"
)


def told(scene: Scene, *firing: Any) -> Message:
    scene.step(0, *(fires(each) for each in firing))
    return scene.step(5)[0].message


def shortage(**more: Any) -> Message:
    scene = Scene()
    fields: dict[str, Any] = {
        "desired": 4,
        "ready": 3,
        "minimum": 4,
        "diagnosis": SHORTAGE,
        "pool": capacity(waiting=(waiting("llama-70b", "critical"), waiting("b", "batch"))),
        "changes": (CHANGE,),
    }
    scene.contexts[component()] = context(component(), PENDING, **{**fields, **more})
    return told(scene, alert(SHORT, component(), owner="@llm-serving"))


def text(message: Message, role: Role) -> str:
    return "\n".join(line.text for line in message.lines if line.role is role)


def test_the_order_in_which_it_is_read() -> None:
    """First broken hop, who is hit, why; what changed; who holds and who waits; then what follows and whom to ask."""
    assert [line.role for line in shortage().lines] == [
        Role.FIRST_BROKEN,
        Role.HIT,
        Role.WHY,
        Role.NOT_PREEMPTED,
        Role.CHANGED,
        Role.CAPACITY,
        Role.CAPACITY,
        Role.WAITING,
        Role.WAITING,
        Role.IF_NOTHING,
        Role.OWNER,
        Role.PLAN,
        Role.NOTE,
        Role.COMMAND,
    ]


def test_all_seven_hops_are_shown() -> None:
    """With the first broken one named, its count, and what is not seen."""
    message = shortage()

    assert text(message, Role.FIRST_BROKEN) == (
        "scheduling   ✔ gpu  ✔ discovery  ✖ scheduling 3/4  ✔ pod  ✔ model  ✔ service  ? gateway"
    )
    assert "gateway unknown (no_source (route source))" in text(message, Role.NOTE)
    assert "failed requests unknown (no_source (route source))" in text(message, Role.HIT)


def test_what_is_unknown_is_said_with_its_reason() -> None:
    """No diagnosis, no owner, no counts: each is unknown in words, never left out as if it were well."""
    scene = Scene()
    scene.contexts[component()] = context(component(), PENDING, ready=None, desired=4)
    message = told(scene, alert(SHORT, component()))

    assert text(message, Role.WHY).startswith("unknown (")
    assert text(message, Role.OWNER).startswith("unknown (")
    assert "unknown (ready replicas)/4" in text(message, Role.HIT)
    assert text(message, Role.CAPACITY) == "unknown (the pool cannot be seen)"


def test_a_subject_that_cannot_be_seen_is_still_told() -> None:
    """Without any context the alert itself speaks."""
    message = told(Scene(), alert(LOAD_FAILS, component()))

    assert message.title == "llama-70b/decode: load-fails"
    assert text(message, Role.FIRST_BROKEN) == "model"
    assert text(message, Role.HIT) == "llama-70b"


@pytest.mark.parametrize(
    ("confidence", "hop", "expected"),
    [
        (Confidence.CERTAIN, Hop.SCHEDULING, SHORTAGE.summary),
        (Confidence.LIKELY, Hop.SCHEDULING, f"{SHORTAGE.summary} (likely: read from text)"),
        (Confidence.UNKNOWN, Hop.SCHEDULING, f"unknown ({SHORTAGE.summary})"),
        (Confidence.CERTAIN, Hop.SERVICE, f"scheduling: {SHORTAGE.summary}"),
    ],
)
def test_how_sure_we_are(confidence: Confidence, hop: Hop, expected: str) -> None:
    """Computed is said plainly, read from text is called likely, and another hop than the rule's is named."""
    assert parts.why_text(replace(SHORTAGE, confidence=confidence), hop) == expected


def test_changed_before_means_before() -> None:
    """What was changed in the half hour before it began; not what was changed since, and not what is older."""
    older, later = replace(CHANGE, at=at(-1801)), replace(CHANGE, at=at(60))

    found = parts.changed_text([later, CHANGE, older], NOON, timedelta(minutes=30))

    assert found == "11:59:00 Node gpu-05 allocatable 8 → 7 by kim"
    assert parts.changed_text([later, older], NOON, timedelta(minutes=30)) == "nothing seen in the 30 min before"


@pytest.mark.parametrize(
    ("holdings", "tier", "expected"),
    [
        pytest.param(
            (Holding(("prod", "s"), "batch", 8, 4, reducible=True, gives=6),),
            "critical",
            "could give, if somebody approves: s (batch) 6 of the 8 GPUs that it holds",
            id="a lower tier that can be reduced",
        ),
        pytest.param(
            (Holding(("prod", "s"), "batch", 8, 4, reducible=True),),
            "batch",
            "no neighbour can give: s (batch) 8: same tier",
            id="the same tier never gives",
        ),
        pytest.param(
            (Holding(("prod", "s"), "batch", 8, 4, reducible=False, reason="at its minimum of 4"),),
            "critical",
            "no neighbour can give: s (batch) 8: at its minimum of 4",
            id="the reason is the inventory's",
        ),
        pytest.param(
            (Holding(("prod", "s"), "critical", 8, 4, reducible=True),),
            "standard",
            "no neighbour can give: s (critical) 8: a higher tier",
            id="a higher tier never gives",
        ),
        pytest.param(
            (Holding(("prod", "llama-70b"), "batch", 8, 4, reducible=True),),
            "critical",
            "no neighbour can give: nobody else holds these GPUs",
            id="it does not give to itself",
        ),
    ],
)
def test_the_plan_line_says_only_what_is_true(holdings: tuple[Holding, ...], tier: str, expected: str) -> None:
    """Who could give, or why nobody can."""
    seen = context(component(), PENDING, diagnosis=SHORTAGE, pool=capacity(holdings=holdings))
    assert parts.plan_text(seen, tier) == ("PLAN", expected)


def test_a_rollout_surge_is_never_answered_with_a_neighbours_gpus() -> None:
    """The advice is the diagnosis's own."""
    surge = replace(SHORTAGE, cause="rollout-surge", would_help=("set maxSurge: 0",))
    message = shortage(diagnosis=surge)

    assert text(message, Role.PLAN) == "set maxSurge: 0"
    assert "old replicas go on serving" in text(message, Role.IF_NOTHING)


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        (0, "until then nobody serves"),
        (3, "until then 3 of 4 serve, below the minimum"),
        (4, "until then 4 of 4 serve"),
    ],
)
def test_if_you_do_nothing(ready: int, expected: str) -> None:
    """What people will feel."""
    assert text(shortage(ready=ready), Role.IF_NOTHING).endswith(expected)


def test_a_command_for_pods_that_do_not_exist_names_who_may_not_create_them() -> None:
    """There is no pod to describe; its ReplicaSet says why."""
    seen = context(component(), {Hop.SCHEDULING: ["ReplicaSet.apps/llama-1 #1", "ReplicaSet.apps/llama-1 #2"]}, pods=())

    command = parts.command_text(component(), seen, Hop.SCHEDULING)

    assert command == "kubectl -n prod describe replicaset.apps/llama-1"


def test_a_command_names_no_pod_that_is_gone() -> None:
    """While nothing can be seen, or it fires on for a while only, what was written stands, but for the command."""
    scene = Scene()
    scene.contexts[component()] = context(component(), PENDING, diagnosis=SHORTAGE)
    firing = alert(SHORT, component())
    assert "describe pod" in text(told(scene, firing), Role.COMMAND)

    scene.contexts[component()] = context(component(), diagnosis=None)
    (edited, *_) = scene.step(60, fires(replace(firing, false_since=at(40)), 60, again=True)) or scene.until(300)

    assert [line for line in edited.message.lines if line.role is Role.COMMAND] == []
    assert text(edited.message, Role.WHY) == SHORTAGE.summary


@pytest.mark.parametrize(
    ("subject", "hop", "expected"),
    [
        (component(), Hop.SCHEDULING, "kubectl -n prod describe pod d-1"),
        (component(), Hop.MODEL, "kubectl -n prod logs d-1 --previous --tail=50"),
        (node(), Hop.DISCOVERY, "kubectl describe node gpu-05"),
        (pool(), Hop.SCHEDULING, f"kubectl get nodes -l nvidia.com/gpu.product={H100}"),
        (
            service(),
            Hop.SERVICE,
            "kubectl -n prod get endpointslices -l kubernetes.io/service-name=llama-70b",
        ),
        (Subject(SubjectKind.SOURCE, "", "Pod"), None, "sevenhop doctor"),
        (
            Subject(SubjectKind.POD, "prod", "x; rm -rf $HOME'"),
            Hop.POD,
            "kubectl -n prod describe pod 'x; rm -rf $HOME'\\'''",
        ),
    ],
)
def test_one_command(subject: Subject, hop: Hop | None, expected: str) -> None:
    """A line that can be pasted, whatever things are called."""
    broken: dict[Hop, list[str]] = {hop: ["d-1"]} if hop in (Hop.SCHEDULING, Hop.MODEL) and hop else {}
    assert parts.command_text(subject, context(subject, broken), hop) == expected


def test_labels_leave_under_their_outward_names() -> None:
    """The agreed labels are always there; those on which causes differ are left out."""
    message = shortage()

    assert message.labels["inference_workload"] == "llama-70b"
    assert message.labels["inference_workload_component"] == "decode"
    assert message.labels["owner"] == "@llm-serving"
    assert set(ALWAYS) <= set(message.labels)
    assert not {"workload", "component"} & set(message.labels)
    assert outward(common([{"workload": "a", "tier": "x"}, {"workload": "b", "tier": "x"}]))["inference_workload"] == ""


def test_ourselves() -> None:
    """Blindness is an incident like any other, on no hop."""
    source = Subject(SubjectKind.SOURCE, "", "Pod")
    message = told(Scene(), alert(BLIND, source))

    assert message.severity is Severity.CRITICAL
    assert text(message, Role.FIRST_BROKEN) == "none: this is about Sevenhop itself"
    assert text(message, Role.COMMAND) == "sevenhop doctor"


def test_a_node_is_told_by_its_own_summary() -> None:
    """No hop report, no pods: what the rule says and what people feel."""
    scene = Scene()
    scene.contexts[node()] = context(node())
    message = told(scene, alert(FEWER, node()))

    assert text(message, Role.COMMAND) == "kubectl describe node gpu-05"
    assert text(message, Role.IF_NOTHING) == FEWER.description
    assert text(message, Role.HIT) == "unknown (no workload is named)"


def test_the_runbook_link_is_last() -> None:
    """From the settings, where there is one."""
    scene = Scene()
    scene.settings = replace(scene.settings, link="https://runbooks.example/gpu")
    scene.restart(keep=False)

    assert told(scene, alert(LOAD_FAILS, component())).lines[-1].text == "https://runbooks.example/gpu"


HOSTILE = st.one_of(
    st.text(max_size=400),
    st.sampled_from(
        [
            "<!channel> & <@U123|x>",
            "\x1b[2J\x1b[31mred",
            "a\r\nb\u2028c\u202egnp",
            "{{ cluster }}",
            "x" * 5000,
            "🔥" * 300,
            "[link](http://x) `code` *bold*",
        ]
    ),
)


@settings(max_examples=30, deadline=None)
@given(name=HOSTILE, words=HOSTILE, owner=HOSTILE)
def test_whatever_the_cluster_says(name: str, words: str, owner: str) -> None:
    """Titles stay short, lines stay lines, nothing controls a terminal, and no text is read as a template."""
    subject = component(f"{name}/decode")
    diagnosis = Diagnosis(
        hop=Hop.SCHEDULING,
        category=Category.RESOURCE,
        cause="gpu-shortage",
        confidence=Confidence.CERTAIN,
        summary=words,
        evidence=tuple(Evidence(name, words) for _ in range(200)),
        next_steps=(words,) * 50,
        not_preempted=words,
        unmodelled=(words,),
    )
    scene = Scene()
    scene.contexts[subject] = context(
        subject,
        {Hop.SCHEDULING: [name or "x"]},
        diagnosis=diagnosis,
        pool=capacity(
            product=name,
            holdings=tuple(Holding(("prod", f"{name}{n}"), words, 8, 4, reason=words) for n in range(50)),
            waiting=tuple(waiting(f"{name}{n}", "critical") for n in range(200)),
        ),
        changes=tuple(replace(CHANGE, name=name, before=words, after=words, by=words) for _ in range(50)),
    )
    scene.contexts[service()] = context(service(), {Hop.SERVICE: [name or "x"]})
    made = alert(SHORT, subject, owner=owner, values={"component.waiting.gpus": words}, workload=name)
    message = told(scene, made, alert(NO_ENDPOINTS, service(), 1))

    assert len(message.title) <= TITLE_MOST
    assert plain(message.title) == message.title
    for line in (*(line.text for line in message.lines), *message.details):
        assert " ".join(line.split()) == plain(line)
        assert "\n" not in line
        assert len(line) <= 3000
    assert len(message.details) <= 60
