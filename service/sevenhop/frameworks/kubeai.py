"""KubeAI: a Model owns its pods directly."""

from __future__ import annotations

from sevenhop.core.inventory.framework import Found, FrameworkSpec, Place, Reading, RootRef
from sevenhop.core.inventory.products import normalise, product_of_instance
from sevenhop.core.inventory.templates import with_intended_zero
from sevenhop.core.inventory.workloads import Component, Framework, Model, ScaleTarget
from sevenhop.core.objects.base import Meta
from sevenhop.core.objects.pod import PodSpec
from sevenhop.frameworks.engine import model_of_pod
from sevenhop.frameworks.flags import flags_of
from sevenhop.frameworks.model_source import from_uri
from sevenhop.frameworks.reading import flag, number, over, spec_of, text, words

ROOT = "Model.kubeai.org"
_MANAGED = "app.kubernetes.io/managed-by"
_VENDORS = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "gaudi": "habana.ai/gaudi", "google": "google.com/tpu"}


def read(found: Found) -> Reading:
    spec = spec_of(found.obj)
    url = text(spec, "url")
    artifact = from_uri(url) if url else Model()
    revision = flags_of(words(spec, "args")).get("revision", "")
    # Requests name the Model object; KubeAI rewrites the body to what the engine serves.
    model = over(artifact, name=found.ref.name, version=revision)
    profile, _, count = text(spec, "resourceProfile").partition(":")
    resource, product = _profile(profile)
    least, most = number(spec, "minReplicas") or 0, number(spec, "maxReplicas")
    wanted = number(spec, "replicas")
    desired = least if wanted is None else wanted
    is_free = flag(spec, "autoscalingDisabled")
    if not is_free:
        desired = max(least, desired if most is None else min(desired, most))
    units = int(count) if count.isdecimal() else 1
    if is_free:
        scale = ScaleTarget(ROOT, found.ref.namespace, found.ref.name, "spec.replicas", 1, "through /scale")
    else:
        note = "at least 1; with minReplicas; the controller keeps replicas between them"
        scale = ScaleTarget(ROOT, found.ref.namespace, found.ref.name, "spec.maxReplicas", 1, note)
    part = Component(
        name="engine",
        role="engine",
        desired=desired,
        minimum=number(spec, "minReplicas"),
        gpus_per_replica=units if resource else 0,
        gpu_resource=resource,
        product=product,
        priority_class=text(spec, "priorityClassName"),
        model=model,
        image=text(spec, "image"),
        scale=scale,
    )
    return Reading(components=(with_intended_zero(part),), model=model)


def _profile(name: str) -> tuple[str, str]:
    """
    (resource, product) of a resource profile; profiles live in KubeAI's own settings, their names follow a pattern.

    >>> _profile("nvidia-gpu-h100"), _profile("cpu")
    (('nvidia.com/gpu', 'NVIDIA-H100-80GB-HBM3'), ('', ''))
    """
    vendor, _, rest = name.partition("-")
    resource = _VENDORS.get(vendor, "")
    if not resource:
        return "", ""
    product = normalise(rest.removeprefix("gpu-")) if vendor == "nvidia" else ""
    return resource, product if product.startswith(("NVIDIA-", "Tesla-")) else product_of_instance(rest)


def place(meta: Meta, spec: PodSpec, found: Found) -> Place:  # noqa: ARG001
    return Place("engine", "engine")


def join(meta: Meta, spec: PodSpec | None) -> RootRef | None:  # noqa: ARG001
    if meta.labels.get(_MANAGED) == "kubeai" and meta.labels.get("model"):
        return RootRef(ROOT, meta.namespace, meta.labels["model"])
    return None


def model(meta: Meta, spec: PodSpec) -> Model:
    """What requests call it is the Model's name; the rest is read from the arguments."""
    return over(model_of_pod(meta, spec), name=meta.labels.get("model", ""))


SPEC = FrameworkSpec(
    framework=Framework.KUBEAI,
    docs="KubeAI: a Model object owns its pods; a resource profile says what a replica needs.",
    roots=(ROOT,),
    labels=(_MANAGED, "model"),
    scale="`spec.maxReplicas` (at least 1) with `spec.minReplicas`; `spec.replicas` only with `autoscalingDisabled`.",
    read=read,
    place=place,
    model=model,
    join=join,
)
