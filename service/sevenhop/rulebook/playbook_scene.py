"""
What people write of a playbook from its beginning: a small cluster, what happens in it and who decides, and what must
be so at which second, from the alert to the day when everything is back.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from sevenhop.core.events import Verb
from sevenhop.core.objects.kinds import KINDS
from sevenhop.core.remediation.plan import NoPlanReason
from sevenhop.core.remediation.playbook import Mode
from sevenhop.core.remediation.states import PlanState
from sevenhop.rulebook.gpu_timeline import GpuMoment
from sevenhop.rulebook.playbook_schema import Approver, ModeWord
from sevenhop.rulebook.problem import did_you_mean
from sevenhop.rulebook.schema import Duration, Model, Slug, Text, word

NONE = "none"
PlanWord = StrEnum("PlanWord", {"NONE": NONE, **{each.name: each.value for each in PlanState}})  # type: ignore[misc]
"""`none`, or the state of a plan."""
Count = Annotated[int, Field(ge=0, le=64)]


def _served(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"expected a kind such as Deployment.apps, got {name!r}{did_you_mean(name, KINDS)}")
    return name


class SceneWorkload(Model):
    """A Deployment of a plain engine, in the namespace `test`; all of it runs when the scene begins."""

    replicas: Count
    gpus: Count = Field(default=1, description="Of one replica.")
    tier: Literal["critical", "standard", "batch"] | None = None
    loads: Duration = Field(default=timedelta(seconds=60), description="From running to Ready.")
    annotations: dict[str, str] = Field(default_factory=dict)


class SceneCluster(Model):
    """All nodes carry H100s, and a device plugin of a DaemonSet; a scheduler and kubelets are at work."""

    nodes: Annotated[dict[Slug, Count], Field(min_length=1, max_length=20)] = Field(description="Name to its GPUs.")
    workloads: dict[Slug, SceneWorkload] = Field(default_factory=dict)
    agents: bool = Field(
        default=False, description="A GPU agent on each node; these are called node-1, node-2 … and are alike."
    )

    @model_validator(mode="after")
    def _has_alike_nodes(self) -> SceneCluster:
        if self.agents:
            names = [f"node-{i + 1}" for i in range(len(self.nodes))]
            if list(self.nodes) != names or len(set(self.nodes.values())) > 1:
                raise ValueError("with `agents`, nodes are called node-1, node-2 …, and have as many GPUs each")
        return self


class Decision(Model):
    """A person decides about the newest plan; verified just now."""

    by: Approver
    verb: Annotated[Verb, word(Verb)] = Verb.APPROVE


class Stuck(Model):
    """A pod of a workload, or a node's device plugin, does not get on from here on; made anew it does."""

    workload: Slug = Field(description="`device-plugin` for that.")
    node: str = Field(description="Where it runs.")
    exit_code: int = 1
    restarts: Count = 3


class Patch(Model):
    """A merge patch of one object, as its owner or a controller writes it; `status` too."""

    kind: Annotated[str, AfterValidator(_served)]
    name: str
    namespace: str = ""
    set: dict[str, Any]


class SceneMoment(Model):
    """What happens at one second, in this order."""

    at: Duration
    replicas: dict[Slug, Count] = Field(default_factory=dict, description="Owners scale their workloads.")
    nodes: dict[Slug, Count] = Field(default_factory=dict, description="Nodes that are added, with their GPUs.")
    advertises: dict[Slug, Count] = Field(default_factory=dict, description="GPUs that a node offers from here on.")
    stuck: list[Stuck] = Field(default_factory=list)
    patch: list[Patch] = Field(default_factory=list)
    kill_switch: bool | None = None
    decide: list[Decision] = Field(default_factory=list)


class SceneExpectation(Model):
    """What must be so at one second, after everything of that second; what is not named is not looked at."""

    at: Duration
    fires: list[Slug] | None = Field(default=None, description="Rules that name the playbook and fire now.")
    plan: Annotated[PlanWord, word(PlanWord)] | None = Field(default=None, description="State of the newest plan.")
    because: Annotated[NoPlanReason, word(NoPlanReason)] | None = Field(
        default=None, description="Why nothing is offered."
    )
    says: str | None = Field(default=None, description="Part of what is said of the plan, or of why there is none.")
    told: str | None = Field(default=None, description="Part of the answer to the last decision.")
    replicas: dict[Slug, Count] = Field(default_factory=dict, description="What workloads ask for.")
    ready: dict[Slug, Count] = Field(default_factory=dict, description="Ready pods of workloads.")
    cordoned: list[Slug] | None = Field(default=None, description="Nodes that take no new pods.")


class PlaybookScene(Model):
    """
    One story from the alert on, through the whole of the core, the executor and a simulated cluster.

    Attributes:
        mode, approvers, approvals: As an operator sets them for this story; shipped playbooks ask nobody.
    """

    name: Text
    mode: ModeWord = Mode.APPROVE
    approvers: list[Approver] = Field(default_factory=lambda: ["slack:U1", "slack:U2"])
    approvals: Literal[1, 2] | None = None
    cluster: SceneCluster
    samples: list[GpuMoment] = Field(default_factory=list, description="What GPU agents say from when on.")
    story: list[SceneMoment] = Field(default_factory=list)
    expect: Annotated[list[SceneExpectation], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_told_in_order(self) -> PlaybookScene:
        for times in ([m.at for m in self.story], [m.at for m in self.samples], [e.at for e in self.expect]):
            if times != sorted(times):
                raise ValueError("times should go forward")
        if self.samples and not self.cluster.agents:
            raise ValueError("`samples` need `agents: true`")
        if not self.approvers and any(m.kill_switch is not None for m in self.story):
            raise ValueError("`kill_switch` needs one of `approvers` who turns it")
        known = {*self.cluster.workloads}
        for named in (*(m.replicas for m in self.story), *(e.replicas for e in self.expect)):
            for name in named:
                if name not in known:
                    raise ValueError(f"there is no workload {name}{did_you_mean(name, known)}")
        return self

    @property
    def end(self) -> timedelta:
        return max([self.expect[-1].at, *(m.at for m in self.story), *(m.at for m in self.samples)])


MODELS = (SceneWorkload, SceneCluster, Decision, Stuck, Patch, SceneMoment, SceneExpectation, PlaybookScene)
