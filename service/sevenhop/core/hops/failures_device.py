"""Texts that name a fault of the GPU, its driver, or the way devices are handed out (hops gpu and discovery)."""

from __future__ import annotations

_NVML_MISSING = r"(?:could not|failed to|unable to|cannot) (?:load|open|find)[^.]{0,30}nvml"
_ALLOCATE = r"allocate failed due to|unexpectedadmissionerror"

WORDS: tuple[tuple[str, str], ...] = (
    # hop gpu.  Sources: NVML and CUDA error strings, nvidia-container-cli, kernel log of the NVIDIA driver.
    ("gpu-lost", r"gpu is lost|fallen off the bus|gpu_is_lost|unable to determine the device handle for gpu"),
    ("gpu-lost", r"\bxid\b[^\n]{0,60}?[:(\s]79\b"),
    ("gpu-ecc", r"uncorrectable ecc|double[- ]bit ecc|eccuncorrectable|ecc_uncorrectable|contained ecc error"),
    ("gpu-ecc", r"\bxid\b[^\n]{0,60}?\)?:\s*(?:48|63|64|94|95)\b"),
    ("gpu-xid-consequence", r"\bxid\b[^\n]{0,60}?\)?:\s*(?:43|45)\b"),
    ("gpu-xid", r"\bnvrm: xid\b|\bxid \(pci"),
    ("driver-library-mismatch", r"driver/library version mismatch|lib_rm_version_mismatch"),
    ("fabric-not-ready", r"error 802\b|system not yet initialized|systemnotready|fabric ?manager.{0,40}(?:not|fail)"),
    ("cgroup-device-loss", r"failed to initialize nvml: (?:unknown error|insufficient permissions)"),
    (
        "driver-too-old",
        r"error 804\b|forward compatibility was attempted|driver version is insufficient|insufficientdriver"
        r"|nvidia driver on your system is too old|unsatisfied condition: (?:cuda|driver|brand)"
        r"|requirement error: .{0,60}cuda|no nvidia driver on your system|driver .{0,30}too old",
    ),
    ("gpu-busy-or-exclusive", r"all cuda-capable devices are busy|devicesunavailable|devices? unavailable: exclusive"),
    ("nccl-cuda", r"nccl error[^\n]{0,40}unhandled cuda error|unhandled cuda error[^\n]{0,80}nccl|ncclunhandledcudaerror"),
    (
        "runtimeclass-missing",
        r"no runtime for \S+ is configured|unable to get oci runtime|unknown runtime(?: specified| handler)"
        r"|runtime handler \S+ not (?:supported|found)|failed to get sandbox runtime",
    ),
    ("cdi-unresolved", r"unresolvable cdi devices?|failed to inject cdi|cdi device injection failed"),
    (
        "driver-broken",
        r"nvidia-container-cli[^\n]{0,80}(?:driver error|initialization error: (?:nvml error|cuda error|driver))"
        r"|couldn'?t communicate with the nvidia driver|nvml: unknown error|rm_init_adapter failed|rminitadapter failed"
        r"|driver error: failed to process request|nvml: driver not loaded|driver_not_loaded",
    ),
    # hop discovery.  Sources: kubelet's device manager and DRA manager, device plugins.
    (
        "driver-missing",
        rf"{_NVML_MISSING}|nvidia-container-cli[^\n]{{0,80}}load library failed"
        r"|did you set the docker default runtime to|detected non-nvml platform"
        r"|no devices found\. waiting indefinitely|incompatible (?:platform|strategy) detected"
        r"|libnvidia-ml\.so[^\n]{0,40}cannot open shared object",
    ),
    ("device-unhealthy", r"no healthy devices|cannot allocate unhealthy devices|device(?:s)? (?:is|are|marked) unhealthy"),
    ("device-plugin-race", r"v?gpu-?(?:cores|mem\w*|number)\S* requested|no binding pod found|allocate failed.{0,80}not match"),
    (
        "device-plugin-crash",
        rf"(?:{_ALLOCATE})[^\n]{{0,200}}(?:code = unavailable|\beof\b|connection refused|connection reset|transport is clos"
        r"|error reading from server|no such file or directory|broken pipe|deadlineexceeded|deadline exceeded)",
    ),
    (
        "device-plugin-restart",
        r"endpoint not found in cache for a registe|can'?t allocate unregistered device|unregistered device \S+/\S+",
    ),
    (
        "device-topology",
        r"topologyaffinityerror|cannot be allocated with topology locality|topology locality|smtalignmenterror",
    ),
    (
        "device-out-of-resource",
        r"outof\S+\.\S+/\S+|(?:node )?didn'?t have enough (?:resource|capacity): \S+/\S+"
        r"|not enough resource: \S+/\S+, requested",
    ),
    (
        "device-plugin-allocate",
        rf"{_ALLOCATE}|requested number of devices unavailable|number of devices unavailable for"
        r"|getpreferredallocation rpc failed|failed to allocate device",
    ),
    (
        "dra-driver-missing",
        r"not found in the list of registered dra|dra (?:driver|plugin)[^\n]{0,80}not (?:registered|found)"
        r"|(?:driver|plugin)[^\n]{0,60}is not registered|dra driver name \S+ not found",
    ),
    (
        "dra-prepare-timeout",
        r"(?:prepare dynamic resources|nodeprepareresources?|preparing? (?:resource )?claims?)[^\n]{0,300}"
        r"(?:deadline ?exceeded|timed? ?out)",
    ),
    ("dra-prepare-failed", r"(?:failed to )?prepare dynamic resources|nodeprepareresources?\b|failedpreparedynamicresources"),
)
"""(cause, words)"""
