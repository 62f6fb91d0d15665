"""llm-d: Deployments or LeaderWorkerSets of its modelservice chart, told by labels, behind an InferencePool."""

from __future__ import annotations

from sevenhop.core.inventory.framework import Candidate, Claim, FrameworkSpec
from sevenhop.core.inventory.templates import LWS
from sevenhop.core.inventory.workloads import Framework, Model, Registration
from sevenhop.frameworks.controllers import model_of_controller, place_in_controller, read_controller
from sevenhop.frameworks.engine import Engine, engine_of
from sevenhop.frameworks.reading import over
from sevenhop.frameworks.roles import role_in, stem_of

_SERVING = "llm-d.ai/inference-serving"
_MODEL = "llm-d.ai/model"
_ROLE = "llm-d.ai/role"
_COMPONENT = "llm-d.ai/component"


def claim(candidate: Candidate) -> Claim | str:
    labels = {**candidate.labels, **candidate.template.metadata.labels}
    if labels.get(_SERVING) != "true" and not ({_MODEL, _ROLE, _COMPONENT} & labels.keys()):
        return ""
    engine = engine_of(candidate.template.spec)
    said = engine if isinstance(engine, Engine) else None
    role = role_in(labels.get(_ROLE, "")) or role_in(labels.get(_COMPONENT, "")) or (said.role if said else "")
    if said is None and not role and labels.get(_SERVING) != "true":
        return "carries a label of llm-d, and runs no engine that is known"
    stem = stem_of(candidate.ref.name) if role else candidate.ref.name
    model = over(said.model if said else Model(), name="" if said and said.model.name else labels.get(_MODEL, ""))
    return Claim(
        role=role or "engine", model=model, folds=(f"llm-d/{stem}/{labels.get(_MODEL, '')}",), name=stem, helm=True
    )


SPEC = FrameworkSpec(
    framework=Framework.LLM_D,
    docs="llm-d: prefill and decode Deployments of one release, told by llm-d.ai labels, picked by an endpoint picker.",
    claims=("Deployment.apps", "StatefulSet.apps", LWS, "Pod"),
    labels=(_MODEL, _ROLE, _SERVING),
    registers=Registration.POOL,
    scale="`/scale` of the Deployment or LeaderWorkerSet, or the autoscaler that rules it; a helm upgrade reverts it.",
    read=read_controller,
    place=place_in_controller,
    model=model_of_controller,
    claim=claim,
)
