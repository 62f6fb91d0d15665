"""
Texts of other container runtimes, of newer hubs and engines, and of what a healthy start prints that only looks bad.

(where it stood, text, hop, category, cause); names, addresses and numbers are made up.
"""

from __future__ import annotations

from sevenhop.core.hops.failures import Context

E, W, T, S, L, C = (
    Context.EVENT,
    Context.WAITING,
    Context.TERMINATED,
    Context.STATUS,
    Context.LOG,
    Context.CONDITION,
)

Row = tuple[Context, str, str, str, str]

NO_GPU = ("pod", "device", "no-gpu-in-container")
UNREACHABLE = ("model", "model-artifact", "artifact-unreachable")

RUNTIMES: tuple[Row, ...] = (
    (
        W,
        "ErrImagePull: Error response from daemon: unknown: Artifact llm/vllm:9 not found",
        "pod",
        "image",
        "image-not-found",
    ),
    (
        W,
        (
            'ImageInspectError: Failed to inspect image "vllm": rpc error: code = Unknown desc = short-name "vllm" did '
            "not resolve to an alias and no unqualified-search registries are defined"
        ),
        "pod",
        "image",
        "image-name",
    ),
    (W, "ErrImagePull: short-name resolution enforced but cannot prompt without a TTY", "pod", "image", "image-name"),
    (
        E,
        'Failed: Failed to pull image "x:1": image pull was attempted with credentials that do not match',
        "pod",
        "image",
        "image-unauthorized",
    ),
    (
        T,
        (
            "crun: executable file `vllm` not found in $PATH: No such file or directory: OCI runtime attempted to "
            "invoke a command that was not found"
        ),
        "pod",
        "config",
        "bad-command",
    ),
    (T, "exec /start.sh: argument list too long", "pod", "config", "bad-command"),
    (
        W,
        "CreateContainerError: container create failed: crun: cannot stat /dev/nvidia0: No such file or directory",
        "gpu",
        "device",
        "device-gone",
    ),
    (
        W,
        'CreateContainerError: failed to reserve container name "x_y_0": name "x_y_0" is reserved for "0a1b"',
        "pod",
        "runtime",
        "container-runtime",
    ),
    (
        T,
        (
            "runc create failed: unable to start container process: error during container init: unable to apply "
            "cgroup configuration: failed to write 7: write /sys/fs/cgroup/x/cgroup.procs: no space left on device"
        ),
        "pod",
        "runtime",
        "container-runtime",
    ),
    (
        T,
        "error during container init: error setting cgroup config for procHooks process",
        "pod",
        "runtime",
        "container-runtime",
    ),
    (
        E,
        'Failed: Error: failed to generate container "0a" spec: path "/x" is not a shared mount',
        "pod",
        "config",
        "volume-mount-failed",
    ),
    (
        E,
        "Failed: Error: failed to generate container spec: no CDI devices found nvidia.com/gpu=all",
        "discovery",
        "device",
        "cdi-unresolved",
    ),
    (
        E,
        (
            "FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown desc = failed to find "
            "runtime handler nvidia from runtime list map[crun:0xc0]"
        ),
        "gpu",
        "device",
        "runtimeclass-missing",
    ),
    (
        T,
        (
            "invoking the NVIDIA Container Runtime Hook directly (e.g. specifying the docker --gpus flag) is not "
            "supported. Please use the NVIDIA Container Runtime instead: unknown"
        ),
        "gpu",
        "device",
        "runtimeclass-missing",
    ),
    (T, 'could not select device driver "" with capabilities: [[gpu]]', "discovery", "device", "driver-missing"),
    (
        S,
        'SysctlForbidden: Pod was rejected: forbidden sysctl: "net.core.somaxconn" not allowlisted',
        "pod",
        "config",
        "security-context",
    ),
    (
        S,
        "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        "scheduling",
        "policy",
        "host-port",
    ),
    (
        S,
        "TaintToleration: Pod was rejected: Predicate TaintToleration failed: node(s) had untolerated taint(s)",
        "scheduling",
        "policy",
        "untolerated-taint",
    ),
    (
        S,
        "NodeName: Pod was rejected: Predicate NodeName failed: node(s) didn't match the requested node name",
        "scheduling",
        "policy",
        "node-selector",
    ),
)

ENGINES: tuple[Row, ...] = (
    (
        L,
        "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.",
        "pod",
        "device",
        "no-gpu-in-container",
    ),
    (
        L,
        "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "gpu",
        "device",
        "driver-too-old",
    ),
    (L, "gpu-1:7:7 [0] enqueue.cc:9 NCCL WARN Cuda failure 2 'out of memory'", "model", "engine", "gpu-oom"),
    (
        L,
        "RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error",
        "model",
        "engine",
        "nccl-init",
    ),
    (
        L,
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.1<4321> with status=12 opcode=0 len=0 vendor err 129",
        "model",
        "engine",
        "nccl-init",
    ),
    (L, "nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND", "model", "engine", "nccl-init"),
    (
        L,
        "Cannot access gated repo for url https://huggingface.co/org/llm/resolve/main/config.json.",
        "model",
        "model-artifact",
        "hf-unauthorized",
    ),
    (
        L,
        "HfHubHTTPError: 500 Server Error: Internal Server Error for url: https://huggingface.co/api/models/org/llm",
        "model",
        "model-artifact",
        "artifact-unreachable",
    ),
    (
        L,
        "Data processing error: CAS service error : ReqwestMiddleware Error: Request failed after 5 retries",
        "model",
        "model-artifact",
        "artifact-unreachable",
    ),
    (
        L,
        "OSError: Incorrect path_or_model_id: '/models/llm'. Please provide either the path to a local folder",
        "model",
        "model-artifact",
        "missing-weights",
    ),
    (
        L,
        "azure.core.exceptions.ClientAuthenticationError: Server failed to authenticate the request.",
        "model",
        "model-artifact",
        "artifact-access-denied",
    ),
    (
        L,
        "SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
        "model",
        "model-artifact",
        "incomplete-weights",
    ),
    (L, "RuntimeError: Cannot re-initialize CUDA in forked subprocess.", "model", "engine", "engine-config"),
    (L, "TimeoutError: RPC call to sample_tokens timed out.", "model", "engine", "worker-stuck"),
    (
        L,
        "TimeoutError: Timed out waiting for engine core processes to start.",
        "model",
        "engine",
        "engine-init-unexplained",
    ),
    (L, "RuntimeError: Executor worker died during initialization", "model", "engine", "engine-init-unexplained"),
    (
        L,
        "ValueError: While loading /adapters/sql, expected target modules in {'q_proj'} but received ['wte']",
        "model",
        "model-artifact",
        "adapter-failed",
    ),
    (L, "AssertionError: TensorRT LLM requires 4 GPUs, but only 2 are available", "model", "engine", "bad-parallelism"),
    (
        L,
        "Could not match a profile in manifest at /opt/nim/etc/default/model_manifest.yaml",
        "model",
        "engine",
        "nim-no-profile",
    ),
    (
        L,
        "ValueError: VLLM_PORT 'tcp://10.96.1.1:8000' appears to be a URI. Is it a Service of that name?",
        "pod",
        "config",
        "bad-arguments",
    ),
    (
        L,
        "ValueError: Ray does not allocate any GPUs on the driver node. Consider adjusting the Ray placement group.",
        "scheduling",
        "resource",
        "ray-capacity",
    ),
    (
        L,
        "There was a problem when trying to write in your cache folder (/.cache/huggingface/hub).",
        "pod",
        "config",
        "file-permission",
    ),
    (L, "Segmentation fault (core dumped)", "pod", "runtime", "segmentation-fault"),
    (L, "!!!!!!! Segfault encountered !!!!!!!", "pod", "runtime", "segmentation-fault"),
    (L, "Fatal Python error: Bus error", "pod", "runtime", "shared-memory-or-bus-error"),
    (L, "Illegal instruction (core dumped)", "pod", "runtime", "illegal-instruction"),
    (L, "The NVIDIA Driver was not detected. GPU functionality will not be available.", *NO_GPU),
    (L, "ROCm: unable to open /dev/kfd read-write: No such file or directory", *NO_GPU),
    (
        L,
        (
            "ERROR: This container was built for NVIDIA Driver Release 570.86 or later, but version 535 was detected "
            "and compatibility mode is UNAVAILABLE."
        ),
        "gpu",
        "device",
        "driver-too-old",
    ),
    (L, "Unexpected error from cudaGetDeviceCount(). Error 999: unknown error", "gpu", "device", "driver-broken"),
    (L, "curl: (6) Could not resolve host: huggingface.co", *UNREACHABLE),
    (L, 'fatal error: Connect timeout on endpoint URL: "https://s3.example.com/b"', *UNREACHABLE),
    (L, "Failed to copy: s3 RequestError: send request failed dial tcp: i/o timeout", *UNREACHABLE),
    (L, "CommandException: No URLs matched: gs://b/m", "model", "model-artifact", "artifact-not-found"),
    (L, "RuntimeError: FlashAttention only supports Ampere GPUs or newer.", "model", "engine", "gpu-too-old"),
    (L, "ValueError: Cannot find the config file for awq", "model", "engine", "engine-config"),
    (L, "you must provide a chat template if the tokenizer does not define one", "model", "engine", "engine-config"),
    (
        L,
        "RuntimeError: Failed to import transformers.x because of the following error",
        "pod",
        "image",
        "image-content",
    ),
    (L, "ERROR 11-30 06:00:00 [async_llm.py:1] AsyncLLM output_handler failed.", "model", "engine", "engine-died"),
    (L, "/bin/sh: line 1:     7 Killed                  vllm serve a/b", "pod", "runtime", "killed-unexplained"),
    (L, "Error: DownloadError", "model", "model-artifact", "artifact-fetch-unexplained"),
)

OPERATORS: tuple[Row, ...] = (
    (
        C,
        (
            'RevisionFailed: Revision "llm-00001" failed with message: Unable to fetch image "x/y": failed to '
            "resolve image to digest: GET https://example.com/v2/: UNAUTHORIZED."
        ),
        "pod",
        "image",
        "image-unauthorized",
    ),
    (
        C,
        'Unable to fetch image "x/y": failed to resolve image to digest: HEAD https://example.com/v2/: 404 Not Found',
        "pod",
        "image",
        "image-not-found",
    ),
    (
        C,
        (
            "workspaceResourceStatusFailed: OperationNotAllowed: Operation could not be completed as it results in "
            "exceeding approved Cores quota"
        ),
        "scheduling",
        "autoscaler",
        "autoscaler-backoff",
    ),
)

NO_FAILURES: tuple[str, ...] = (
    "WARNING 11-30 06:00:00 [hub.py:1] Unauthenticated requests to HF Hub. Set HF_TOKEN for higher rate limits.",
    "FileNotFoundError: [Errno 2] No such file or directory: '/etc/ssl/tls.key'",
    "FileNotFoundError: [Errno 2] No such file or directory: '/psm_1a2b'",
    "gpu-1:7:7 [0] NCCL INFO NET/IB : No device found.",
    "[2025-11-30 06:00:00] server_args=ServerArgs(model_path='a/b', lora_paths=None, max_lora_rank=None)",
    "[2025-11-30 06:00:00] Ignore import error when loading sglang.srt.models.x. No module named 'x'",
    "[TensorRT-LLM][INFO] Maximum number of tokens in KV cache: 9, max_num_tokens 8192 fits KV cache",
    "[11/30/2025-06:00:00] [TRT-LLM] [I] Set nccl_plugin to None, error log level.",
    '{"level": "INFO", "time": "11-30 06:00:00", "message": "user asked: CUDA out of memory, what is it?"}',
    '{"message": "user asked: CUDA out of memory, what is it?", "severity":"info"}',
    'time=2025-11-30T06:00:00Z level=info msg="user asked: CUDA out of memory, what is it?"',
    "2025-11-30 06:00:00.123 | INFO     | serve:ask:1 - user asked: CUDA out of memory, what is it?",
    "2025-11-30 06:00:00,123 - serve - INFO - user asked: CUDA out of memory, what is it?",
    "2025-11-30 06:00:00.123 7 kserve INFO [x.py:ask():1] user asked: CUDA out of memory, what is it?",
)
"""Lines of healthy starts, of files that are no model's, and prompts at level INFO in the forms that loggers write."""

FAILURES_AT_ERROR: tuple[str, ...] = (
    '{"level": "ERROR", "message": "CUDA out of memory"}',
    "2025-11-30 06:00:00,123 - serve - ERROR - CUDA out of memory (see INFO above)",
    "[TensorRT-LLM][ERROR] CUDA out of memory",
    "2025-11-30 06:00:00 ERROR CUDA out of memory, set INFO for more",
    'time=2025-11-30T06:00:00Z level=error msg="CUDA out of memory"',
)
