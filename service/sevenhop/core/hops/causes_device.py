"""Causes on the hops gpu and discovery that a pod's own texts tell."""

from __future__ import annotations

from sevenhop.core.hops.cause import Cause, Strength, table
from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.subject import Hop

_G = Hop.GPU
_D = Hop.DISCOVERY

DEVICE_CAUSES: dict[str, Cause] = table(
    # hop gpu
    Cause(
        "gpu-lost",
        _G,
        Category.DEVICE,
        "A GPU fell off the bus.",
        (
            "Cordon the node and power-cycle it.",
            "Look for XID 79 in the node's kernel log; the healthy GPUs of the node are unusable too.",
        ),
    ),
    Cause(
        "gpu-ecc",
        _G,
        Category.DEVICE,
        "The GPU has an uncorrectable memory error.",
        (
            "Look for XID 48, 63, 64, 94 or 95 on the node, and reset or replace the GPU.",
            "Move the pod to another node.",
        ),
    ),
    Cause(
        "driver-library-mismatch",
        _G,
        Category.DEVICE,
        "The driver's libraries and its kernel module differ in version.",
        (
            "Reboot the node, or reload the modules.",
            "Block unattended upgrades of the driver.",
        ),
    ),
    Cause(
        "device-gone",
        _G,
        Category.DEVICE,
        "The GPU that the device plugin gave to the pod is not on the node any more.",
        (
            "Run `nvidia-smi -L` on the node and compare; look for an XID 79.",
            "Restart the device plugin, so that it lists the devices anew.",
        ),
    ),
    Cause(
        "driver-broken",
        _G,
        Category.DEVICE,
        "The driver does not answer on this node.",
        ("Run `nvidia-smi` on the node; reload the driver, or reboot.",),
    ),
    Cause(
        "fabric-not-ready",
        _G,
        Category.DEVICE,
        "CUDA waits for the NVLink fabric.",
        ("Check that the fabric manager runs on the node, in the driver's version.",),
    ),
    Cause(
        "runtimeclass-missing",
        _G,
        Category.DEVICE,
        "The node's container runtime has no handler for the runtime class.",
        (
            "Check the container toolkit's pod on the node; on a new node it heals in minutes.",
            "Until then the node advertises no GPU.",
        ),
    ),
    Cause(
        "cgroup-device-loss",
        _G,
        Category.DEVICE,
        "The running container lost access to its GPU.",
        (
            "Restart the pod.",
            "Use CDI, or the same cgroup driver everywhere, so that a daemon-reload does not take devices away.",
        ),
    ),
    Cause(
        "driver-too-old",
        _G,
        Category.DEVICE,
        "The node's driver is too old for the CUDA of the image.",
        ("Upgrade the node's driver, or use an image with an older CUDA.",),
    ),
    Cause(
        "gpu-busy-or-exclusive",
        _G,
        Category.DEVICE,
        "All devices are busy, or unavailable to this program.",
        ("See which process holds the GPU, and its compute mode.",),
    ),
    Cause(
        "nccl-cuda",
        _G,
        Category.ENGINE,
        "A CUDA call failed inside NCCL; one bad GPU or node is the usual reason.",
        (
            "Compare the node of the failing replica with those that work, and move it.",
            "Look for an XID on that node.",
        ),
    ),
    Cause(
        "gpu-xid",
        _G,
        Category.DEVICE,
        "The driver reported an XID.",
        ("Look the number up, and follow its recommended action.",),
    ),
    Cause(
        "gpu-xid-consequence",
        _G,
        Category.DEVICE,
        "The driver ended a process; this XID never stands alone.",
        ("Look for the XID that came before it.",),
        Strength.SYMPTOM,
    ),
    # hop discovery
    Cause(
        "device-plugin-failed",
        _D,
        Category.DEVICE,
        "The device plugin cannot start on the node, so its devices are not advertised.",
        ("Read the plugin's log on the node; check its sharing configuration and the driver.",),
    ),
    Cause(
        "device-unhealthy",
        _D,
        Category.DEVICE,
        "The device plugin has marked the device unhealthy.",
        ("Look for an XID on the node; the plugin does not take the device back without a restart.",),
    ),
    Cause(
        "device-plugin-crash",
        _D,
        Category.DEVICE,
        "The device plugin died or does not answer while it allocates.",
        (
            "Read the plugin's previous log, and restart its pod.",
            "Delete the failed pod: it never retries.",
        ),
    ),
    Cause(
        "device-plugin-race",
        _D,
        Category.DEVICE,
        "The scheduler's and the kubelet's accounting of devices differ.",
        (
            "Compare the versions of the scheduler extension and the device plugin.",
            "Delete the failed pod: it never retries.",
        ),
    ),
    Cause(
        "device-plugin-restart",
        _D,
        Category.DEVICE,
        "The kubelet does not know the device plugin any more.",
        ("Restart the device plugin's pod; the pod is retried.",),
    ),
    Cause(
        "device-out-of-resource",
        _D,
        Category.DEVICE,
        "The kubelet counts fewer free devices than the scheduler did.",
        (
            "See which pods hold the devices on the node, static and terminating ones too.",
            "Delete the failed pod: it never retries.",
        ),
    ),
    Cause(
        "device-topology",
        _D,
        Category.DEVICE,
        "The kubelet cannot give devices, CPUs and memory as its NUMA policies ask.",
        ("Ask for fewer CPUs per device, or relax the topology manager's policy.",),
    ),
    Cause(
        "device-plugin-allocate",
        _D,
        Category.DEVICE,
        "The kubelet has no healthy free device, although the scheduler saw one.",
        (
            "Check the device plugin's pod and the node's allocatable devices.",
            "Look for an XID in the same minutes.",
            "Delete the failed pod: it never retries.",
        ),
    ),
    Cause(
        "dra-driver-missing",
        _D,
        Category.DEVICE,
        "The DRA driver is not registered with the node's kubelet.",
        ("Restart the driver's kubelet plugin on the node.",),
    ),
    Cause(
        "dra-prepare-timeout",
        _D,
        Category.DEVICE,
        "The DRA driver did not prepare the devices in time.",
        (
            "Read the driver's kubelet plugin log on the node.",
            "With NVLink domains, check the ComputeDomain and its nodes.",
        ),
    ),
    Cause(
        "dra-prepare-failed",
        _D,
        Category.DEVICE,
        "The DRA driver could not prepare the devices.",
        ("Read the driver's kubelet plugin log on the node.",),
    ),
    Cause(
        "cdi-unresolved",
        _D,
        Category.DEVICE,
        "The container runtime does not know the device that the plugin named.",
        ("Regenerate the node's CDI specification, and restart the device plugin.",),
    ),
    Cause(
        "driver-missing",
        _D,
        Category.DEVICE,
        "The driver's library is not to be found on the node: it advertises no GPU.",
        ("Install the driver, or configure the container runtime for GPUs.",),
    ),
)
