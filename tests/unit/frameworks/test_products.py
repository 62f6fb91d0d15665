"""Which GPU a node has and a pod wants."""

from __future__ import annotations

from typing import Any

import pytest

from sevenhop.core.inventory.products import (
    Product,
    gpu_resources,
    gpus_of_instance,
    node_product,
    normalise,
    pod_gpus,
    product_of_instance,
    wanted_product,
    wanted_products,
)
from sevenhop.core.inventory.templates import as_pod_spec
from sevenhop.core.objects.cluster import Node
from sevenhop.core.objects.decode import convert
from sevenhop.core.objects.kinds import KINDS

H100 = "NVIDIA-H100-80GB-HBM3"


def node(labels: dict[str, str], **allocatable: str) -> Node:
    amounts = {name.replace("_", "/", 1).replace("__", "."): amount for name, amount in allocatable.items()}
    found = convert(KINDS["Node"], {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": amounts}})
    assert isinstance(found, Node)
    return found


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (H100, H100),
        ("NVIDIA-H100-80GB-HBM3-SHARED", H100),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", H100),
        ("NVIDIA H100 80GB HBM3", H100),
        ("nvidia-h100-80gb", H100),
        ("nvidia-h100-mega-80gb", H100),
        ("h100", H100),
        ("h100_sxm", H100),
        ("NVIDIA-H100-NVL", "NVIDIA-H100-NVL"),
        ("NVIDIA-H100-PCIe", "NVIDIA-H100-PCIe"),
        ("h100_pcie", "NVIDIA-H100-PCIe"),
        ("nvidia-h200-141gb", "NVIDIA-H200"),
        ("gb200", "NVIDIA-GB200"),
        ("b200", "NVIDIA-B200"),
        ("nvidia-tesla-a100", "NVIDIA-A100-SXM4-40GB"),
        ("nvidia-a100-80gb", "NVIDIA-A100-SXM4-80GB"),
        ("A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-PCIE-80GB", "NVIDIA-A100-PCIE-80GB"),
        ("NVIDIA-A100-80GB-PCIe", "NVIDIA-A100-PCIE-80GB"),
        ("a10g", "NVIDIA-A10G"),
        ("NVIDIA-A10", "NVIDIA-A10"),
        ("l40s", "NVIDIA-L40S"),
        ("nvidia-l4", "NVIDIA-L4"),
        ("nvidia-tesla-t4", "Tesla-T4"),
        ("NVIDIA-V100-SXM2-16GB", "Tesla-V100-SXM2-16GB"),
        ("Tesla-V100-SXM2-32GB", "Tesla-V100-SXM2-32GB"),
        ("rtx-pro-server-6000", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"),
        ("AMD_Instinct_MI300X_OAM", "AMD-Instinct-MI300X-OAM"),
        ("nvidia", ""),
        ("", ""),
    ],
)
def test_normalise(raw: str, expected: str) -> None:
    """
    Every spelling of one product is one word, and other form factors are other products.
    """
    assert expected == normalise(raw)
    assert expected == normalise(expected)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"nvidia.com/gpu.product": H100}, Product(H100, H100), id="label"),
        pytest.param(
            {"nvidia.com/gpu.product": f"{H100}-SHARED", "nvidia.com/gpu.replicas": "4"},
            Product(H100, f"{H100}-SHARED", shared_by=4),
            id="time-sliced",
        ),
        pytest.param(
            {"nvidia.com/gpu.product": f"{H100}-SHARED"},
            Product(H100, f"{H100}-SHARED", shared_by=0),
            id="by an unknown number",
        ),
        pytest.param(
            {"nvidia.com/gpu.product": f"{H100}-MIG-1g.10gb"},
            Product(H100, f"{H100}-MIG-1g.10gb", mig="1g.10gb"),
            id="MIG single",
        ),
        pytest.param(
            {"cloud.google.com/gke-accelerator": "nvidia-l4", "node.kubernetes.io/instance-type": "g2-standard-4"},
            Product("NVIDIA-L4", "nvidia-l4"),
            id="cloud label",
        ),
        pytest.param(
            {"karpenter.k8s.aws/instance-gpu-name": "a100", "karpenter.k8s.aws/instance-gpu-memory": "81920"},
            Product("NVIDIA-A100-SXM4-80GB", "a100"),
            id="AWS tells sizes by memory",
        ),
        pytest.param(
            {
                "kubernetes.azure.com/accelerator": "nvidia",
                "node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5",
            },
            Product(H100, "Standard_ND96isr_H100_v5"),
            id="Azure says only nvidia",
        ),
        pytest.param({"node.kubernetes.io/instance-type": "m5.large"}, Product(), id="no GPU"),
        pytest.param({"accelerator": "nvidia"}, Product(raw="nvidia"), id="a GPU that nobody names"),
    ],
)
def test_node_product(labels: dict[str, str], expected: Product) -> None:
    """
    The most trusted label counts, the raw word is kept, sharing and MIG are told apart.
    """
    assert expected == node_product(node(labels))


def test_mixed_mig_is_told_by_resources() -> None:
    """
    With the mixed strategy the product has no suffix; the profiles are resources.
    """
    mixed = convert(
        KINDS["Node"],
        {
            "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": H100}},
            "status": {"allocatable": {"nvidia.com/mig-1g.10gb": "7"}},
        },
    )

    assert isinstance(mixed, Node)
    assert node_product(mixed).mig == "mixed"


@pytest.mark.parametrize(
    ("instance", "product", "gpus"),
    [
        ("p5.48xlarge", H100, 8),
        ("p5en.48xlarge", "NVIDIA-H200", 8),
        ("p4de.24xlarge", "NVIDIA-A100-SXM4-80GB", 8),
        ("g6e.12xlarge", "NVIDIA-L40S", 4),
        ("g6.xlarge", "NVIDIA-L4", 1),
        ("g5.2xlarge", "NVIDIA-A10G", 1),
        ("g4dn.xlarge", "Tesla-T4", 1),
        ("gr6.4xlarge", "NVIDIA-L4", 0),
        ("g5g.xlarge", "NVIDIA-T4G", 0),
        ("Standard_NC24ads_A100_v4", "NVIDIA-A100-PCIE-80GB", 1),
        ("Standard_ND96isr_H100_v5", H100, 8),
        ("a3-highgpu-8g", H100, 0),
        ("a3-ultragpu-8g", "NVIDIA-H200", 0),
        ("m5.large", "", 0),
    ],
)
def test_instances(instance: str, product: str, gpus: int) -> None:
    """
    Instance types name a product, and a count only where it is certain.
    """
    assert (product, gpus) == (product_of_instance(instance), gpus_of_instance(instance))


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions} for expressions in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def wants(*values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": "nvidia.com/gpu.product", "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (), id="any"),
        pytest.param({"nodeSelector": {"nvidia.com/gpu.product": H100}}, (H100,), id="selector"),
        pytest.param({"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}, ("NVIDIA-L4",), id="cloud"),
        pytest.param({"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}}, (H100,), id="instance"),
        pytest.param({"nodeSelector": {"accelerator": "nvidia"}}, (), id="only the maker"),
        pytest.param({"affinity": affinity([wants(H100, f"{H100}-SHARED")])}, (H100,), id="shared or not"),
        pytest.param({"affinity": affinity([wants(H100)], [wants("NVIDIA-H200")])}, (H100, "NVIDIA-H200"), id="either"),
        pytest.param({"affinity": affinity([wants(H100)], [wants("x", operator="Exists")])}, (), id="or any"),
        pytest.param({"affinity": affinity([wants(H100, operator="NotIn")])}, (), id="not this one"),
        pytest.param(
            {"nodeSelector": {"nvidia.com/gpu.product": H100}, "affinity": affinity([wants(H100, "NVIDIA-H200")])},
            (H100,),
            id="both hold",
        ),
    ],
)
def test_wanted(spec: dict[str, Any], expected: tuple[str, ...]) -> None:
    """
    What a pod may run on; one word only if there is one.
    """
    pod = as_pod_spec(spec)

    assert expected == wanted_products(pod)
    assert wanted_product(pod) == (expected[0] if len(expected) == 1 else "")


def test_gpu_resources() -> None:
    """
    Accelerators of every maker count, all else and zeros do not.
    """
    amounts: dict[str, str | int | float] = {
        "cpu": "4", "memory": "1Gi", "rdma/ib": 1, "nvidia.com/gpu": "2", "nvidia.com/mig-3g.40gb": 1, "amd.com/gpu": 0,
        "gpu.intel.com/i915": "1", "gpu.intel.com/millicores": "100", "habana.ai/gaudi": 8,
        "aws.amazon.com/neuroncore": 2, "nvidia.com/gpumem": 1024, "google.com/tpu": 4,
    }  # fmt: skip

    assert gpu_resources(amounts) == {
        "nvidia.com/gpu": 2, "nvidia.com/mig-3g.40gb": 1, "gpu.intel.com/i915": 1, "habana.ai/gaudi": 8,
        "aws.amazon.com/neuroncore": 2, "google.com/tpu": 4,
    }  # fmt: skip


def test_pod_gpus() -> None:
    """
    Containers and sidecars add up; an init container that ends only has to fit.
    """

    def box(gpus: int, **more: str) -> dict[str, Any]:
        return {"name": f"c{gpus}", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}, **more}

    assert pod_gpus(as_pod_spec({"containers": [box(2), box(1)]})) == {"nvidia.com/gpu": 3}
    assert pod_gpus(as_pod_spec({"containers": [box(2)], "initContainers": [box(4)]})) == {"nvidia.com/gpu": 4}
    always = box(1, restartPolicy="Always")
    assert pod_gpus(as_pod_spec({"containers": [box(2)], "initContainers": [always]})) == {"nvidia.com/gpu": 3}
