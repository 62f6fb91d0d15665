"""KServe's row: InferenceService or LLMInferenceService."""

from __future__ import annotations

from collections.abc import Sequence

from sevenhop.core.inventory.templates import LWS
from sevenhop.core.inventory.workloads import Component, Framework, Workload
from sevenhop.core.objects.pod import Pod
from sevenhop.core.remediation.reduction import Conflict, ScalingSpec, View
from sevenhop.frameworks.kserve import CONFIG, ISVC, LLM
from sevenhop.frameworks.scaling import kserve_isvc, kserve_llm
from sevenhop.frameworks.scaling.controllers import DEPLOYMENT
from sevenhop.frameworks.scaling.row import row
from sevenhop.frameworks.scaling.way import Way


def find(view: View, workload: Workload, component: Component, pods: Sequence[Pod]) -> Way | Conflict:
    find_in = kserve_llm.find if workload.roots[0][0] == LLM else kserve_isvc.find
    return find_in(view, workload, component, pods)


KSERVE: ScalingSpec = row(
    Framework.KSERVE,
    "InferenceService, Standard: `minReplicas` and `maxReplicas` (classes hpa and keda), `minReplicas` (none), "
    "`/scale` of the Deployment (external). On Knative: `min-scale` and `max-scale` of the live Revision. A multi-node "
    "predictor is refused. LLMInferenceService: `replicas`, `scaling`, else `/scale` of its child.",
    (
        (ISVC, ""),
        (kserve_isvc.REVISION, ""),
        (LLM, ""),
        (DEPLOYMENT, ""),
        (DEPLOYMENT, "scale"),
        (LWS, "scale"),
    ),
    find,
    (ISVC, LLM, CONFIG, kserve_isvc.REVISION, LWS),
)
