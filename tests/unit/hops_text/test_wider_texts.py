"""Texts of nodes whose disk is full, of lost volumes, of other accelerators, cut sentences and coloured lines."""

from __future__ import annotations

import pytest

from sevenhop.core.hops.failures import Context, classify_text

E, W, S, L = Context.EVENT, Context.WAITING, Context.STATUS, Context.LOG
FULL = "no space left on device"

OF_NODES = (
    (S, f"UnexpectedAdmissionError: Update plugin resources failed due to: checkpoint file: {FULL}", "node-disk-full"),
    (E, f"FailedCreatePodSandBox: Failed to create pod sandbox: mkdir /var/log/pods/chat_a: {FULL}", "node-disk-full"),
    (W, f"RunContainerError: failed to create shim task: write /run/containerd/x.json: {FULL}", "node-disk-full"),
    (W, f'CreateContainerError: error unpacking image "a:1": failed to extract layer: {FULL}', "image-disk-full"),
    (W, f"RunContainerError: failed to create task for container: mkdir /sys/fs/cgroup/a: {FULL}", "container-runtime"),
    (E, 'FailedMount: unmounted volumes=[models]: persistentvolumeclaims "models" not found', "volume-claim-missing"),
    (E, "FailedMount: unmounted volumes=[model], model directory not found", "volume-mount-waiting"),
    (
        W,
        'RunContainerError: OCI runtime create failed: exec: "nvidia-container-runtime": executable file not found',
        "runtimeclass-missing",
    ),
    (
        W,
        "RunContainerError: Error response from daemon: unknown or invalid runtime name: nvidia",
        "runtimeclass-missing",
    ),
    (
        E,
        "Failed: Error: nvidia-container-cli: device error: no-gpu-has-128MiB-to-run: unknown device: unknown",
        "device-plugin-race",
    ),
    (W, "RunContainerError: nvidia-container-cli: device error: GPU-1: unknown device: unknown", "device-gone"),
    (
        S,
        "UnexpectedAdmissionError: Allocate failed due to rpc error: code = Canceled desc = closing",
        "device-plugin-crash",
    ),
    (
        S,
        "UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request",
        "device-topology",
    ),
    (W, "ErrImagePull: failed to pull image: mismatched image rootfs and manifest layers", "image-corrupt"),
)

OF_PROGRAMS = (
    ("pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.", "driver-library-mismatch"),
    ("Unexpected error from cudaGetDeviceCount(). Error 3: initialization error", "driver-broken"),
    ("Error: failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND", "driver-missing"),
    ("If this is a GPU node, did you configure the NVIDIA Container Toolkit?", "driver-missing"),
    ("XidCriticalError: Xid=48 on Device=GPU-1, the device will go unhealthy.", "gpu-ecc"),
    ("XidCriticalError: Xid=31 on Device=GPU-1, the device will go unhealthy.", "gpu-xid"),
    ("TPU initialization failed: open(/dev/vfio/0): Device or resource busy", "gpu-busy-or-exclusive"),
    ("No devices were found", "no-gpu-in-container"),
    ("jax: RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes.", "gpu-oom"),
    ("Ran out of memory in memory space hbm. Used 17.2G of 15.75G hbm.", "gpu-oom"),
    ("(0) Resource exhausted: OOM when allocating tensor with shape[128,3] on device:GPU:0", "gpu-oom"),
    ("llama_model_load: unable to allocate CUDA0 buffer", "gpu-oom"),
    ("memory try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.", "gpu-oom"),
    ("has a total capacity of 79.25 GiB of which 14.75 MiB is free.", "gpu-oom"),
    ("Error: model requires more system memory (48.1 GiB) than is available (31.2 GiB)", "host-oom"),
    ("java.lang.OutOfMemoryError: Java heap space", "host-oom"),
    ("OSError: [Errno 24] Too many open files", "process-limit"),
    ("RuntimeError: can't start new thread", "process-limit"),
    ("pthread_create failed for thread 13 of 64: Resource temporarily unavailable", "process-limit"),
    ("OSError: [Errno 5] Input/output error: '/mnt/models/a.safetensors'", "volume-lost"),
    ("OSError: [Errno 107] Transport endpoint is not connected: '/mnt/models'", "volume-lost"),
    ("(raylet) Raylet could not connect to Redis.", "discovery-store-unreachable"),
    ("wget: unable to resolve host address 'models.example'", "name-resolution"),
    ("AttributeError: module 'torch' has no attribute 'float8_e8m0fnu'", "image-content"),
    ("RuntimeError: NIXL is not available", "image-content"),
    ("AssertionError: Sinks are only supported in FlashAttention 3", "gpu-too-old"),
    ("NotImplementedError: FlashMLA is not supported on this device", "gpu-too-old"),
    ("OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: 101376.", "gpu-too-old"),
    ("ValueError: No valid attention backend found for cuda", "engine-config"),
    ("KeyError: 'invalid tool call parser: foo (chose from { hermes })'", "engine-config"),
    ("ValueError: Head size 80 is not supported by FlashAttention.", "engine-config"),
    ("RuntimeError: start (0) + length (3072) exceeds dimension size (2048).", "weights-mismatch"),
    ("OSError: the config file at '/mnt/models/config.json' is not a valid JSON file.", "corrupt-weights"),
    ("ValueError: No supported config format found in /mnt/models.", "missing-weights"),
    ("fail to locate model file for model a under dir /mnt/models", "missing-weights"),
    ("Exception: data did not match any variant of untagged enum ModelWrapper at line 12", "tokenizer-missing"),
    ("[TensorRT-LLM] Assertion failed: Failed to deserialize cuda engine.", "engine-build-mismatch"),
    ("NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 40000", "bad-parallelism"),
    ("please set tensor_parallel_size (8) to less than max local gpu count (4)", "bad-parallelism"),
    ("fatal error: Python.h: No such file or directory", "compile-failed"),
    ("/usr/bin/ld: cannot find -lcuda: No such file or directory", "compile-failed"),
    ("curl: (22) The requested URL returned error: 403", "artifact-access-denied"),
    ("An error occurred (RequestTimeTooSkewed) when calling GetObject", "artifact-access-denied"),
    ("The request model: a/b does not exist!", "artifact-not-found"),
    ("(gcloud.storage.cp) The following URLs matched no objects or files:", "artifact-not-found"),
    ("Cannot connect to host cas-bridge.xethub.hf.co:443 ssl:default", "artifact-unreachable"),
    ("URI: https://a/model.tgz did not respond with any of following 'Content-Type': application/x-tar", "storage-uri"),
    ("Unable to initialize shared memory key 'a' to requested size (1048576 bytes).", "shm-too-small"),
    ("ERROR [multiproc_executor.py] Worker proc VllmWorker-1 died unexpectedly", "engine-init-unexplained"),
    ("ERROR text_generation_launcher: Shard 0 crashed", "engine-init-unexplained"),
    ("cuInit: CUDA_ERROR_SYSTEM_NOT_READY", "fabric-not-ready"),
    ("CUDA_ERROR_MPS_CONNECTION_FAILED: MPS client failed to connect", "device-plugin-failed"),
    ("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!", "gpu-too-old"),
    ("Memory access fault by GPU node-1 on address 0x0. Reason: Page not present", "cuda-error"),
    ("HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary resources.", "gpu-oom"),
    ("level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)", "gpu-lost"),
    ("Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "gpu-oom"),
    ("RaySystemError: System error: RPC Error message: failed to connect to all addresses", "ray-head-unreachable"),
    ("NCCL WARN Cuda failure 700 'an illegal memory access was encountered'", "cuda-error"),
    ("Make sure you have enough GPU RAM to fit the quantized model.", "gpu-oom-at-load"),
    ("OSError: Can't load the configuration of '/mnt/models'.", "missing-weights"),
    ('ReadTimeoutError: Read timeout on endpoint URL: "https://s3.amazonaws.com/a"', "artifact-unreachable"),
    ("DefaultAzureCredential failed to retrieve a token from the included credentials.", "artifact-access-denied"),
    ("ValueError: Marlin does not support weight_bits = uint4.", "engine-config"),
    ("Assertion failed: Can't allocate new blocks. No free blocks left.", "kv-cache-too-small"),
    ("ERROR: Failed to initialize NVSHMEM: ibgda", "nccl-init"),
    ("ERROR [core.py:383] EngineCore hit an exception: Traceback", "engine-init-unexplained"),
)

OF_REQUESTS = (
    "ERROR [serving_chat.py] The model `gpt-4` does not exist.",
    '{"object":"error","message":"The model `a` does not exist.","type":"NotFoundError","code":404}',
    "lmcache.storage_backend: failed to connect to lm://lmcache:65432: Connection refused",
    "ERROR router: request to model chat failed: Connection refused",
    "Failed to connect to model server http://10.0.0.7:8000: Connection refused",
    "upstream returned 403 Forbidden for model chat",
    "HTTP 401 Unauthorized: missing API key for model endpoint",
    "openai.RateLimitError: Error code: 429 - Rate limit reached for model gpt-4o",
    'INFO: 10.0.0.7:1 - "GET /v1/models/repo HTTP/1.1" 401 Unauthorized',
    "raylet: could not connect to the object store socket: connection refused",
    "OSError: [Errno 107] Transport endpoint is not connected",
    'HTTP Request: HEAD https://huggingface.co/a/b/resolve/main/adapter_config.json "HTTP/1.1 404 Not Found"',
)

ASKED = "INFO user asked: CUDA out of memory, what is it?"
OUT = "ERROR CUDA out of memory"
PUT_BEFORE = (
    "\x1b[1;36m(Worker_TP0 pid=7)\x1b[0;0m ",
    "[pod/chat-0/vllm] ",
    "2025-11-30T06:00:00.1Z stderr F ",
    '{"log":"',
)


@pytest.mark.parametrize(
    ("context", "text", "cause"), OF_NODES, ids=[f"{i}-{row[2]}" for i, row in enumerate(OF_NODES)]
)
def test_what_a_node_says(context: Context, text: str, cause: str) -> None:
    """
    The innermost of the errors that wrap each other is the cause, and a claim called "models" is no model.
    """
    found = classify_text(text, context=context)

    assert found is not None
    assert found.cause.slug == cause


@pytest.mark.parametrize(("text", "cause"), OF_PROGRAMS, ids=[f"{i}-{row[1]}" for i, row in enumerate(OF_PROGRAMS)])
def test_what_a_program_says(text: str, cause: str) -> None:
    """
    Also where the beginning of the sentence was cut off.
    """
    found = classify_text(text, context=Context.TERMINATED)

    assert found is not None
    assert found.cause.slug == cause


@pytest.mark.parametrize("line", OF_REQUESTS, ids=range(len(OF_REQUESTS)))
def test_an_answer_to_a_request_is_no_failed_load(line: str) -> None:
    """
    Whoever answers that a model does not exist serves; a cache, a router's backend and a socket are no model's store.
    """
    found = classify_text(line, context=L)

    assert found is None or found.cause.slug != "volume-lost"
    assert found is None or found.cause.category != "model-artifact"


@pytest.mark.parametrize("before", PUT_BEFORE, ids=["coloured", "kubectl --prefix", "runtime's file", "docker's"])
def test_what_is_put_before_a_line_hides_no_level(before: str) -> None:
    """
    Colours and what ships a log do not make information a failure, nor a failure information.
    """
    assert classify_text(before + ASKED, context=L) is None

    found = classify_text(before + OUT, context=L)

    assert found is not None
    assert found.cause.slug == "gpu-oom"
    assert "\x1b" not in found.line


def test_a_cloud_that_refuses_a_volume_refuses_no_model() -> None:
    """
    What a provisioner says of permissions is about its own account.
    """
    text = "ProvisioningFailed: Could not create volume: UnauthorizedOperation: forbidden by cloud storage"

    assert classify_text(text, context=L) is not None
    assert classify_text(text, context=E) is None


@pytest.mark.parametrize(
    "before", ["2025-11-30T06:00:00.1Z ", "[pod/chat-0/vllm] ", "2025-11-30T06:00:00.1Z stderr F "]
)
@pytest.mark.parametrize(
    ("line", "cause"), [("Killed", "killed-unexplained"), ("bash: vllm: command not found", "bad-command")]
)
def test_a_line_that_is_all_there_is_may_be_dated(before: str, line: str, cause: str) -> None:
    """
    What counts only at the beginning of a line counts behind what ``kubectl logs`` and the runtime put there.
    """
    found = classify_text(before + line, context=L)

    assert found is not None
    assert (found.cause.slug, found.line) == (cause, line)


@pytest.mark.parametrize(
    ("context", "text", "cause"),
    [
        (W, "CreateContainerConfigError: couldn’t find key HF_TOKEN in Secret prod/hub", "secret-missing"),
        (L, "KeyError: ‘HF_TOKEN’", "missing-environment"),
        (E, "0/3 nodes are available: 3 node(s) didn’t match Pod’s node affinity/selector.", "node-affinity"),
    ],
)
def test_curled_quotes_are_quotes(context: Context, text: str, cause: str) -> None:
    """
    Chats and editors curl the quotes of what people paste.
    """
    found = classify_text(text, context=context)

    assert found is not None
    assert found.cause.slug == cause


@pytest.mark.parametrize(
    "text", ["Evicted 20 cached prefixes", "preempted by a request of higher priority", "node is not ready: 10.0.0.7"]
)
def test_what_happens_to_pods_is_not_read_from_a_programs_log(text: str) -> None:
    """
    Engines evict and preempt too: blocks of their cache, and requests.
    """
    assert classify_text(text, context=L) is None
    assert classify_text(text, context=S) is not None
