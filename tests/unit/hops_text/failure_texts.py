"""
Texts that engines, kubelets, registries and hubs print, with what they mean.

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

DEVICE: tuple[Row, ...] = (
    (
        S,
        (
            "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to requested number of devices "
            "unavailable for amd.com/gpu. Requested: 4, Available: 3, which is unexpected"
        ),
        "discovery",
        "device",
        "device-plugin-allocate",
    ),
    (
        S,
        (
            "UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate "
            "unhealthy devices nvidia.com/gpu, which is unexpected"
        ),
        "discovery",
        "device",
        "device-unhealthy",
    ),
    (
        S,
        (
            "UnexpectedAdmissionError: Allocate failed due to can't allocate unregistered device nvidia.com/gpu, "
            "which is unexpected"
        ),
        "discovery",
        "device",
        "device-plugin-restart",
    ),
    (
        S,
        (
            "UnexpectedAdmissionError: Pod Allocate failed due to rpc error: code = Unavailable desc = "
            'connection error: desc = "transport: Error while dialing: dial unix '
            '/var/lib/kubelet/device-plugins/nvidia-gpu.sock: connect: connection refused", which is unexpected'
        ),
        "discovery",
        "device",
        "device-plugin-crash",
    ),
    (
        S,
        (
            "OutOfnvidia.com/gpu: Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: "
            "2, used: 7, capacity: 8"
        ),
        "discovery",
        "device",
        "device-out-of-resource",
    ),
    (
        S,
        "TopologyAffinityError: Pod was rejected: Resources cannot be allocated with Topology locality",
        "discovery",
        "device",
        "device-topology",
    ),
    (
        S,
        (
            "UnexpectedAdmissionError: Pod Allocate failed due to device plugin Allocate rpc failed with err: "
            "rpc error: code = Unknown desc = nvml: GPU is lost, which is unexpected"
        ),
        "gpu",
        "device",
        "gpu-lost",
    ),
    (
        E,
        (
            "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for "
            "ResourceClaim train-abc: error preparing devices: context deadline exceeded"
        ),
        "discovery",
        "device",
        "dra-prepare-timeout",
    ),
    (
        E,
        "Failed to prepare dynamic resources: DRA driver gpu.nvidia.com is not registered",
        "discovery",
        "device",
        "dra-driver-missing",
    ),
    (
        E,
        (
            "Failed to prepare dynamic resources: NodePrepareResources failed for claim a/b: cannot apply MIG "
            "configuration"
        ),
        "discovery",
        "device",
        "dra-prepare-failed",
    ),
    (
        W,
        (
            "CreateContainerError: failed to create containerd task: CDI device injection failed: unresolvable "
            "CDI devices nvidia.com/gpu=3"
        ),
        "discovery",
        "device",
        "cdi-unresolved",
    ),
    (
        T,
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your "
            "driver to a newer version, or use an earlier cuda container: unknown"
        ),
        "gpu",
        "device",
        "driver-too-old",
    ),
    (
        T,
        (
            "OCI runtime create failed: nvidia-container-cli: initialization error: load library failed: "
            "libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown"
        ),
        "discovery",
        "device",
        "driver-missing",
    ),
    (
        L,
        (
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your "
            "GPU driver"
        ),
        "gpu",
        "device",
        "driver-too-old",
    ),
    (
        L,
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
        "gpu",
        "device",
        "gpu-busy-or-exclusive",
    ),
    (
        L,
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        "gpu",
        "device",
        "fabric-not-ready",
    ),
    (
        L,
        (
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before "
            "calling NumCudaDevices()? Error 803: system has unsupported display driver / cuda driver combination"
        ),
        "pod",
        "engine",
        "cuda-image-mismatch",
    ),
    (L, "RuntimeError: No CUDA GPUs are available", "pod", "device", "no-gpu-in-container"),
    (
        L,
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        "pod",
        "device",
        "no-gpu-in-container",
    ),
    (
        L,
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        "pod",
        "device",
        "no-gpu-in-container",
    ),
    (
        L,
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "gpu",
        "device",
        "gpu-lost",
    ),
    (
        L,
        "NVRM: Xid (PCI:0000:3b:00): 94, pid=7194, Contained: SM (0x1). RST: No, D-RST: No",
        "gpu",
        "device",
        "gpu-ecc",
    ),
    (
        L,
        "RuntimeError: NCCL Error 1: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "gpu",
        "engine",
        "nccl-cuda",
    ),
    (
        L,
        (
            "torch.cuda.DeferredCudaCallError: CUDA call failed lazily: Unable to determine the device handle "
            "for GPU0000:41:00.0: Unknown Error"
        ),
        "gpu",
        "device",
        "gpu-lost",
    ),
    (
        E,
        'Failed to create pod sandbox: rpc error: code = Unknown desc = RuntimeHandler "nvidia-cdi" not supported',
        "gpu",
        "device",
        "runtimeclass-missing",
    ),
)

IMAGES: tuple[Row, ...] = (
    (
        E,
        (
            'Failed to pull image "vllm/vllm-openai:v9": rpc error: code = NotFound desc = failed to pull and '
            'unpack image "docker.io/vllm/vllm-openai:v9": failed to resolve reference '
            '"docker.io/vllm/vllm-openai:v9": docker.io/vllm/vllm-openai:v9: not found'
        ),
        "pod",
        "image",
        "image-not-found",
    ),
    (W, "ErrImagePull: manifest unknown: manifest unknown", "pod", "image", "image-not-found"),
    (
        W,
        (
            'ImagePullBackOff: Back-off pulling image "quay.io/org/engine:1": ErrImagePull: reading manifest 1 '
            "in quay.io/org/engine: manifest unknown"
        ),
        "pod",
        "image",
        "image-not-found",
    ),
    (
        E,
        (
            'Failed to pull image "ghcr.io/org/engine:1": failed to authorize: failed to fetch anonymous token: '
            "unexpected status from GET request to https://ghcr.io/token?scope=x: 403 Forbidden"
        ),
        "pod",
        "image",
        "image-unauthorized",
    ),
    (
        E,
        (
            'Failed to pull image "123.dkr.ecr.eu-west-1.amazonaws.com/engine:1": rpc error: code = Unknown desc '
            '= Error response from daemon: Get "https://123.dkr.ecr.eu-west-1.amazonaws.com/v2/": no basic auth '
            "credentials"
        ),
        "pod",
        "image",
        "image-unauthorized",
    ),
    (
        E,
        'Failed to pull image "nvcr.io/nim/x:1": unexpected status code 401 Unauthorized: authentication required',
        "pod",
        "image",
        "image-unauthorized",
    ),
    (
        E,
        (
            'Failed to pull image "docker.io/x/y:1": 429 Too Many Requests - Server message: toomanyrequests: '
            "You have reached your pull rate limit"
        ),
        "pod",
        "image",
        "image-rate-limit",
    ),
    (
        E,
        (
            'Failed to pull image "reg.example.com/x:1": failed to do request: Head '
            '"https://reg.example.com/v2/x/manifests/1": dial tcp 10.1.1.1:443: i/o timeout'
        ),
        "pod",
        "image",
        "image-registry-unreachable",
    ),
    (
        E,
        (
            'Failed to pull image "reg.example.com/x:1": Get "https://reg.example.com/v2/": tls: failed to '
            "verify certificate: x509: certificate signed by unknown authority"
        ),
        "pod",
        "image",
        "image-registry-unreachable",
    ),
    (
        E,
        'Failed to pull image "reg.example.com/x:1": dial tcp: lookup reg.example.com on 10.96.0.10:53: no such host',
        "pod",
        "image",
        "image-registry-unreachable",
    ),
    (E, 'Failed to pull image "x:1": no match for platform in manifest: not found', "pod", "image", "image-platform"),
    (L, "exec /usr/bin/python3: exec format error", "pod", "image", "image-platform"),
    (
        E,
        (
            'Failed to pull image "x:1": failed to extract layer sha256:aaaa: write /var/lib/containerd/x: no '
            "space left on device: unknown"
        ),
        "pod",
        "image",
        "image-disk-full",
    ),
    (
        W,
        (
            'InvalidImageName: Failed to apply default image tag "{{image}}:1": couldn\'t parse image name: '
            "invalid reference format"
        ),
        "pod",
        "image",
        "image-name",
    ),
    (
        W,
        'ErrImageNeverPull: Container image "engine:dev" is not present with pull policy of Never',
        "pod",
        "image",
        "image-never-pull",
    ),
    (W, 'ImagePullBackOff: Back-off pulling image "engine:dev"', "pod", "image", "image-pull-unexplained"),
    (L, "ModuleNotFoundError: No module named 'flash_attn'", "pod", "image", "image-content"),
)

SETUP: tuple[Row, ...] = (
    (W, "CreateContainerConfigError: couldn't find key HF_TOKEN in Secret prod/hub", "pod", "config", "secret-missing"),
    (
        W,
        "CreateContainerConfigError: couldn't find key args in ConfigMap prod/engine",
        "pod",
        "config",
        "configmap-missing",
    ),
    (
        E,
        'MountVolume.SetUp failed for volume "cfg" : configmap "engine-config" not found',
        "pod",
        "config",
        "configmap-missing",
    ),
    (
        E,
        'MountVolume.SetUp failed for volume "tok" : references non-existent secret key: token',
        "pod",
        "config",
        "secret-missing",
    ),
    (
        E,
        (
            'MountVolume.SetUp failed for volume "models" : mount failed: exit status 32 Mounting command: mount '
            "Output: mount.nfs: Connection timed out"
        ),
        "pod",
        "config",
        "volume-mount-failed",
    ),
    (
        E,
        (
            'MountVolume.MountDevice failed for volume "pvc-1" : kubernetes.io/csi: attacher.MountDevice failed: '
            "driver name fsx.csi.aws.com not found in the list of registered CSI drivers"
        ),
        "pod",
        "config",
        "csi-driver-missing",
    ),
    (
        E,
        'AttachVolume.Attach failed for volume "pvc-1" : rpc error: code = Internal desc = Could not attach volume',
        "pod",
        "config",
        "volume-attach-failed",
    ),
    (
        E,
        'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) llama-0',
        "pod",
        "config",
        "volume-multi-attach",
    ),
    (
        E,
        (
            "Unable to attach or mount volumes: unmounted volumes=[models], unattached volumes=[models "
            "kube-api-access]: timed out waiting for the condition"
        ),
        "pod",
        "config",
        "volume-mount-waiting",
    ),
    (
        W,
        (
            'CreateContainerConfigError: container has runAsNonRoot and image will run as root (pod: "x_y(z)", '
            "container: engine)"
        ),
        "pod",
        "config",
        "security-context",
    ),
    (
        T,
        (
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc "
            'create failed: unable to start container process: exec: "vllm": executable file not found in $PATH: '
            "unknown"
        ),
        "pod",
        "config",
        "bad-command",
    ),
    (L, "vllm serve: error: unrecognized arguments: --enable-chunked-prefil", "pod", "config", "bad-arguments"),
    (
        L,
        "api_server.py: error: argument --tensor-parallel-size/-tp: invalid int value: 'two'",
        "pod",
        "config",
        "bad-arguments",
    ),
    (
        L,
        "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        "pod",
        "config",
        "port-in-use",
    ),
    (L, "PermissionError: [Errno 13] Permission denied: '/.cache'", "pod", "config", "file-permission"),
    (L, "ValueError: environment variable VLLM_HOST_IP is not set", "pod", "config", "missing-environment"),
    (
        E,
        'Exec lifecycle hook ([/bin/warm]) for Container "engine" failed: PostStartHookError: command exited with 1',
        "pod",
        "config",
        "hook-failed",
    ),
    (
        S,
        (
            "Evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi. "
            "Container engine was using 90Gi, request is 64Gi"
        ),
        "pod",
        "runtime",
        "evicted-memory",
    ),
    (
        S,
        "Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.",
        "pod",
        "runtime",
        "ephemeral-storage",
    ),
    (S, 'Evicted: Usage of EmptyDir volume "cache" exceeds the limit "20Gi".', "pod", "runtime", "ephemeral-storage"),
    (S, "Terminated: Pod was terminated in response to imminent node shutdown.", "pod", "runtime", "node-shutdown"),
    (S, "Preempting: Preempted in order to admit critical pod", "pod", "runtime", "preempted"),
    (
        S,
        "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
        "pod",
        "runtime",
        "deadline-exceeded",
    ),
    (S, "TaintManagerEviction: Taint manager: deleting due to NoExecute taint", "pod", "runtime", "evicted"),
    (T, "OOMKilled", "pod", "runtime", "host-oom"),
    (
        L,
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "pod",
        "runtime",
        "host-oom",
    ),
    (
        E,
        (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "
            '"a": plugin type="calico" failed (add): no IP addresses available in range set'
        ),
        "pod",
        "runtime",
        "sandbox-network",
    ),
    (E, "Container engine failed liveness probe, will be restarted", "pod", "probe", "probe-kill"),
    (
        E,
        'Liveness probe failed: Get "http://10.0.0.9:8000/health": context deadline exceeded',
        "pod",
        "probe",
        "liveness-failing",
    ),
    (E, "Startup probe failed: HTTP probe failed with statuscode: 503", "model", "probe", "slow-load"),
    (
        W,
        "CrashLoopBackOff: back-off 2m40s restarting failed container=engine pod=x_y(z)",
        "pod",
        "unknown",
        "crash-loop-unexplained",
    ),
)

ARTIFACTS: tuple[Row, ...] = (
    (
        L,
        (
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url "
            "https://huggingface.co/org/m/resolve/main/config.json. Access to model org/m is restricted. You "
            "must have access to it and be authenticated to access it. Please log in."
        ),
        "model",
        "model-artifact",
        "hf-unauthorized",
    ),
    (
        L,
        (
            "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: "
            "https://huggingface.co/org/m/resolve/main/config.json"
        ),
        "model",
        "model-artifact",
        "hf-gated",
    ),
    (
        L,
        "Your request to access model org/m is awaiting a review from the repo authors.",
        "model",
        "model-artifact",
        "hf-gated",
    ),
    (
        L,
        (
            "huggingface_hub.utils._errors.RepositoryNotFoundError: 404 Client Error. Repository Not Found for "
            "url: https://huggingface.co/api/models/org/n"
        ),
        "model",
        "model-artifact",
        "artifact-not-found",
    ),
    (
        L,
        (
            "OSError: org/lama-3 is not a local folder and is not a valid model identifier listed on "
            "'https://huggingface.co/models'"
        ),
        "model",
        "model-artifact",
        "artifact-not-found",
    ),
    (
        L,
        "huggingface_hub.errors.RevisionNotFoundError: 404 Client Error. Invalid rev id: v9",
        "model",
        "model-artifact",
        "artifact-not-found",
    ),
    (
        L,
        (
            "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: "
            "https://huggingface.co/api/models/org/m"
        ),
        "model",
        "model-artifact",
        "artifact-rate-limit",
    ),
    (
        L,
        (
            "OSError: We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the "
            "cached files"
        ),
        "model",
        "model-artifact",
        "artifact-unreachable",
    ),
    (
        L,
        (
            "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the files "
            "on the Hub and we cannot find the appropriate snapshot folder"
        ),
        "model",
        "model-artifact",
        "artifact-unreachable",
    ),
    (
        L,
        (
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max "
            "retries exceeded with url: /api/models/org/m"
        ),
        "model",
        "model-artifact",
        "artifact-unreachable",
    ),
    (
        L,
        "botocore.exceptions.ClientError: An error occurred (403) when calling the HeadObject operation: Forbidden",
        "model",
        "model-artifact",
        "artifact-access-denied",
    ),
    (
        L,
        "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
        "model",
        "model-artifact",
        "artifact-access-denied",
    ),
    (
        L,
        (
            "botocore.errorfactory.NoSuchKey: An error occurred (NoSuchKey) when calling the GetObject "
            "operation: The specified key does not exist."
        ),
        "model",
        "model-artifact",
        "artifact-not-found",
    ),
    (
        L,
        (
            "google.api_core.exceptions.Forbidden: 403 GET https://storage.googleapis.com/storage/v1/b/x: "
            "sa@p.iam does not have storage.objects.list access"
        ),
        "model",
        "model-artifact",
        "artifact-access-denied",
    ),
    (
        T,
        "S3 authentication failed. Check the credentials of the service account.",
        "model",
        "model-artifact",
        "artifact-access-denied",
    ),
    (T, "GCS resource 'gs://bucket/m' not found.", "model", "model-artifact", "artifact-not-found"),
    (
        L,
        "RuntimeError: Failed to fetch model. No model found in s3://models/llama.",
        "model",
        "model-artifact",
        "artifact-not-found",
    ),
    (L, "Exception: Cannot recognize storage type for ftp://x/y", "model", "model-artifact", "storage-uri"),
    (
        L,
        "OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/models--org--m/blobs/1'",
        "model",
        "model-artifact",
        "artifact-disk-full",
    ),
    (
        L,
        "RuntimeError: Data processing error: CAS service error : IO Error: No space left on device (os error 28)",
        "model",
        "model-artifact",
        "artifact-disk-full",
    ),
    (
        L,
        "OSError: Consistency check failed: file should be of size 4976698672 but has size 1234",
        "model",
        "model-artifact",
        "corrupt-weights",
    ),
    (
        L,
        "ValueError: sha256 mismatch for model-00002-of-00004.safetensors",
        "model",
        "model-artifact",
        "corrupt-weights",
    ),
    (L, "_pickle.UnpicklingError: invalid load key, 'v'.", "model", "model-artifact", "corrupt-weights"),
    (
        L,
        "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
        "model",
        "model-artifact",
        "corrupt-weights",
    ),
    (
        L,
        (
            "OSError: /mnt/models does not appear to have a file named config.json. Checkout "
            "'https://huggingface.co//mnt/models/tree/main' for available files."
        ),
        "model",
        "model-artifact",
        "missing-weights",
    ),
    (
        L,
        (
            "OSError: Error no file named pytorch_model.bin, model.safetensors, tf_model.h5 found in directory "
            "/mnt/models."
        ),
        "model",
        "model-artifact",
        "missing-weights",
    ),
    (
        L,
        "FileNotFoundError: [Errno 2] No such file or directory: '/models/llama/model.safetensors.index.json'",
        "model",
        "model-artifact",
        "missing-weights",
    ),
    (
        L,
        (
            "OSError: Can't load tokenizer for 'org/m'. If you were trying to load it from the Hub, make sure "
            "you don't have a local directory with the same name."
        ),
        "model",
        "model-artifact",
        "tokenizer-missing",
    ),
    (L, "KeyError: 'model.layers.0.mlp.experts.w2_weight'", "model", "model-artifact", "weights-mismatch"),
    (
        L,
        (
            "ValueError: The repository for org/m contains custom code which must be executed to correctly load "
            "the model. Please pass the argument `trust_remote_code=True`"
        ),
        "model",
        "model-artifact",
        "trust-remote-code",
    ),
    (
        L,
        (
            "ValueError: Model architectures ['FooForCausalLM'] are not supported for now. Supported "
            "architectures: ['LlamaForCausalLM']"
        ),
        "model",
        "model-artifact",
        "unknown-architecture",
    ),
    (
        L,
        (
            "ValueError: The checkpoint you are trying to load has model type `foo4` but Transformers does not "
            "recognize this architecture."
        ),
        "model",
        "model-artifact",
        "unknown-architecture",
    ),
    (
        L,
        (
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig Value error, Model "
            "architectures ['BarModel'] failed to be inspected."
        ),
        "model",
        "model-artifact",
        "unknown-architecture",
    ),
    (
        L,
        (
            "[TensorRT-LLM][ERROR] IRuntime::deserializeCudaEngine: Error Code 6: API Usage Error (The engine "
            "plan file is generated on an incompatible device, expecting compute 9.0 got compute 8.0)"
        ),
        "model",
        "model-artifact",
        "engine-build-mismatch",
    ),
    (C, "ModelLoadFailed: BlockedByFailedLoad", "model", "model-artifact", "model-load-failed"),
)

ENGINES: tuple[Row, ...] = (
    (
        L,
        (
            "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV "
            "cache is needed, which is larger than the available KV cache memory (7.50 GiB). Based on the "
            "available memory, the estimated maximum model length is 61440."
        ),
        "model",
        "engine",
        "kv-cache-too-small",
    ),
    (
        L,
        (
            "ValueError: To serve at least one request with the model's max seq len (32768), 4.0 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (1.2 GiB)."
        ),
        "model",
        "engine",
        "kv-cache-too-small",
    ),
    (
        L,
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "model",
        "engine",
        "gpu-oom-at-load",
    ),
    (
        L,
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.15 GiB "
            "total capacity; 78.20 GiB already allocated)"
        ),
        "model",
        "engine",
        "gpu-oom",
    ),
    (L, "RuntimeError: CUDA error: out of memory", "model", "engine", "gpu-oom"),
    (
        L,
        (
            "AssertionError: Error in memory profiling. Initial free memory 40.1 GiB, current free memory 42.0 "
            "GiB. This happens when other processes sharing the same container release GPU memory"
        ),
        "model",
        "engine",
        "gpu-memory-held",
    ),
    (
        L,
        (
            "ValueError: Free memory on device cuda:0 (12.1/79.1 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 71.2 GiB)."
        ),
        "model",
        "engine",
        "gpu-memory-held",
    ),
    (
        L,
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "model",
        "engine",
        "gpu-too-old",
    ),
    (
        L,
        (
            "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: "
            "89. Current capability: 80."
        ),
        "model",
        "engine",
        "gpu-too-old",
    ),
    (
        L,
        "ValueError: Tensor parallel size (4) cannot be larger than the number of available GPUs (2).",
        "model",
        "engine",
        "bad-parallelism",
    ),
    (
        L,
        "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.",
        "model",
        "engine",
        "bad-parallelism",
    ),
    (L, "AssertionError: 28 is not divisible by 8", "model", "engine", "bad-parallelism"),
    (
        L,
        "ValueError: Unknown quantization method: foo. Must be one of ['awq', 'fp8'].",
        "model",
        "engine",
        "engine-config",
    ),
    (
        L,
        "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (8192).",
        "model",
        "engine",
        "engine-config",
    ),
    (
        L,
        (
            "[rank1]:[E ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=3, OpType=ALLGATHER)"
        ),
        "model",
        "engine",
        "nccl-timeout",
    ),
    (
        L,
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251, unhandled system "
            "error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5"
        ),
        "model",
        "engine",
        "nccl-init",
    ),
    (
        L,
        (
            "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to "
            "connect to (10.0.0.4, 29500)."
        ),
        "model",
        "engine",
        "nccl-init",
    ),
    (
        L,
        (
            "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x9 (size 9637888), error: No "
            "space left on device (28)"
        ),
        "model",
        "engine",
        "shm-too-small",
    ),
    (L, "RuntimeError: CUDA error: an illegal memory access was encountered", "model", "engine", "cuda-error"),
    (L, "RuntimeError: CUDA error: device-side assert triggered", "model", "engine", "cuda-error"),
    (
        L,
        "torch._inductor.exc.InductorError: CalledProcessError: gcc returned non-zero exit status 1",
        "model",
        "engine",
        "compile-failed",
    ),
    (
        L,
        (
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
            "{'EngineCore_0': 1}"
        ),
        "model",
        "engine",
        "engine-init-unexplained",
    ),
    (
        L,
        (
            "Exception: WorkerProc initialization failed due to an exception in a background process. See stack "
            "trace for root cause."
        ),
        "model",
        "engine",
        "engine-init-unexplained",
    ),
    (
        L,
        "Received sigquit from a child process. It usually means the child failed.",
        "model",
        "engine",
        "engine-init-unexplained",
    ),
    (L, "Error: ShardCannotStart", "model", "engine", "engine-init-unexplained"),
    (
        L,
        (
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) "
            "for the root cause."
        ),
        "model",
        "engine",
        "engine-died",
    ),
    (
        L,
        "ERROR: could not find a profile that is currently runnable with the detected hardware",
        "model",
        "engine",
        "nim-no-profile",
    ),
    (
        C,
        "NoSupportingRuntime: no runtime found to support predictor with model type: {onnx}",
        "model",
        "config",
        "no-serving-runtime",
    ),
)

SERVING: tuple[Row, ...] = (
    (
        L,
        (
            "RuntimeError: Version mismatch: The cluster was started with: Ray: 2.44.0 Python: 3.11.9 This "
            "process was started with: Ray: 2.41.0"
        ),
        "pod",
        "config",
        "ray-version-mismatch",
    ),
    (L, "Timed out waiting for GCS to become available, retrying", "pod", "dependency", "ray-head-unreachable"),
    (
        L,
        "ValueError: Cannot provide a placement group of placement_group_specs=[{'GPU': 1.0}] within 600 seconds.",
        "scheduling",
        "resource",
        "ray-capacity",
    ),
    (E, "Readiness probe failed: dial tcp 10.0.0.3:8000: connect: connection refused", "service", "probe", "not-ready"),
    (C, "HTTPRoute is not accepted: NoMatchingListenerHostname", "gateway", "config", "route-status"),
    (C, "ZeroServeEndpoints: Number of Serve endpoints dropped to 0", "service", "dependency", "no-endpoints"),
    (C, "Insufficient scheduled pods. expected at least: 4, found: 3", "scheduling", "gated", "gang-waiting"),
)

MORE: tuple[Row, ...] = (
    (E, "Startup probe failed: dial tcp: lookup engine: no such host", "model", "probe", "slow-load"),
    (T, "failed to pull image x:1: manifest unknown", "pod", "image", "image-not-found"),
    (T, "nvidia-container-cli: device error: GPU-1a: unknown device: unknown", "gpu", "device", "device-gone"),
    (L, "CUDA error: CUDA-capable device(s) is/are busy or unavailable", "gpu", "device", "gpu-busy-or-exclusive"),
    (L, "503 no healthy upstream", "gateway", "dependency", "upstream-error"),
    (L, "upstream request timeout", "gateway", "dependency", "upstream-error"),
    (E, "no endpoints available for service llama", "service", "dependency", "no-endpoints"),
)

ALL: tuple[Row, ...] = (*DEVICE, *IMAGES, *SETUP, *ARTIFACTS, *ENGINES, *SERVING, *MORE)
