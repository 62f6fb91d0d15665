"""A cluster with a plan, as an edge would tell it, and people who ask and decide at the socket of a worker."""

from __future__ import annotations

import getpass
import json
import re
import time
from pathlib import Path
from typing import Any

from sevenhop.cli.cluster import ask_service
from sevenhop.cli.output import UsageError
from sevenhop.core.events import Event
from tests.builders import Feed, at, deployment, dynamo, dynamo_pod, node, pod_of, replicaset
from tests.e2e.scaled_stage import Stage, WorkerProcess
from tests.shared import ROOT

Row = dict[str, Any]

SHORT = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
RULE = "component-short-of-gpus"
PLAYBOOK = "free-gpu-capacity"
ME = f"unix:{getpass.getuser()}"
PATIENCE_S = 40.0
KEY = "a key of the workers"
"""With which decisions are signed."""


def shortage(feed: Feed) -> list[Event]:
    """
    Everything of a cluster that is short of GPUs.

    Two nodes of four: two decode workers of `llama-70b` (critical) and two pods of `summarizer` (batch) hold all of
    them, and a third decode worker waits.
    """
    llama = dynamo("llama-70b", decode=3, annotations={"sevenhop.dev/tier": "critical"})
    donor = deployment("summarizer", replicas=2, gpus=2, annotations={"sevenhop.dev/tier": "batch"})
    replicas = replicaset(donor)
    placed = [dynamo_pod(llama, "decode", str(n), node=f"gpu-{n}") for n in (0, 1)]
    others = [pod_of(replicas, str(n), node=f"gpu-{n}") for n in (0, 1)]
    waiting = dynamo_pod(llama, "decode", "2", unschedulable=SHORT, since=at(10))
    nodes = [node("gpu-0", gpus=4), node("gpu-1", gpus=4)]
    return [*feed.applied(*nodes, llama, donor, replicas, *placed, *others, waiting), *feed.synced()]


def allow_plans(stage: Stage, folder: Path) -> None:
    """The workers to come have the rule of the shortage without its wait, a playbook that we may approve, and a key."""
    rules = folder / "rules" / "scheduling"
    rules.mkdir(parents=True)
    text = (ROOT / "rules" / "scheduling" / f"{RULE}.yaml").read_text("utf-8")
    (rules / f"{RULE}.yaml").write_text(re.sub(r"(?m)^for: .*$", "for: 0s", text), "utf-8")
    settings = json.loads(stage.config.read_text("utf-8"))
    settings["rules"].append(str(folder / "rules"))
    settings["remediation"] = {"playbooks": {PLAYBOOK: {"mode": "approve"}}, "approvers": [ME]}
    settings["runtime"]["decision_key"] = KEY
    for edge in stage.edges.values():
        edge.key = KEY
    stage.config.write_text(json.dumps(settings), "utf-8")


class Person:
    """Whoever asks at one worker's socket, as the command line does."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """
        Raises:
            UsageError: The worker refuses, with its words.
        """
        return ask_service(self._worker.state, method, path, body, query=query, refusals=(409,), patience_s=PATIENCE_S)

    def read(self, path: str, cluster: str) -> Any:
        """What the worker that has the cluster says; asked again while it is taken over."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.ask("GET", path, cluster=cluster)
            except UsageError as error:
                if "no worker answers" not in str(error) or time.monotonic() > until:
                    raise

    def rows(self, view: str, **query: str) -> list[Row]:
        """Rows of a listing; none while nobody answers."""
        try:
            return list(self.ask("GET", f"/get/{view}", **query) or [])
        except UsageError:
            return []

    def open_plans(self, cluster: str) -> list[Row]:
        return [row for row in self.rows("plans", cluster=cluster) if row["state"] == "proposed"]

    def decide(self, verb: str, plan: str, request: str = "", cluster: str = "") -> Row:
        body = {"verb": verb, "plan": plan, "request": request, "cluster": cluster}
        return dict(self.ask("POST", "/decide", body))

    def switch(self, *, on: bool, cluster: str = "") -> Row:
        return dict(self.ask("POST", "/switch", {"on": on, "comment": "a test", "cluster": cluster}))

    def is_stopped(self, cluster: str) -> bool:
        rows = self.read("/get/safety", cluster)
        return any(row["is_on"] for row in rows if row["what"] == "kill switch")

    def silence(self, cluster: str, *matchers: str) -> Row:
        body = {
            "matchers": list(matchers), "author": "ann", "comment": "a test", "cluster": cluster,
            "expires_at": "2099-01-01T00:00:00Z",
        }  # fmt: skip
        return dict(self.ask("POST", "/silence", body))

    def silences(self, cluster: str) -> list[str]:
        return [row["id"] for row in self.read("/get/silences", cluster)]

    def audited(self, cluster: str) -> list[str]:
        trail = self.read("/audit", cluster)
        assert trail["problems"] == []
        return [json.loads(line)["text"] for line in trail["records"]]
