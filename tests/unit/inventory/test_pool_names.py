"""What a pool's name says, and what it does not."""

from __future__ import annotations

import pytest

from sevenhop.core.inventory.pool_names import is_of, is_shared, pool_name
from sevenhop.core.inventory.products import Product


@pytest.mark.parametrize(
    ("name", "resource", "is_another"),
    [
        pytest.param("NVIDIA-L4", "nvidia.com/gpu", False, id="NVIDIA's of NVIDIA"),
        pytest.param("Tesla-T4", "nvidia.com/gpu", False, id="an old card of NVIDIA"),
        pytest.param("AMD-Instinct-MI300X", "amd.com/gpu", False, id="AMD's of AMD"),
        pytest.param("NVIDIA-L4", "amd.com/gpu", True, id="AMD's on a node that names NVIDIA's"),
        pytest.param("Tesla-T4", "amd.com/gpu", True, id="AMD's on a node that names an old card of NVIDIA"),
        pytest.param("Quadro-RTX-6000", "amd.com/gpu", True, id="AMD's on a node that names a workstation card"),
        pytest.param("AMD-Instinct-MI300X", "nvidia.com/gpu", True, id="NVIDIA's on a node that names AMD's"),
        pytest.param("odd-card", "amd.com/gpu", False, id="of a name that says no vendor"),
    ],
)
def test_devices_of_another_vendor_than_the_node_names(name: str, resource: str, is_another: bool) -> None:
    """They are a pool of their own: whoever asks for one vendor's cannot be given the other's."""
    assert pool_name(Product(name=name), resource) == (f"{name}/{resource}" if is_another else name)


@pytest.mark.parametrize(
    ("product", "resource", "name"),
    [
        pytest.param(Product(), "nvidia.com/gpu", "nvidia.com/gpu", id="a node that does not say"),
        pytest.param(Product(raw="odd"), "nvidia.com/gpu", "odd", id="as the node says it"),
        pytest.param(Product(name="L4"), "nvidia.com/gpu", "L4", id="whole"),
        pytest.param(Product(name="L4", mig="mixed"), "nvidia.com/gpu", "L4", id="whole beside slices"),
        pytest.param(Product(name="L4", mig="mixed"), "nvidia.com/mig-1g.5gb", "L4-MIG-1g.5gb", id="slices"),
        pytest.param(Product(name="L4", mig="1g.5gb"), "nvidia.com/gpu", "L4-MIG-1g.5gb", id="slices alone"),
        pytest.param(Product(name="L4", shared_by=4), "nvidia.com/gpu", "L4-SHARED", id="shares"),
        pytest.param(
            Product(name="L4"), "nvidia.com/gpu.shared", "L4-SHARED/nvidia.com/gpu.shared", id="shares, renamed"
        ),
        pytest.param(Product(name="L4"), "gpu.nvidia.com", "L4/gpu.nvidia.com", id="a driver's"),
    ],
)
def test_pool_name(product: Product, resource: str, name: str) -> None:
    """What is waited for differently is called differently."""
    assert pool_name(product, resource) == name


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        pytest.param("NVIDIA-L4", False, id="whole"),
        pytest.param("NVIDIA-L4-SHARED", True, id="shares"),
        pytest.param("NVIDIA-L4-SHARED/nvidia.com/gpu.shared", True, id="shares, renamed"),
        pytest.param("NVIDIA-L4/corp.example/gpu-SHARED", False, id="a resource of that name"),
        pytest.param("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", True, id="shares of slices"),
    ],
)
def test_is_shared(pool: str, expected: bool) -> None:
    """The device's part of the name says it, not the resource's."""
    assert is_shared(pool) is expected


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param("NVIDIA-L4", id="whole"),
        pytest.param("NVIDIA-L4-SHARED", id="shares"),
        pytest.param("NVIDIA-L4-SHARED/nvidia.com/gpu.shared", id="shares, renamed"),
        pytest.param("NVIDIA-L4-MIG-1g.5gb", id="slices"),
        pytest.param("NVIDIA-L4-MIG-1g.5gb-SHARED", id="shares of slices"),
        pytest.param("NVIDIA-L4/gpu.nvidia.com", id="a driver's"),
    ],
)
def test_is_of(pool: str) -> None:
    """However a product is offered it is that product, and none of which the name only begins alike."""
    assert is_of(pool, "NVIDIA-L4") is True
    assert is_of(pool, "NVIDIA-L40S") is False
    assert is_of(pool, "nvidia.com") is False
