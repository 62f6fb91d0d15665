"""What breaks and mends in the kill tests: lanes, each with one object that an alert is about."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.crash_processes import Cluster, Json

NAMESPACE = "prod"

_RULES = {
    "pod/replica-missing": ("component", "component.ready < component.desired", "0s", "{{ workload }} lacks a replica"),
    "discovery/node-gone": ("node", "!node.ready", "1s", "{{ node }} is not ready"),
}


def write_rules(folder: Path) -> Path:
    """One rule that fires at once, and one that waits a second."""
    for place, (subject, expr, hold, summary) in _RULES.items():
        file = folder / f"{place}.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(
            f"id: {file.stem}\n"
            "status: experimental\n"
            f"subject: {subject}\n"
            f'expr: "{expr}"\n'
            f"for: {hold}\n"
            "keep_firing_for: 0s\n"
            "severity: critical\n"
            f'annotations: {{summary: "{summary}"}}\n'
            "description: Something that should be there is not, and users see slower answers or errors.\n"
            "false_positives: [A rollout.]\n"
            "triage: Look at it.\n"
        )
    return folder


class Lane:
    """One object that breaks once and is mended once; `cause` is how the incident about it is called."""

    cause: str

    def __init__(self, number: int) -> None:
        self.name = f"lane-{number}"

    def put_up(self, cluster: Cluster) -> None:
        """Make it, well."""
        raise NotImplementedError

    def set_well(self, cluster: Cluster, *, well: bool) -> None:
        raise NotImplementedError


class WorkloadLane(Lane):
    """A model with one replica."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.cause = f"component:{NAMESPACE}/{self.name}/engine"
        self._paths = (
            f"/api/v1/namespaces/{NAMESPACE}/pods/{self.name}-a-1",
            f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets/{self.name}-a",
            f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{self.name}",
        )

    def put_up(self, cluster: Cluster) -> None:
        labels = {"app": self.name}
        engine = {
            "name": "vllm", "image": "vllm/vllm-openai:v0.11.0", "args": ["--model", f"acme/{self.name}"],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        }  # fmt: skip
        template = {"metadata": {"labels": labels}, "spec": {"containers": [engine]}}
        # None is wanted until the pod is ready: a lane must not be broken while it is put up.
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        owner: Json | None = None
        for path, body in (
            (self._paths[2], {"spec": spec}),
            (self._paths[1], {"spec": spec}),
            (self._paths[0], {"spec": {"containers": [engine], "nodeName": "steady"}}),
        ):
            folder, _, name = path.rpartition("/")
            meta: Json = {"name": name, "namespace": NAMESPACE, "labels": labels}
            if owner is not None:
                reference = {"apiVersion": "apps/v1", "kind": owner["kind"], "name": owner["metadata"]["name"]}
                meta["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
            owner = cluster.create(folder, {"metadata": meta, **body})
        self.set_well(cluster, well=True)
        for path in self._paths[1:]:
            cluster.patch(path, {"spec": {"replicas": 1}})

    def set_well(self, cluster: Cluster, *, well: bool) -> None:
        word = "True" if well else "False"
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": word}]
        status = {"name": "vllm", "ready": well, "image": "", "imageID": "", "restartCount": 0,
                  "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}  # fmt: skip
        cluster.patch_status(
            self._paths[0], {"phase": "Running", "conditions": conditions, "containerStatuses": [status]}
        )


class NodeLane(Lane):
    """A node without pods."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.cause = f"node:{self.name}"
        self._path = f"/api/v1/nodes/{self.name}"

    def put_up(self, cluster: Cluster) -> None:
        cluster.create(
            "/api/v1/nodes", {"metadata": {"name": self.name}, "spec": {}, "status": _node_status(well=True)}
        )

    def set_well(self, cluster: Cluster, *, well: bool) -> None:
        cluster.patch_status(self._path, _node_status(well=well))


def put_up_node(cluster: Cluster) -> None:
    """The node under all workloads."""
    cluster.create("/api/v1/nodes", {"metadata": {"name": "steady"}, "spec": {}, "status": _node_status(well=True)})


def _node_status(*, well: bool) -> Json:
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "1000", "nvidia.com/gpu": "800"}
    ready = {"type": "Ready", "status": "True" if well else "False", "reason": "KubeletReady"}
    return {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
