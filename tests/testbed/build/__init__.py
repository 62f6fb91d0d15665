"""Manifests for tests, as plain dicts; nothing here talks to a cluster.

Where an operator cannot run on the test bed (Dynamo, Grove, KServe, LeaderWorkerSet), functions named
after it return the children that it would make. They take parents as the API server returned them,
since owner references need real uids; `tests.testbed.operators` calls them in order.
"""

from tests.testbed.build.core import (
    annotated,
    cpu_node,
    deployment,
    gpu_node,
    namespace,
    owned_by,
    pod,
    pod_spec,
    priority_class,
    service,
    vllm_deployment,
)
from tests.testbed.build.dynamo import (
    Component,
    dgd,
    dynamo_component_deployments,
    dynamo_deployment,
    dynamo_scaling_adapters,
)
from tests.testbed.build.grove import (
    grove_pod_clique_set,
    grove_pod_cliques,
    grove_pods,
    grove_scaling_groups,
)
from tests.testbed.build.kserve import inference_service, kserve_deployment, kserve_hpa
from tests.testbed.build.lws import (
    leader_worker_set,
    lws_leaders,
    lws_worker_labels,
    lws_workers,
)
from tests.testbed.build.ray import ray_cluster, ray_service

__all__ = [
    "Component",
    "annotated",
    "cpu_node",
    "deployment",
    "dgd",
    "dynamo_component_deployments",
    "dynamo_deployment",
    "dynamo_scaling_adapters",
    "gpu_node",
    "grove_pod_clique_set",
    "grove_pod_cliques",
    "grove_pods",
    "grove_scaling_groups",
    "inference_service",
    "kserve_deployment",
    "kserve_hpa",
    "leader_worker_set",
    "lws_leaders",
    "lws_worker_labels",
    "lws_workers",
    "namespace",
    "owned_by",
    "pod",
    "pod_spec",
    "priority_class",
    "ray_cluster",
    "ray_service",
    "service",
    "vllm_deployment",
]
