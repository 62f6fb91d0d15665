"""What a pool is called: by the GPU of its nodes, and by the resource that pods ask for."""

from __future__ import annotations

from sevenhop.core.inventory.products import Product

MIG_PREFIX = "nvidia.com/mig-"
WHOLE = ("nvidia.com/gpu", "amd.com/gpu")
"""Resources whose pool is called by the product alone; of any other resource the name says which."""

_SHARED = "-SHARED"

_OTHERS = {"amd.com": ("NVIDIA", "Tesla", "Quadro"), "nvidia.com": ("AMD",)}
"""How products begin that are surely not of this vendor."""


def pool_name(product: Product, resource: str) -> str:
    """
    The pool that a resource of a node belongs to.

    Shares of a time-sliced GPU, MIG slices and whole GPUs are different things to wait for, so they are different
    pools; and so are two resources, since who asks for the one cannot be given the other: shares that a device plugin
    offers as ``nvidia.com/gpu`` or, renamed, as ``nvidia.com/gpu.shared``.  A node that does not name its GPU is in the
    pool of its resource.

    >>> pool_name(Product(name="NVIDIA-A100-SXM4-40GB", mig="mixed"), "nvidia.com/mig-1g.5gb")
    'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb'
    >>> pool_name(Product(name="NVIDIA-A10G", shared_by=4), "nvidia.com/gpu")
    'NVIDIA-A10G-SHARED'
    >>> pool_name(Product(name="NVIDIA-A10G"), "nvidia.com/gpu.shared")
    'NVIDIA-A10G-SHARED/nvidia.com/gpu.shared'
    >>> pool_name(Product(name="NVIDIA-L4"), "amd.com/gpu")
    'NVIDIA-L4/amd.com/gpu'
    """
    name = product.name or product.raw
    if not name:
        return resource
    if resource.startswith(MIG_PREFIX):
        return f"{name}-MIG-{resource.removeprefix(MIG_PREFIX)}"
    device = f"{name}-MIG-{product.mig}" if product.mig and product.mig != "mixed" else name
    if product.shared_by != 1 or resource.endswith(".shared"):
        device += _SHARED
    return device if resource in WHOLE and _is_made_by(name, resource) else f"{device}/{resource}"


def is_shared(pool: str) -> bool:
    """Whether a pool counts shares of devices."""
    return pool.partition("/")[0].endswith(_SHARED)


def is_of(pool: str, product: str) -> bool:
    """
    Whether a pool is of a product, in whatever way it is offered.

    >>> is_of("NVIDIA-L4-SHARED", "NVIDIA-L4"), is_of("NVIDIA-L40S", "NVIDIA-L4")
    (True, False)
    """
    device = pool.partition("/")[0].partition("-MIG-")[0]
    return device.removesuffix(_SHARED) == product


def _is_made_by(name: str, resource: str) -> bool:
    """A node may hold devices of a vendor that its labels do not speak of: two resources are never one pool."""
    return not name.startswith(_OTHERS.get(resource.partition("/")[0], ()))
