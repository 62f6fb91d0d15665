"""While replicas move by themselves nothing is reduced."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.remediation.reduction import ConflictReason
from tests.unit.scaling import scenes
from tests.unit.scaling.case import DEPLOYMENT, GRAPH, RAY, SERVICE, Case, beside, check, lws, ray, stateful, touched

R = ConflictReason
plain, dynamo, isvc = scenes.plain, scenes.dynamo, scenes.isvc
NEW = {
    "conditions": [{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}],
    "unavailableReplicas": 1,
}
DONE = {"conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}


def true(kind: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"}]}


STATEFUL = ("StatefulSet", "qwen")
OLDER = {"currentRevision": "a", "updateRevision": "b"}


def strategy(kind: str, **rolling: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": kind, **({"rollingUpdate": rolling} if rolling else {})}}


ROLLOUT = [
    Case(
        "deployment not observed",
        touched(plain, *DEPLOYMENT, metadata={"generation": 2}),
        "engine",
        R.ROLLOUT,
        ("Deployment summarizer",),
    ),
    Case(
        "deployment half updated",
        touched(plain, *DEPLOYMENT, status={"updatedReplicas": 2}),
        "engine",
        R.ROLLOUT,
        ("2 of 3",),
    ),
    Case(
        "deployment surge", touched(plain, *DEPLOYMENT, status={"replicas": 4}), "engine", R.ROLLOUT, ("older version",)
    ),
    Case(
        "deployment not available", touched(plain, *DEPLOYMENT, status=NEW), "engine", R.ROLLOUT, ("ReplicaSetUpdated",)
    ),
    Case(
        "deployment with a failing pod",
        touched(plain, *DEPLOYMENT, status={**DONE, "unavailableReplicas": 1}),
        "engine",
        None,
    ),
    Case(
        "deployment below a graph",
        touched(dynamo, "Deployment", "llama-70b-vllmdecodeworker", status={"replicas": 3}),
        "VllmDecodeWorker",
        R.ROLLOUT,
        ("llama-70b-vllmdecodeworker",),
    ),
    Case(
        "stateful set",
        touched(stateful, "StatefulSet", "qwen", status={"currentRevision": "a", "updateRevision": "b"}),
        "engine",
        R.ROLLOUT,
    ),
    Case(
        "stateful set, held by its partition",
        touched(stateful, *STATEFUL, status=OLDER, spec=strategy("RollingUpdate", partition=2)),
        "engine",
        R.ROLLOUT,
        ("partition of 2", "finish the update"),
    ),
    Case(
        "stateful set, a partition that holds nothing",
        touched(stateful, *STATEFUL, status=OLDER, spec=strategy("RollingUpdate", partition=0)),
        "engine",
        R.ROLLOUT,
        ("wait until it is done",),
    ),
    Case(
        "stateful set, updated as pods are removed",
        touched(stateful, *STATEFUL, status=OLDER, spec=strategy("OnDelete")),
        "engine",
        R.ROLLOUT,
        ("OnDelete",),
    ),
    Case("stateful set, OnDelete and done", touched(stateful, *STATEFUL, spec=strategy("OnDelete")), "engine", None),
    Case("deployment paused", touched(plain, *DEPLOYMENT, spec={"paused": True}), "engine", None),
    Case(
        "deployment paused in the middle",
        touched(plain, *DEPLOYMENT, spec={"paused": True}, status={"updatedReplicas": 2}),
        "engine",
        R.ROLLOUT,
        ("2 of 3", "paused", "resume it"),
    ),
    Case(
        "stateful set, done",
        touched(stateful, "StatefulSet", "qwen", status={"currentRevision": "b", "updateRevision": "b"}),
        "engine",
        None,
    ),
    Case(
        "lws update",
        touched(lws, "LeaderWorkerSet", "llama-405b", status=true("UpdateInProgress")),
        "engine",
        R.ROLLOUT,
    ),
    Case(
        "lws not observed",
        touched(lws, "LeaderWorkerSet", "llama-405b", metadata={"generation": 2}),
        "engine",
        R.ROLLOUT,
    ),
    Case("ray upgrade", touched(ray, *RAY, status=true("UpgradeInProgress")), "h100", R.ROLLOUT, ("RayService chat",)),
    Case(
        "ray pending cluster",
        touched(ray, *RAY, status={"pendingServiceStatus": {"rayClusterName": "chat-new"}}),
        "h100",
        R.ROLLOUT,
        ("chat-new",),
    ),
    Case("ray suspended", touched(ray, *RAY, status=true("Suspended")), "h100", R.ROLLOUT),
    Case(
        "graph rolling",
        touched(dynamo, *GRAPH, status={"rollingUpdate": {"phase": "InProgress"}}),
        "VllmDecodeWorker",
        R.ROLLOUT,
    ),
    Case(
        "graph rolled",
        touched(dynamo, *GRAPH, status={"rollingUpdate": {"phase": "Completed"}}),
        "VllmDecodeWorker",
        None,
    ),
    Case(
        "adapter on its way",
        beside(
            lambda: scenes.dynamo_with(lambda parts: parts[1].update(scalingAdapter={})), scenes.adapter(replicas=5)
        ),
        "VllmDecodeWorker",
        R.ROLLOUT,
        ("5", "2"),
    ),
    Case(
        "knative revision to come",
        touched(
            scenes.knative,
            *SERVICE,
            status={
                "components": {
                    "predictor": {"latestCreatedRevision": "qwen-3", "latestReadyRevision": "qwen-predictor-00002"}
                }
            },
        ),
        "predictor",
        R.ROLLOUT,
        ("qwen-3",),
    ),
    Case(
        "knative canary",
        touched(
            scenes.knative,
            *SERVICE,
            status={
                "components": {
                    "predictor": {
                        "latestReadyRevision": "qwen-predictor-00002",
                        "traffic": [{"revisionName": "a", "percent": 10}, {"revisionName": "b", "percent": 90}],
                    }
                }
            },
        ),
        "predictor",
        R.ROLLOUT,
    ),
    Case("KServe still scaling up", lambda: isvc(least=4, most=6, running_now=3), "predictor", R.ROLLOUT, ("4–6",)),
    Case("KServe none still scaling", lambda: isvc("none", least=4, running_now=3), "predictor", R.ROLLOUT),
    Case("llm child not there yet", lambda: scenes.llm(replicas=5), "decode", R.ROLLOUT, ("5",)),
]


@pytest.mark.parametrize("case", ROLLOUT, ids=lambda case: case.id)
def test_rollouts(case: Case) -> None:
    """
    A rollout refuses while it lasts; pods that merely fail are no rollout.
    """
    check(case)
