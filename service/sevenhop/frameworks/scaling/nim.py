"""NVIDIA NIM: the NIMService, whose operator writes everything below it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sevenhop.core.inventory.templates import LWS, replicas_of
from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.base import Object
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.action import Edit
from sevenhop.core.remediation.reduction import Conflict, ConflictReason, Ruler, ScalingSpec, View
from sevenhop.frameworks.nim import ROOT
from sevenhop.frameworks.reading import flag, number, spec_of, table, text
from sevenhop.frameworks.scaling.choosers import chooser_of, makers_of
from sevenhop.frameworks.scaling.controllers import DEPLOYMENT
from sevenhop.frameworks.scaling.proven import look
from sevenhop.frameworks.scaling.row import row
from sevenhop.frameworks.scaling.way import Change, Range, Way, called, line_of, ref_of

VERSIONS = ("v1alpha1",)

Writer = Callable[[int, Sequence[Pod]], Change | Conflict]


def find(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    service = look(view, ROOT, *workload.roots[0][1], VERSIONS)
    if isinstance(service, Conflict):
        return service
    platform = text(spec_of(service), "inferencePlatform")
    if platform and platform != "standalone":
        return Conflict(
            ConflictReason.NOT_PROVEN, f"{called(ref_of(ROOT, service))} runs on {platform}, which is not proven"
        )
    if flag(spec_of(service), "scale", "enabled"):
        return _ranged(view, service, component, pods)
    stated = number(spec_of(service), "replicas")
    replicas = 1 if stated is None else stated

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        return Change((Edit("/spec/replicas", stated, after),) if after != replicas else ())

    return _way(service, replicas, 0, component, pods, change)


def _ranged(view: View, service: Object, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    hpa = table(spec_of(service), "scale", "hpa")
    limits = Range(number(hpa, "minReplicas"), number(hpa, "maxReplicas"))
    above = [obj for (kind, _), obj in line_of(view, pods).objects.items() if kind in (DEPLOYMENT, LWS)]
    running = replicas_of(above[0]) if len(above) == 1 else None
    live = running if running is not None else _by_name(view, service)
    if live is None:
        return Conflict(ConflictReason.UNKNOWN, f"what {called(ref_of(ROOT, service))} is scaled to cannot be seen")
    if limits.is_left(live):
        return Conflict(
            ConflictReason.ROLLOUT, f"{called(ref_of(ROOT, service))} asks for {limits} and has {live} so far"
        )

    def change(after: int, _victims: Sequence[Pod]) -> Change:
        at_least, at_most = "/spec/scale/hpa/minReplicas", "/spec/scale/hpa/maxReplicas"
        return Change(limits.edits(after, at_least, at_most) if after < live else ())

    return _way(service, live, limits.floor(live, lowest=1), component, pods, change)


def _by_name(view: View, service: Object) -> int | None:
    """The operator names the Deployment like the NIMService."""
    obj = view.get(DEPLOYMENT, *service.metadata.key)
    return replicas_of(obj) if obj is not None else None


def _way(service: Object, replicas: int, floor: int, component: Component, pods: Sequence[Pod], change: Writer) -> Way:
    ref = ref_of(ROOT, service)
    ruler = Ruler(
        target=ref,
        replicas=replicas,
        floor=floor,
        unit_pods=component.pods_per_replica,
        chooser=chooser_of(pods),
        makers=makers_of(pods),
    )
    return Way(ruler=ruler, marked=ref, change=change, obeys=(ref,))


NIM: ScalingSpec = row(
    Framework.NIM,
    "`spec.replicas` of the NIMService, or `minReplicas` and `maxReplicas` of `spec.scale.hpa` where that is on; "
    "refused where it runs on KServe.",
    ((ROOT, ""),),
    find,
    (ROOT, LWS),
)
