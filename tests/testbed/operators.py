"""Plays the operators that cannot run here: creates an object and the children it would get.

Once, not continuously: a later change of the parent reaches no child.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.testbed import build
from tests.testbed.client import Client, Object
from tests.testbed.waiting import eventually


def create_dynamo(
    client: Client, graph: Object, components: Sequence[build.Component], *, grove: bool = False
) -> Object:
    """Create a DynamoGraphDeployment with its DCDs and Deployments, or with its Grove objects."""
    created = client.create(graph)
    for adapter in build.dynamo_scaling_adapters(created, components):
        client.create(adapter)
    if grove:
        clique_set = client.create(build.grove_pod_clique_set(created, components))
        groups = [client.create(group) for group in build.grove_scaling_groups(clique_set)]
        for clique in build.grove_pod_cliques(clique_set, groups):
            for pod in build.grove_pods(client.create(clique)):
                client.create(pod)
        return created
    parts = build.dynamo_component_deployments(created, components)
    for part, component in zip(parts, components, strict=True):
        client.create(build.dynamo_deployment(client.create(part), created, component))
    return created


def create_kserve(client: Client, service: Object, *, pod_annotations: Mapping[str, str] | None = None) -> Object:
    """Create an InferenceService with its Deployment, HorizontalPodAutoscaler and Service."""
    created = client.create(service)
    deployment = client.create(build.kserve_deployment(created, pod_annotations=pod_annotations))
    autoscaler = build.kserve_hpa(created)
    if autoscaler is not None:
        client.create(autoscaler)
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    selector = deployment["spec"]["selector"]["matchLabels"]
    client.create(build.owned_by(build.service(name, namespace, selector, port=8080), created))
    return created


def create_lws(client: Client, leader_worker_set: Object) -> Object:
    """Create a LeaderWorkerSet with its StatefulSets, and label its pods as its webhook does."""
    created = client.create(leader_worker_set)
    name, namespace = created["metadata"]["name"], created["metadata"]["namespace"]
    template = created["spec"]["leaderWorkerTemplate"]
    client.create(build.lws_leaders(created))
    groups = created["spec"]["replicas"]
    for leader in _pods(client, namespace, name, groups):
        client.create(build.lws_workers(leader, created))
    for pod in _pods(client, namespace, name, groups * template["size"]):
        labels = build.lws_worker_labels(pod)
        patch = {"metadata": {"labels": labels}}
        client.patch("v1", "Pod", pod["metadata"]["name"], namespace, patch)
    return created


def _pods(client: Client, namespace: str, name: str, count: int) -> list[Object]:
    labels = f"leaderworkerset.sigs.k8s.io/name={name}"

    def look() -> list[Object]:
        found = client.list("v1", "Pod", namespace, labels=labels)
        return found if len(found) >= count else []

    return eventually(look, what=f"{count} pods of {name}") if count else []
