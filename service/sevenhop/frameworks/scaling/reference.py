"""The reference page of what is patched to give a component fewer replicas, rendered from the table."""

from __future__ import annotations

from sevenhop.core.remediation.consent import REMEDIATION
from sevenhop.core.remediation.reduction import Chooser, ConflictReason, ScalingSpec, ScalingTable
from sevenhop.frameworks.scaling import SCALING
from sevenhop.frameworks.scaling.conflicts import READS

_INTRO = f"""# What is patched to scale down

A plan gives a component of a lower tier fewer replicas, through the object that really rules them.  What is not in
this table is refused with words; so is what conflicts, before anybody is asked.

An owner keeps Sevenhop away with the annotation `{REMEDIATION}: "off"` on the workload, on
an object of the component, on its pods or on the namespace.  `{REMEDIATION}: "allow"` on an
object says that Argo CD, Flux or their like does not set its replicas back.
"""

_CHOOSERS = {
    Chooser.REPLICA_SET: "a ReplicaSet, by its rules; `controller.kubernetes.io/pod-deletion-cost` steers it",
    Chooser.HIGHEST: "the highest ordinal, or the highest group; known, cannot be steered",
    Chooser.NAMED: "the patch itself, by name",
    Chooser.ANY: "the operator, by rules that are not known: a plan must hold for every choice",
}

_CONFLICTS = {
    ConflictReason.NO_TARGET: "Nothing has a count: a bare pod, a Job, a DaemonSet, an object that is gone or going.",
    ConflictReason.NOT_PROVEN: "The framework, its version, its mode, or what makes its objects is not proven.",
    ConflictReason.UNKNOWN: "A kind that matters cannot be seen, or an object in it cannot be read.",
    ConflictReason.AUTOSCALED: "An HPA, a ScaledObject that is not paused, a PodAutoscaler, a VariantAutoscaling or a "
    "Dynamo planner rules it, or what is above or below it.  Autoscalers that KServe or NIM make from the object that "
    "is patched are no conflict.",
    ConflictReason.QUEUED: "Kueue has admitted it as a whole: it would be suspended and queued again.  Deployments and "
    "LeaderWorkerSets are free: Kueue counts their pods and groups one by one.",
    ConflictReason.ROLLOUT: "A rollout, an upgrade, a suspension or an earlier scaling is under way.",
    ConflictReason.GITOPS: "Argo CD, Flux, Config Sync, Rancher Fleet, Sveltos or Karmada keeps the object.  Not, if "
    "what Argo CD applied last is known and has none of the fields, or if Flux is told to leave the object alone.",
    ConflictReason.BUDGET: "A PodDisruptionBudget has no room.  It would not stop a controller, but states a floor.",
    ConflictReason.FLOOR: "It is at its floor: `minAvailable`, the least of a range, one prefill and one decode.",
    ConflictReason.INDIVISIBLE: "It cannot be reduced in part: a multi-node predictor, a RayJob, a head.",
    ConflictReason.VOLUMES: "A StatefulSet deletes the volumes of pods that go: they cannot be given back.",
    ConflictReason.OPTED_OUT: f"Its owner says no (`{REMEDIATION}`).",
    ConflictReason.BORROWED: "It has given already: `sevenhop.dev/borrowed` is on it.",
}


def render(table: ScalingTable = SCALING) -> str:
    """The page as Markdown, ending with a newline; the same for the same table."""
    lines = [_INTRO, "| framework | what is patched |", "| --- | --- |"]
    lines += [f"| {spec.framework} | {spec.docs} |" for spec in table.values()]
    lines += ["", "## Who chooses the pods that go", "", "| word | who |", "| --- | --- |"]
    lines += [f"| `{chooser}` | {_CHOOSERS[chooser]} |" for chooser in Chooser]
    lines += ["", "## Why a component is not reduced", "", "| reason | when |", "| --- | --- |"]
    lines += [f"| `{reason}` | {' '.join(_CONFLICTS[reason].split())} |" for reason in ConflictReason]
    lines += ["", "## What each may patch, and looks at", "", f"All look at {_codes(READS)}.", ""]
    lines += ["| framework | patches | looks at, too |", "| --- | --- | --- |"]
    lines += [_rights(spec) for spec in table.values() if spec.patches]
    return "\n".join(lines) + "\n"


def _rights(spec: ScalingSpec) -> str:
    patches = _codes([f"{kind}/{subresource}" if subresource else kind for kind, subresource in spec.patches])
    more = _codes([kind for kind in spec.reads if kind not in READS]) or "–"
    return f"| {spec.framework} | {patches} | {more} |"


def _codes(words: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
