"""
KServe's InferenceService: Standard (Deployment) by autoscaler class, and Knative.

KServe writes the Deployment (class `none`), the HPA or the ScaledObject anew from minReplicas and maxReplicas at every
reconcile; only with class `external` it leaves the replicas of the Deployment alone (kserve,
pkg/controller/v1beta1/inferenceservice).

The mark goes on the Deployment: KServe copies all annotations of an InferenceService but a few into the template of the
pods (components/predictor.go), so one more on it would roll the donor's pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sevenhop.core.inventory.templates import replicas_of
from sevenhop.core.inventory.workloads import Component, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler, View
from sevenhop.frameworks.kserve import ISVC
from sevenhop.frameworks.reading import number, spec_of, status_of, table, text
from sevenhop.frameworks.scaling.choosers import chooser_of, makers_of
from sevenhop.frameworks.scaling.controllers import DEPLOYMENT, through_scale
from sevenhop.frameworks.scaling.proven import look
from sevenhop.frameworks.scaling.way import Change, Range, Way, called, line_of, pointer, ref_of

VERSIONS = ("v1beta1",)
REVISION = "Revision.serving.knative.dev"

_MODE = "serving.kserve.io/deploymentMode"
_CLASS = "serving.kserve.io/autoscalerClass"
_STOP = "serving.kserve.io/stop"
_STANDARD, _KNATIVE = ("Standard", "RawDeployment"), ("Knative", "Serverless")
_LEAST, _MOST = "autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/max-scale"


def find(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    kind, key = workload.roots[0]
    service = look(view, kind, *key, VERSIONS)
    if isinstance(service, Conflict):
        return service
    ref = ref_of(ISVC, service)
    part = table(spec_of(service), component.name)
    if not part:
        return Conflict(ConflictReason.NO_TARGET, f"{called(ref)} has no {component.name}")
    if "workerSpec" in part:
        return Conflict(
            ConflictReason.INDIVISIBLE,
            f"{component.name} of {called(ref)} spans nodes and cannot be split; only {_STOP} stops it as a whole",
        )
    mode = service.metadata.annotations.get(_MODE, "") or text(status_of(service), "deploymentMode")
    if mode in _KNATIVE or any(kind == REVISION for kind, _ in line_of(view, pods).objects):
        return _revision(view, service, component, pods)
    if mode and mode not in _STANDARD:
        return Conflict(ConflictReason.NOT_PROVEN, f"{called(ref)} is in mode {mode}, which is not proven")
    deployment = _deployment(view, service, component, pods)
    if isinstance(deployment, Conflict):
        return deployment
    # Absent means hpa in Standard mode.
    by = service.metadata.annotations.get(_CLASS, "") or "hpa"
    return _STANDARD_WAYS.get(by, _unknown_class)(service, deployment, component, pods)


def _deployment(view: View, service: Object, component: Component, pods: Sequence[Pod]) -> Object | Conflict:
    """The one that the pods are of, else by the name that KServe gives it."""
    above = [obj for (kind, _), obj in line_of(view, pods).objects.items() if kind == DEPLOYMENT]
    if len(above) == 1:
        return above[0]
    if above:
        names = ", ".join(sorted(obj.metadata.name for obj in above))
        return Conflict(ConflictReason.ROLLOUT, f"{component.name} runs in several Deployments: {names}")
    return look(view, DEPLOYMENT, service.metadata.namespace, f"{service.metadata.name}-{component.name}")


def _ranged(lowest: int) -> Callable[[Object, Object, Component, Sequence[Pod]], Way | Conflict]:
    """By minReplicas and maxReplicas, which the HPA or the ScaledObject is made from."""

    def way(service: Object, deployment: Object, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
        ref = ref_of(ISVC, service)
        part = table(spec_of(service), component.name)
        # KServe reads an absent most, and 0, as no more than the least.
        limits = Range(number(part, "minReplicas"), number(part, "maxReplicas") or None)
        replicas = replicas_of(deployment)
        if replicas is None:
            return Conflict(
                ConflictReason.UNKNOWN, f"the replicas of {called(ref_of(DEPLOYMENT, deployment))} are unknown"
            )
        if limits.is_left(replicas):
            return Conflict(ConflictReason.ROLLOUT, f"{called(ref)} asks for {limits} and has {replicas} so far")
        at_least, at_most = (f"/spec/{component.name}/{name}" for name in ("minReplicas", "maxReplicas"))

        def change(after: int, _victims: Sequence[Pod]) -> Change:
            return Change(limits.edits(after, at_least, at_most) if after < replicas else ())

        ruler = Ruler(
            target=ref,
            replicas=replicas,
            floor=limits.floor(replicas, lowest),
            chooser=chooser_of(pods),
            makers=makers_of(pods),
            notes=(f"until it is given back its autoscaler cannot go above the new number ({limits} before)",),
        )
        return Way(ruler=ruler, marked=ref_of(DEPLOYMENT, deployment), change=change, obeys=(ref,))

    return way


def _fixed(service: Object, deployment: Object, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    """Class `none`: KServe sets the Deployment's replicas to minReplicas."""
    ref = ref_of(ISVC, service)
    stated = number(table(spec_of(service), component.name), "minReplicas")
    replicas = 1 if stated is None else stated
    if replicas_of(deployment) != replicas:
        return Conflict(
            ConflictReason.ROLLOUT, f"{called(ref)} asks for {replicas}, its Deployment does not have that yet"
        )

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        edits = (Edit(f"/spec/{component.name}/minReplicas", stated, after),) if after != replicas else ()
        return Change(edits)

    ruler = Ruler(target=ref, replicas=replicas, floor=0, chooser=chooser_of(pods), makers=makers_of(pods))
    return Way(ruler=ruler, marked=ref_of(DEPLOYMENT, deployment), change=change, obeys=(ref,))


def _external(service: Object, deployment: Object, _component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    note = "its autoscaler class is external, and no autoscaler of it is seen: whoever scales it may set it back"
    ref = ref_of(ISVC, service)
    way = through_scale(DEPLOYMENT, deployment, pods, notes=(note,))
    return way if isinstance(way, Conflict) else way._replace(stated=(ref,))


def _unknown_class(service: Object, _deployment: Object, _component: Component, _pods: Sequence[Pod]) -> Way | Conflict:
    ref = ref_of(ISVC, service)
    by = service.metadata.annotations.get(_CLASS, "")
    return Conflict(ConflictReason.NOT_PROVEN, f"{called(ref)} has autoscaler class {by}, which is not proven")


_STANDARD_WAYS: dict[str, Callable[[Object, Object, Component, Sequence[Pod]], Way | Conflict]] = {
    "hpa": _ranged(lowest=1),  # KServe gives an HPA at least 1
    "keda": _ranged(lowest=0),
    "none": _fixed,
    "external": _external,
}


def _revision(view: View, service: Object, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    """
    The live Revision's annotations, which Knative's autoscaler reads at once; in the InferenceService they would make a
    new Revision, which needs its GPUs on top (knative pkg/reconciler/revision, syncAnnotationsForKPA).
    """
    ref = ref_of(ISVC, service)
    name = text(status_of(service), "components", component.name, "latestReadyRevision")
    if not name:
        return Conflict(
            ConflictReason.UNKNOWN, f"{called(ref)} does not say which revision of {component.name} is live"
        )
    revision = look(view, REVISION, service.metadata.namespace, name, ("v1",))
    if isinstance(revision, Conflict):
        return revision
    deployment = look(view, DEPLOYMENT, service.metadata.namespace, f"{name}-deployment")
    if isinstance(deployment, Conflict):
        return deployment
    replicas = replicas_of(deployment)
    notes = revision.metadata.annotations
    limits = Range(number(notes, _LEAST), number(notes, _MOST) or None, default_least=0, is_open=True)
    if replicas is None or limits.is_left(replicas):
        return Conflict(
            ConflictReason.ROLLOUT, f"{called(ref_of(REVISION, revision))} asks for {limits} and has {replicas} so far"
        )

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        if after >= replicas:
            return Change(())
        edits = []
        for key, value in ((_LEAST, limits.least), (_MOST, limits.most)):
            is_least = key == _LEAST
            if (value is not None and value > after) or (value is None and not is_least):
                where = pointer("metadata", "annotations", key)
                # As written: a precondition compares texts.
                edits.append(Edit(where, notes.get(key), str(after)))
        return Change(tuple(edits))

    target = ref_of(REVISION, revision)
    ruler = Ruler(
        target=target,
        replicas=replicas,
        floor=limits.floor(replicas, lowest=0),
        chooser=chooser_of(pods),
        makers=makers_of(pods),
        notes=("the next revision starts with the InferenceService's own minReplicas and maxReplicas again",),
    )
    return Way(ruler=ruler, marked=ref_of(DEPLOYMENT, deployment), change=change, stated=(ref,))
