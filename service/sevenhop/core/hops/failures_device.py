"""Texts that name a fault of the GPU, its driver, or the way devices are handed out (hops gpu and discovery)."""

from __future__ import annotations

from sevenhop.core.hops.failures_words import Words

WORDS: tuple[Words, ...] = (
    # hop gpu.  Sources: NVML and CUDA error strings, nvidia-container-cli, kernel log of the NVIDIA driver.
    Words(
        "gpu-lost",
        (
            "gpu is lost",
            "fallen off the bus",
            "gpu_is_lost",
            "unable to determine the device handle for gpu",
            r"\w*error_device_lost\b",
        ),
    ),
    Words(
        "gpu-lost",
        (r"\bxid(?: \(pci[^)]*\))?[:=]? ?79\b",),
    ),
    Words(
        "gpu-ecc",
        (
            "uncorrectable ecc",
            "double[- ]bit ecc",
            "eccuncorrectable",
            "ecc_uncorrectable",
            "contained ecc error",
        ),
    ),
    Words(
        "gpu-ecc",
        (r"\bxid(?: \(pci[^)]*\))?[:=]? ?(?:48|63|64|94|95)\b",),
    ),
    Words(
        "gpu-xid-consequence",
        (r"\bxid(?: \(pci[^)]*\))?[:=]? ?(?:43|45)\b",),
    ),
    Words(
        "gpu-xid",
        (
            r"\bnvrm: xid\b",
            r"\bxid \(pci",
            r"\bxidcriticalerror\b",
            "uncorrectable nvlink error",
        ),
    ),
    Words(
        "driver-library-mismatch",
        (
            "driver/library version mismatch",
            "lib_?rm_?version_?mismatch",
            "nvml/rm version mismatch",
        ),
    ),
    Words(
        "fabric-not-ready",
        (
            r"error 802\b",
            "system not yet initialized",
            "system_?not_?ready",
            "fabric ?manager.{0,40}(?:not|fail)",
        ),
    ),
    Words(
        "cgroup-device-loss",
        ("failed to initialize nvml: (?:unknown error|insufficient permissions)",),
    ),
    Words(
        "driver-too-old",
        (
            r"error 804\b",
            "forward compatibility was attempted",
            "driver version is insufficient",
            "insufficientdriver",
            "nvidia driver on your system is too old",
            "unsatisfied condition: (?:cuda|driver|brand)",
            "requirement error: .{0,60}cuda",
            # The image's code was compiled for a newer CUDA than the driver knows.
            "compiled with an unsupported toolchain",
            "unsupported ?ptx ?version",
            "built for nvidia driver release .{0,80}compatibility mode is unavailable",
            "driver .{0,30}too old",
        ),
    ),
    Words(
        "gpu-busy-or-exclusive",
        (
            "all cuda-capable devices are busy",
            r"cuda-capable device\(s\) (?:is/are|are|is) busy",
            "devicesunavailable",
            "devices? unavailable: exclusive",
            "tpu is already in use",
            "libtpu.{0,40}already in use",
            "(?:tpu|/dev/(?:vfio|accel)).{0,160}device or resource busy",
            "device acquire failed",
            r"neuron ?core\(s\) not available",
        ),
    ),
    Words(
        "nccl-cuda",
        (
            r"nccl error.{0,40}unhandled cuda error",
            r"unhandled cuda error.{0,80}nccl",
            "ncclunhandledcudaerror",
        ),
    ),
    Words(
        "runtimeclass-missing",
        (
            r"no runtime for \S+ is configured",
            "unknown or invalid runtime name",
            "unable to get oci runtime",
            "unknown runtime(?: specified| handler)",
            r"runtime ?handler \S+ (?:is )?not (?:supported|found|configured)",
            "failed to get sandbox runtime",
            "failed to find runtime handler",
            r"nvidia-container-(?:runtime|cli|toolkit)[\w.-]*\W{1,3}(?:executable file not found|no such file|stat )",
            "invoking the nvidia container runtime hook directly",
        ),
    ),
    Words(
        "cdi-unresolved",
        (
            "unresolvable cdi devices?",
            "failed to inject cdi",
            "cdi device injection failed",
            r"no cdi devices? found|unable to find cdi device",
        ),
    ),
    Words(
        "device-gone",
        (
            "nvidia-container-cli.{0,40}device error(?!: no-gpu-has)",
            r"(?<!-to-run: )unknown device\b",
            r"no such device\b",
            "/dev/nvidia.{0,40}(?:not found|does not exist|no such)",
        ),
    ),
    Words(
        "driver-broken",
        (
            "nvmlerror_(?:drivernotloaded|unknown)",
            "nvml: driver not loaded",
            r"driver not loaded\b",
            r"nvidia-container-cli.{0,80}(?:driver error|initialization error: (?:nvml error|cuda error|driver))",
            "couldn'?t communicate with the nvidia driver",
            r"\bnrt_init failed",
            "neuron runtime could not be initialized",
            "rm_init_adapter failed",
            "rminitadapter failed",
            "driver error: failed to process request",
            "nvidia-container-cli: (?:mount|ldcache|container|permission|detection) error",
            "nvml: driver not loaded",
            "driver_not_loaded",
            r"cudagetdevicecount\(\).{0,200}error (?:3|999)\b",
            r"\baclrtsetdevice\b.{0,80}error code",
        ),
    ),
    # hop discovery.  Sources: kubelet's device manager and DRA manager, device plugins.
    Words(
        "driver-missing",
        (
            "(?:could not|failed to|unable to|cannot) (?:load|open|find)[^.]{0,30}nvml",
            r"nvidia-container-cli.{0,80}load library failed",
            "did you set the docker default runtime to",
            "did you configure the nvidia container toolkit",
            "(?:could not|cannot|unable to|failed to) find libnvidia-ml",
            "failed to (?:create|init\\w*) nvml.{0,60}library_?not_?found",
            r"could not select device driver \S* with capabilities",
            "detected non-nvml platform",
            r"no devices found\. waiting indefinitely",
            "incompatible (?:platform|strategy) detected",
            r"libnvidia-ml\.so.{0,40}cannot open shared object",
        ),
    ),
    Words(
        "device-plugin-failed",
        (
            "failed to start plugin",
            "mps (?:control )?daemon.{0,60}(?:fail|error|not |unhealthy|timed out)",
            "error (?:starting|waiting for) mps",
            "mps_?(?:connection_?failed|server_?not_?ready)",
            "device[- ]plugin.{0,40}(?:exited|failed to start|crashed)",
        ),
    ),
    Words(
        "device-unhealthy",
        (
            "no healthy devices",
            r"deviceunhealthy\b",
            "cannot allocate unhealthy devices",
            "device(?:s)? (?:is|are|marked) unhealthy",
        ),
    ),
    Words(
        "device-plugin-race",
        (
            r"v?gpu-?(?:cores|mem\w*|number)\S* requested",
            "no binding pod found",
            "allocate failed.{0,120}not match",
            r"no-gpu-has-\S+-to-run",
        ),
    ),
    Words(
        "device-plugin-crash",
        (
            (
                r"(?:allocate failed due to|unexpectedadmissionerror).{0,200}(?:code = unavailable|\beof\b|"
                r"connection refused|connection reset|transport is clos|error reading from server|"
                r"no such file or directory|broken pipe|deadlineexceeded|deadline exceeded|code = canceled)"
            ),
        ),
    ),
    Words(
        "device-plugin-restart",
        (
            "endpoint not found in cache for a registe",
            "can'?t allocate unregistered device",
            r"unregistered device \S+/\S+",
        ),
    ),
    Words(
        "device-topology",
        (
            "topologyaffinityerror",
            "cannot be allocated with topology locality",
            "topology locality",
            "smtalignmenterror",
            "not enough cpus available to satisfy request",
            r"\[memorymanager\]",
        ),
    ),
    Words(
        "device-out-of-resource",
        (
            r"outof\S+\.\S+/\S+",
            r"(?:node )?didn'?t have enough (?:resource|capacity): \S+/\S+",
            r"not enough resource: \S+/\S+, requested",
        ),
    ),
    Words(
        "device-plugin-allocate",
        (
            "allocate failed due to",
            "unexpectedadmissionerror",
            "requested number of devices unavailable",
            "number of devices unavailable for",
            "getpreferredallocation rpc failed",
            "failed to allocate device",
        ),
    ),
    Words(
        "dra-driver-missing",
        (
            "not found in the list of registered dra",
            r"dra (?:driver|plugin).{0,80}not (?:registered|found)",
            r"(?:driver|plugin).{0,60}is not registered",
            r"dra driver name \S+ not found",
        ),
    ),
    Words(
        "dra-prepare-timeout",
        (
            (
                r"(?:prepare dynamic resources|nodeprepareresources?|"
                r"preparing? (?:resource )?claims?).{0,300}(?:deadline ?exceeded|timed? ?out)"
            ),
        ),
    ),
    Words(
        "dra-prepare-failed",
        (
            "(?:failed to )?prepare dynamic resources",
            r"nodeprepareresources?\b",
            "failedpreparedynamicresources",
        ),
    ),
)
