"""
Plans that mend one object in place: remove a stuck pod, cordon a node, remove a node's device plugin.

The object follows from the alert that asks for it; where more than one could be meant, or its owner would not make it
again, there is no plan and the words say why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from sevenhop.core.alerts.alert import Alert
from sevenhop.core.inventory.objects import Key
from sevenhop.core.inventory.rows import PodRow, is_plugin, is_ready
from sevenhop.core.inventory.state import State, slot_of
from sevenhop.core.objects.base import condition
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Action, Cordon, EvictPod, ObjectRef
from sevenhop.core.remediation.budgets import cannot_be_evicted
from sevenhop.core.remediation.guards_question import Evidence
from sevenhop.core.remediation.plan import Answer, Considered, NoPlanReason, Plan
from sevenhop.core.remediation.playbook import Goal, Playbook
from sevenhop.core.subject import Subject, SubjectKind
from sevenhop.core.words import counted, inflected

MAKES_AGAIN = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "LeaderWorkerSet", "RayCluster", "PodClique"})
"""Kinds of owners that make a pod again when it is removed; a Job counts it as a failure, a bare pod is lost."""


HEAD = "head"
"""Role of the pod that a Ray cluster's workers belong to."""


def plan_object(state: State, alerts: Sequence[Alert], playbook: Playbook, incident: str, now: datetime) -> Answer:
    """A plan for the one object that these alerts are about, or why there is none."""
    unknown = state.gate("Pod", "Node") or state.belonging_gate()
    if unknown is not None:
        return Answer(reason=NoPlanReason.UNKNOWN, text=f"what the alert is about cannot be seen now: {unknown}")
    if playbook.goal is Goal.NODE_CORDONED:
        return _cordon(state, alerts, playbook, incident, now)
    if playbook.goal is Goal.NODE_ADVERTISES:
        return _plugin(state, alerts, playbook, incident, now)
    return _pod(state, alerts, playbook, incident, now)


def evidence_for(state: State, plan: Plan, now: datetime) -> Iterable[Evidence]:
    """Facts that ask for the plan now, each with who says it."""
    if plan.need is not None:
        yield from _shortage(state, (plan.need.workload, plan.need.component), now)
    for action in plan.actions:
        if isinstance(action, EvictPod):
            yield from _of_pod(state, (action.pod.namespace, action.pod.name), now)
        elif isinstance(action, Cordon):
            yield from _of_node(state, action.node.name, now)
    if plan.need is None:
        for name in plan.nodes:
            yield from _of_node(state, name, now)


def _pod(state: State, alerts: Sequence[Alert], playbook: Playbook, incident: str, now: datetime) -> Answer:
    candidates = sorted({key for alert in alerts for key in _stuck(state, alert.subject)})
    if not candidates:
        return Answer(reason=NoPlanReason.NOBODY_WAITS, text="no single pod can be named that is stuck")
    if len(candidates) > 1:
        named = tuple(Considered("/".join(key), "several", "several pods are stuck alike") for key in candidates)
        text = f"{len(candidates)} pods are stuck alike: removing one would not mend the others"
        return Answer(reason=NoPlanReason.NOT_SAFE, text=text, considered=named)
    pod = state.objects.pods()[candidates[0]]
    against = _not_made_again(pod) or _does_not_end(state, pod) or cannot_be_evicted(state, pod)
    if against:
        return Answer(reason=NoPlanReason.NOT_SAFE, text=against)
    name = "/".join(pod.metadata.key)
    title = f"remove pod {name}; its owner makes it again{_with_it(state, pod)}"
    return Answer(plan=_plan(state, playbook, incident, (EvictPod(pod=_ref(pod)),), title, pod.spec.node_name, now))


def _stuck(state: State, subject: Subject) -> Iterable[Key]:
    """Pods of a subject that are there, have a node and are not well, or are ready and serve nothing."""
    for row in _rows(state, subject):
        if (
            row.live
            and row.node
            and (row.failure is not None or row.load_overdue or _serves_nothing(state, row, subject))
        ):
            yield row.key


def _rows(state: State, subject: Subject) -> Iterable[PodRow]:
    if subject.kind is SubjectKind.POD:
        row = state.rows.get((subject.namespace, subject.name))
        return [row] if row is not None else []
    if subject.kind is SubjectKind.COMPONENT:
        return state.pods_of(slot_of(subject))
    if subject.kind is SubjectKind.NODE:
        pods = state.objects.pods_on(subject.name)
        return [row for pod in pods if (row := state.rows.get(pod.metadata.key)) is not None]
    return []


def _serves_nothing(state: State, row: PodRow, subject: Subject) -> bool:
    """Of a component that is ready and in no endpoint: with one pod, that is the one."""
    if subject.kind is not SubjectKind.COMPONENT or not row.ready:
        return False
    serving = state.facts.get(subject, {}).get("component.serving")
    alone = sum(each.live for each in state.pods_of(slot_of(subject))) == 1
    return serving == 0 and alone


def _not_made_again(pod: Pod) -> str:
    owner = pod.metadata.controller()
    if owner is None:
        return f"pod {'/'.join(pod.metadata.key)} has no owner that would make it again"
    if owner.kind not in MAKES_AGAIN:
        return f"pod {'/'.join(pod.metadata.key)} belongs to {owner.kind} {owner.name}, which may not make it again"
    if pod.is_terminating:
        return f"pod {'/'.join(pod.metadata.key)} is being removed already"
    return ""


def _with_it(state: State, pod: Pod) -> str:
    """
    Who else may start anew: people agree to that, too.

    A LeaderWorkerSet recreates the whole group of a pod that goes, unless its restartPolicy is None; KubeRay makes
    several hosts as one, and workers whose head is gone start anew unless the cluster's state is kept elsewhere.
    """
    row = state.rows.get(pod.metadata.key)
    part = state.part((row.workload, row.component)) if row is not None else None
    if row is None or part is None:
        return ""
    live = [
        each
        for slot in state.slots_of.get(row.workload, ())
        for each in state.pods_of((row.workload, slot))
        if each.live
    ]
    if part.role == HEAD:
        others = sum(each.component != row.component for each in live)
        return f"; {counted(others, 'worker')} of its Ray cluster may start anew with it" if others else ""
    mates = sum(each.component == row.component and each.group == row.group and each.key != row.key for each in live)
    if part.pods_per_replica < 2 or not row.group or not mates:
        return ""
    return f"; {counted(mates, 'other pod')} of its group may start anew with it"


def _does_not_end(state: State, pod: Pod) -> str:
    """
    Of a node that is silent nothing is removed: the pod would stay Terminating until the node is back.

    What has to be made elsewhere Kubernetes evicts by itself, after the pod's toleration of `not-ready`.
    """
    node = state.objects.nodes().get(("", pod.spec.node_name))
    said = condition(node.status.conditions, "Ready") if node is not None else None
    if node is not None and said is not None and said.status == "True":
        return ""
    is_what = "is gone" if node is None else "is not Ready"
    name = "/".join(pod.metadata.key)
    return f"node {pod.spec.node_name} {is_what}, so pod {name} would only hang in Terminating; look at the node first"


def _cordon(state: State, alerts: Sequence[Alert], playbook: Playbook, incident: str, now: datetime) -> Answer:
    node = _node(state, alerts)
    if isinstance(node, Answer):
        return node
    if node.spec.unschedulable:
        return Answer(reason=NoPlanReason.NOBODY_WAITS, text=f"node {node.metadata.name} is cordoned already")
    ref = ObjectRef("Node", "", node.metadata.name, node.metadata.uid)
    title = f"cordon node {node.metadata.name}: nothing new lands on it, what runs there stays"
    return Answer(plan=_plan(state, playbook, incident, (Cordon(node=ref),), title, node.metadata.name, now))


def _plugin(state: State, alerts: Sequence[Alert], playbook: Playbook, incident: str, now: datetime) -> Answer:
    node = _node(state, alerts)
    if isinstance(node, Answer):
        return node
    name = node.metadata.name
    plugins = sorted(
        (pod for pod in state.objects.pods_on(name) if is_plugin(pod) and not pod.is_finished),
        key=lambda pod: pod.metadata.key,
    )
    if len(plugins) != 1:
        found = "no device plugin" if not plugins else f"{len(plugins)} device plugins"
        return Answer(reason=NoPlanReason.NOT_SAFE, text=f"{found} on node {name}; one is needed to restart it")
    plugin = plugins[0]
    against = _not_made_again(plugin) or _does_not_end(state, plugin) or cannot_be_evicted(state, plugin)
    if against:
        return Answer(reason=NoPlanReason.NOT_SAFE, text=against)
    title = f"restart the device plugin of node {name}: remove its pod {plugin.metadata.name}"
    return Answer(plan=_plan(state, playbook, incident, (EvictPod(pod=_ref(plugin)),), title, name, now))


def _node(state: State, alerts: Sequence[Alert]) -> Node | Answer:
    names = sorted({name for alert in alerts if (name := _node_of(alert))})
    if len(names) != 1:
        text = "no node can be named" if not names else f"{len(names)} nodes are meant; each needs its own decision"
        return Answer(reason=NoPlanReason.NOT_SAFE, text=text)
    node = state.objects.nodes().get(("", names[0]))
    if node is None:
        return Answer(reason=NoPlanReason.NOBODY_WAITS, text=f"node {names[0]} is gone")
    return node


def _node_of(alert: Alert) -> str:
    return alert.subject.name if alert.subject.kind is SubjectKind.NODE else alert.labels.get("node", "")


def _plan(
    state: State, playbook: Playbook, incident: str, actions: tuple[Action, ...], title: str, node: str, now: datetime
) -> Plan:
    return Plan(
        cluster=state.cluster,
        playbook=playbook.id,
        incident=incident,
        actions=actions,
        victims=tuple((a.pod.namespace, a.pod.name) for a in actions if isinstance(a, EvictPod)),
        nodes=(node,),
        title=title,
        proposed_at=now,
        expires_at=now + playbook.expires,
    )


def _ref(pod: Pod) -> ObjectRef:
    return ObjectRef("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _shortage(state: State, slot: tuple[Key, str], now: datetime) -> Iterable[Evidence]:
    waiting = [row for row in state.pods_of(slot) if row.waiting]
    judged = [row for row in waiting if row.judged]
    if judged:
        fact = f"the scheduler finds no node for {judged[0].key[1]}"
        yield Evidence(fact=fact, source="scheduler", seen_at=now)
    computed = next((row.pending for row in waiting if row.pending is not None and not row.pending.disagreement), None)
    if computed is not None:
        yield Evidence(fact=computed.summary, source="ledger", seen_at=now)


def _of_pod(state: State, key: Key, now: datetime) -> Iterable[Evidence]:
    pod, row = state.objects.pods().get(key), state.rows.get(key)
    if pod is not None and not is_ready(pod) and pod.spec.node_name:
        yield Evidence(fact=f"pod {key[1]} is not Ready", source="kubelet", seen_at=now)
    if row is None:
        return
    peers = [each for each in state.pods_of((row.workload, row.component)) if each.live and each.key != key]
    alike = [each for each in peers if (each.version, each.image) == (row.version, row.image)]
    if alike and all(each.ready for each in alike) and not row.ready:
        are = inflected(len(alike), "is", "are")
        fact = f"{counted(len(alike), 'pod')} of the same release {are} Ready elsewhere"
        yield Evidence(fact=fact, source="peers", seen_at=now)
    if row.load_overdue:
        yield Evidence(fact="it loads for longer than its release ever took", source="load-history", seen_at=now)
    if row.ready:
        subject = Subject(SubjectKind.COMPONENT, row.workload[0], f"{row.workload[1]}/{row.component}")
        if state.facts.get(subject, {}).get("component.serving") == 0:
            yield Evidence(fact="no endpoint lists it", source="endpoints", seen_at=now)
            yield Evidence(fact=f"pod {key[1]} is Ready", source="kubelet", seen_at=now)


def _of_node(state: State, name: str, now: datetime) -> Iterable[Evidence]:
    node = state.objects.nodes().get(("", name))
    facts = state.facts.get(Subject(SubjectKind.NODE, "", name), {})
    has, should = facts.get("node.gpu.allocatable"), facts.get("node.gpu.expected")
    if isinstance(has, int) and isinstance(should, int) and has < should:
        yield Evidence(fact=f"offers {has} of {counted(should, 'GPU')}", source="kubelet", seen_at=now)
    plugin = facts.get("node.plugin_ready")
    if plugin is False:
        yield Evidence(fact="its device plugin is not Ready", source="device-plugin", seen_at=now)
    yield from _of_gpus(state, name, now)
    failing = [row for row in _rows(state, Subject(SubjectKind.NODE, "", name)) if row.live and row.failure is not None]
    if failing:
        fail = inflected(len(failing), "fails", "fail")
        yield Evidence(fact=f"{counted(len(failing), 'pod')} {fail} on it", source="pods", seen_at=now)
    if isinstance(node, Node):
        bad = [c for c in node.status.conditions if c.type not in _WELL_KNOWN and c.status == "True"]
        if bad or ((ready := condition(node.status.conditions, "Ready")) is not None and ready.status != "True"):
            named = bad[0].type if bad else "not Ready"
            yield Evidence(fact=f"condition {named}", source="node-conditions", seen_at=now)


def _of_gpus(state: State, node: str, now: datetime) -> Iterable[Evidence]:
    for subject, facts in sorted((s, f) for s, f in state.facts.items() if s.kind is SubjectKind.GPU):
        if facts.get("node") != node:
            continue
        if facts.get("gpu.present") is False:
            yield Evidence(fact=f"GPU {subject.name} is gone", source="gpu-agent", seen_at=now)
        elif isinstance(xid := facts.get("gpu.xid"), int) and xid:
            yield Evidence(fact=f"GPU {subject.name} reports XID {xid}", source="gpu-agent", seen_at=now)


_WELL_KNOWN = frozenset({"Ready", "NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure"})
