"""Texts of which only the hop matters, and lines of healthy starts."""

from __future__ import annotations

from sevenhop.core.hops.failures import Context

HOPS_OF_TEXTS: tuple[tuple[Context, str, str], ...] = (
    (
        Context.STATUS,
        "UnexpectedAdmissionError: Update plugin resources failed due to no healthy devices present",
        "discovery",
    ),
    (
        Context.STATUS,
        (
            "UnexpectedAdmissionError: Allocate failed due to device plugin Allocate rpc failed with err: rpc "
            "error: code = Unknown desc = no binding pod found on node, which is unexpected"
        ),
        "discovery",
    ),
    (
        Context.STATUS,
        (
            "UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: "
            "requested=8, available=6, which is unexpected"
        ),
        "discovery",
    ),
    (
        Context.STATUS,
        (
            "NodeAffinity: Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
            "affinity/selector"
        ),
        "scheduling",
    ),
    (
        Context.STATUS,
        (
            "OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 8000, used: 92000, "
            "capacity: 96000"
        ),
        "scheduling",
    ),
    (
        Context.STATUS,
        "OutOfmemory: Node didn't have enough resource: memory, requested: 1, used: 2, capacity: 3",
        "scheduling",
    ),
    (Context.STATUS, "NodeLost: Node gpu-07 which was running pod llama-0 is unresponsive", "pod"),
    (Context.STATUS, "Shutdown: Pod was rejected as the node is shutting down.", "pod"),
    (Context.STATUS, "NodeShutdown: Pod was rejected: Pod was rejected as the node is shutting down.", "pod"),
    (
        Context.LOG,
        'level=error msg="failed to start plugin: error waiting for MPS daemon: error checking MPS daemon health"',
        "discovery",
    ),
    (Context.LOG, "E1130 Incompatible strategy detected auto", "discovery"),
    (Context.LOG, "I1130 No devices found. Waiting indefinitely.", "discovery"),
    (
        Context.TERMINATED,
        (
            "failed to create shim task: OCI runtime create failed: could not apply required modification to OCI "
            "specification: error modifying OCI spec: failed to inject CDI devices: unresolvable CDI devices "
            "management.nvidia.com/gpu=all: unknown"
        ),
        "discovery",
    ),
    (
        Context.TERMINATED,
        (
            "nvidia-container-cli: initialization error: cuda error: forward compatibility was attempted on non "
            "supported hw: unknown"
        ),
        "gpu",
    ),
    (Context.TERMINATED, "nvidia-container-cli: detection error: driver rpc error: timed out: unknown", "gpu"),
    (
        Context.LOG,
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the "
            "latest NVIDIA driver is installed and running."
        ),
        "gpu",
    ),
    (Context.LOG, "pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded", "gpu"),
    (Context.LOG, "pynvml.NVMLError_Unknown: Unknown Error", "gpu"),
    (Context.LOG, "pynvml.NVMLError_GpuIsLost: GPU is lost", "gpu"),
    (Context.LOG, "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", "gpu"),
    (Context.LOG, "RuntimeError: cuda runtime error (46) : all CUDA-capable devices are busy or unavailable", "gpu"),
    (Context.LOG, "RuntimeError: CUDA error: unknown error", "model"),
    (Context.LOG, "RuntimeError: Device string must not be empty", "pod"),
    (Context.LOG, "AssertionError: Torch not compiled with CUDA enabled", "pod"),
    (
        Context.EVENT,
        (
            'Failed to pull image "vllm/vllm-openai:v0.99": Error response from daemon: manifest for '
            "vllm/vllm-openai:v0.99 not found: manifest unknown: manifest unknown"
        ),
        "pod",
    ),
    (
        Context.EVENT,
        (
            'Failed to pull image "x": rpc error: code = Canceled desc = failed to pull and unpack image "x": '
            "context canceled"
        ),
        "pod",
    ),
    (
        Context.WAITING,
        (
            'ImagePullBackOff: Back-off pulling image "x": ErrImagePull: initializing source docker://x: reading '
            "manifest latest in docker.io/library/x: requested access to the resource is denied"
        ),
        "pod",
    ),
    (
        Context.WAITING,
        (
            'ErrImagePull: rpc error: code = Unknown desc = Get "https://registry-1.docker.io/v2/": net/http: '
            "request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)"
        ),
        "pod",
    ),
    (Context.WAITING, "RegistryUnavailable: registry is unavailable", "pod"),
    (Context.WAITING, "SignatureValidationFailed: image validation failed", "pod"),
    (Context.WAITING, "ImageInspectError: Failed to inspect image", "pod"),
    (Context.WAITING, "CreateContainerError: context deadline exceeded", "pod"),
    (Context.WAITING, "CreateContainerError: failed to reserve container name x_y_z: name is reserved for abc", "pod"),
    (Context.WAITING, "RunContainerError: failed to start containerd task: cannot start a stopped process", "pod"),
    (Context.WAITING, "PostStartHookError: command '/bin/sh -c x' exited with 1", "pod"),
    (
        Context.EVENT,
        (
            'MountVolume.SetUp failed for volume "pvc" : rpc error: code = Internal desc = Could not mount '
            '"fs-1" at "/var": access denied'
        ),
        "pod",
    ),
    (
        Context.EVENT,
        'MountVolume.NewMounter initialization failed for volume "local-pv" : path "/mnt/disks/x" does not exist',
        "pod",
    ),
    (
        Context.EVENT,
        (
            'MountVolume.SetUp failed for volume "kube-api-access-x" : failed to sync configmap cache: timed out '
            "waiting for the condition"
        ),
        "pod",
    ),
    (Context.EVENT, 'AttachVolume.FindAttachablePluginBySpec failed for volume "x"', "pod"),
    (Context.EVENT, 'MapVolume.MapPodDevice failed for volume "x" : rpc error', "pod"),
    (Context.LOG, "/bin/sh: 1: vllm: not found", "pod"),
    (Context.LOG, "bash: line 1: sglang: command not found", "pod"),
    (Context.LOG, "python3: can't open file '/app/serve.py': [Errno 2] No such file or directory", "pod"),
    (Context.LOG, "/usr/bin/python3: No module named vllm.entrypoints", "pod"),
    (Context.LOG, "launch_server.py: error: the following arguments are required: --model-path", "pod"),
    (Context.LOG, "Error: unknown flag: --model-store", "pod"),
    (Context.LOG, "tritonserver: unrecognized option '--modelrepo'", "pod"),
    (Context.LOG, "error: unexpected argument '--foo' found", "pod"),
    (Context.LOG, "pydantic_core._pydantic_core.ValidationError: 1 validation error for ParallelConfig", "model"),
    (Context.LOG, "ValueError: Model architectures ['LlavaX'] are not supported for now.", "model"),
    (Context.LOG, "KeyError: 'qwen4_moe'", "model"),
    (
        Context.LOG,
        "ValueError: Unrecognized model in /mnt/models. Should have a `model_type` key in its config.json",
        "model",
    ),
    (Context.LOG, "ValueError: Unsupported model type mistral9", "model"),
    (Context.LOG, "RuntimeError: Failed to load the model config.", "model"),
    (Context.LOG, "RuntimeError: shape '[32, 128]' is invalid for input of size 4095", "model"),
    (
        Context.LOG,
        (
            "AssertionError: Attempted to load weight (torch.Size([151936, 4096])) into parameter "
            "(torch.Size([128256, 4096]))"
        ),
        "model",
    ),
    (Context.LOG, "OSError: Unable to load weights from pytorch checkpoint file", "model"),
    (
        Context.LOG,
        'FileNotFoundError: No such file or directory: "/mnt/models/model-00003-of-00008.safetensors"',
        "model",
    ),
    (Context.LOG, "IncompleteRead(1234 bytes read, 999 more expected)", "model"),
    (
        Context.LOG,
        "requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(1 bytes read)')",
        "model",
    ),
    (
        Context.LOG,
        (
            "huggingface_hub.errors.EntryNotFoundError: 404 Client Error. Entry Not Found for url: "
            "https://huggingface.co/org/m/resolve/main/config.json"
        ),
        "model",
    ),
    (
        Context.LOG,
        (
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
            "'namespace/repo_name': '/mnt/model'"
        ),
        "model",
    ),
    (Context.LOG, "ValueError: Invalid repository ID or local directory specified: '/models/x'", "model"),
    (
        Context.LOG,
        "ERROR: azure.core.exceptions.ResourceNotFoundError: The specified container does not exist.",
        "model",
    ),
    (Context.LOG, "google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found.", "model"),
    (
        Context.LOG,
        (
            "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "
            '"http://minio:9000/models"'
        ),
        "model",
    ),
    (
        Context.LOG,
        "An error occurred (SlowDown) when calling the GetObject operation: Please reduce your request rate.",
        "model",
    ),
    (
        Context.LOG,
        (
            "An error occurred (InvalidAccessKeyId) when calling the ListObjectsV2 operation: The AWS Access Key "
            "Id you provided does not exist in our records."
        ),
        "model",
    ),
    (
        Context.LOG,
        "An error occurred (ExpiredToken) when calling the GetObject operation: The provided token has expired.",
        "model",
    ),
    (Context.LOG, "RuntimeError: Failed to fetch model. No model found in gs://bucket/path.", "model"),
    (Context.LOG, "Exception: Path contains no models: hdfs://x", "model"),
    (Context.LOG, "Storage initialization failed: S3 resource 's3://b/m' not found.", "model"),
    (Context.LOG, "NGC: Authentication Error: Invalid API key (NGC_API_KEY)", "model"),
    (
        Context.LOG,
        "nimlib.exceptions.ManifestDownloadError: Error downloading manifest: Unauthorized - NGC token invalid",
        "model",
    ),
    (Context.LOG, "ERROR: Failed to download model: unexpected status code 416", "model"),
    (Context.LOG, "Error: pull model manifest: file does not exist", "model"),
    (Context.LOG, "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1 GiB", "model"),
    (
        Context.LOG,
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you tried to allocate 17179869184 bytes."
        ),
        "pod",
    ),
    (
        Context.LOG,
        "ValueError: The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "model",
    ),
    (Context.LOG, "ValueError: `--enable-chunked-prefill` not supported with attention backend", "model"),
    (
        Context.LOG,
        (
            "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease "
            "`--max-batch-prefill-tokens`"
        ),
        "model",
    ),
    (Context.LOG, "[TensorRT-LLM][ERROR] Assertion failed: mpiSize == tp * pp (1 != 2)", "model"),
    (Context.LOG, "AssertionError: world size (8) is not equal to tensor model parallel size (4) x pipeline", "model"),
    (Context.LOG, "RuntimeError: The size of tensor a (4096) must match the size of tensor b (1024)", "model"),
    (
        Context.LOG,
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        "model",
    ),
    (
        Context.LOG,
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:31111",
        "model",
    ),
    (
        Context.LOG,
        "ncclInternalError: Internal check failed. Last error: Socket recv failed while polling for opId",
        "model",
    ),
    (Context.LOG, "NCCL WARN NET/Socket : no usable interface found", "model"),
    (Context.LOG, "[E] ucx_context: failed to open ib device: ibv_open_device failed", "model"),
    (Context.LOG, "RuntimeError: NIXL_ERR_BACKEND: failed to create backend UCX", "model"),
    (
        Context.LOG,
        "The node with node id: 1a has been marked dead because the detector has missed too many heartbeats from it.",
        "pod",
    ),
    (Context.LOG, "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "model"),
    (Context.LOG, "Error: No available node types can fulfill resource request {'GPU': 8.0}", "scheduling"),
    (
        Context.EVENT,
        (
            "Liveness probe failed: command timed out: wget --tries 1 -T 2 -q -O- "
            "http://localhost:52365/api/local_raylet_healthz | grep success"
        ),
        "pod",
    ),
    (
        Context.EVENT,
        "Readiness probe errored: rpc error: code = NotFound desc = failed to exec in container",
        "service",
    ),
    (Context.CONDITION, "MinimumReplicasUnavailable: Deployment does not have minimum availability.", "service"),
    (
        Context.CONDITION,
        (
            "RevisionFailed: Revision 'x-predictor-00001' failed with message: Container failed with: exit code "
            "137 OOMKilled"
        ),
        "pod",
    ),
    (Context.CONDITION, "Reference grant missing: RefNotPermitted", "gateway"),
    (Context.CONDITION, "BackendNotFound: backend llama not found", "gateway"),
    (Context.CONDITION, "NoMatchingParent", "gateway"),
    (Context.CONDITION, "IngressNotConfigured: Ingress has not yet been reconciled.", "gateway"),
)
"""(where it stood, text, hop)"""

HEALTHY: tuple[str, ...] = (
    "INFO 11-30 06:00:00 [api_server.py:1032] vLLM API server version 0.10.0",
    (
        "(APIServer pid=1) INFO 11-30 [utils.py:326] non-default args: {'model': 'org/m', "
        "'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.9}"
    ),
    "WARNING 11-30 06:00:00 [config.py:1] Casting torch.bfloat16 to torch.float16.",
    (
        "WARNING 11-30 06:00:00 [cuda.py:3] Detected different devices in the system. Please make sure to set "
        "CUDA_DEVICE_ORDER=PCI_BUS_ID"
    ),
    "(EngineCore_0 pid=77) INFO 11-30 [gpu_worker.py:298] Available KV cache memory: 20.1 GiB",
    "(EngineCore_0 pid=77) INFO 11-30 [kv_cache_utils.py:864] GPU KV cache size: 164,000 tokens",
    "(EngineCore_0 pid=77) INFO 11-30 [kv_cache_utils.py:868] Maximum concurrency for 8,192 tokens per request: 20.02x",
    "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|██████████| 67/67 [00:03<00:00, 20.1it/s]",
    "Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:02<00:00,  1.53it/s]",
    "(EngineCore_0 pid=77) [Gloo] Rank 0 is connected to 1 peer ranks. Expected number of connected peer ranks is : 1",
    "INFO:     Application startup complete.",
    'INFO:     10.0.0.4:5555 - "POST /v1/chat/completions HTTP/1.1" 401 Unauthorized',
    (
        "[2026-11-30 06:00:00] server_args=ServerArgs(model_path='org/m', tokenizer_path='org/m', "
        "trust_remote_code=False, mem_fraction_static=0.88)"
    ),
    "[2026-11-30 06:00:00 TP0] Load weight begin. avail mem=78.5 GB",
    "[2026-11-30 06:00:00 TP0] KV Cache is allocated. #tokens: 440000, K size: 26 GB",
    (
        "[2026-11-30 06:00:00 TP0] max_total_num_tokens=440000, chunked_prefill_size=8192, "
        "max_running_requests=2048, context_len=131072"
    ),
    "[TensorRT-LLM][INFO] Engine version 0.20 found in the config file, assuming engine(s) built by new builder API.",
    "[TensorRT-LLM][INFO] MPI size: 2, MPI local size: 2, rank: 0",
    "2026-11-30T06:00:00.0Z  INFO text_generation_router: Connected",
    "I1130 06:00:00 server.cc:676] Started GRPCInferenceService at 0.0.0.0:8001",
    "Using Flash Attention backend.",
    "Using cached model from /root/.cache/huggingface/hub",
    "Setting pad_token_id to eos_token_id:2 for open-end generation.",
    "NCCL version 2.21.5+cuda12.4",
    "gpu-07:77:77 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>",
    "ray start --address=head:6379 --block",
    "Ray runtime started.",
    "Downloading shards: 100%|##########| 4/4",
    "Fetching 12 files: 100%|##########| 12/12 [00:10<00:00]",
    "Starting to load model org/m...",
    "Model loading took 14.9 GiB and 22.5 seconds",
    "torch.compile takes 31.2 s in total",
    "Readiness probe succeeded",
    "uvicorn.error: Uvicorn running on http://0.0.0.0:8000",
)
"""What engines print while they start well."""

CATEGORIES_OF_TEXTS: tuple[tuple[str, str], ...] = (
    (
        (
            "Node scale up in zones asia-east1-a associated with this pod failed: GCE out of resources. Pod is "
            "at risk of not being scheduled."
        ),
        "autoscaler",
    ),
    (
        (
            "Node scale up in zones us-a associated with this pod failed: GCE quota exceeded. Pod is at risk of "
            "not being scheduled."
        ),
        "autoscaler",
    ),
    ("Scale-up failed for group gpu-pool: InsufficientInstanceCapacity", "autoscaler"),
    (
        "Failed to create node: UnfulfillableCapacity: Unable to fulfill capacity due to your request configuration",
        "autoscaler",
    ),
    (
        (
            "creating nodeclaim, insufficient capacity, with fleet error(s), InsufficientInstanceCapacity: We "
            "currently do not have sufficient p5.48xlarge capacity"
        ),
        "autoscaler",
    ),
    (
        (
            "0/10 nodes are available: 2 Insufficient nvidia.com/gpu, 8 node(s) didn't match Pod's node "
            "affinity/selector. preemption: 0/10 nodes are available: 2 No preemption victims found for incoming "
            "pod, 8 Preemption is not helpful for scheduling."
        ),
        "resource",
    ),
    ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu, 1 Insufficient memory.", "resource"),
    (
        (
            "0/1 nodes are available: 1 Insufficient amd.com/gpu. preemption: 0/1 nodes are available: 1 No "
            "preemption victims found for incoming pod."
        ),
        "device-plugin",
    ),
    (
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint "
            "{node.cloudprovider.kubernetes.io/uninitialized: true}, 2 node(s) had untolerated taint "
            "{nvidia.com/gpu: }."
        ),
        "policy",
    ),
    ("0/3 nodes are available: 3 node(s) were unschedulable.", "policy"),
    ("0/4 nodes are available: 4 Insufficient hugepages-2Mi.", "resource"),
    (
        (
            "0/5 nodes are available: 5 node(s) didn't match pod affinity/anti-affinity rules, 5 node(s) didn't "
            "match pod anti-affinity rules."
        ),
        "topology",
    ),
    ("0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules.", "topology"),
    (
        (
            "0/5 nodes are available: 2 node(s) didn't match pod topology spread constraints, 3 node(s) were "
            "unschedulable."
        ),
        "topology",
    ),
    ("pod has unbound immediate PersistentVolumeClaims (repeated 2 times)", "dependency"),
    ('persistentvolumeclaim "data-x" not found', "dependency"),
    (
        (
            'error while running "VolumeBinding" filter plugin for pod "x": pod has unbound immediate '
            "PersistentVolumeClaims"
        ),
        "dependency",
    ),
    (
        "0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).",
        "dependency",
    ),
    ("0/1 nodes are available: 1 node(s) did not have enough free storage.", "dependency"),
    ("0/6 nodes are available: 6 waiting for resource claim to be allocated", "resource"),
    ("0/3 nodes are available: 3 resourceclaim not available on the node.", "resource"),
    ("Insufficient nvidia.com/gpu", "resource"),
    ("pod group is not ready, 2 Pending, 4 minAvailable", "gated"),
    ("PodGroup default/x: 3 pods pending, minMember 4 not reached", "gated"),
    ("gang scheduling: not enough pods: rejected by podgroup", "gated"),
    ("Workload has been queued: ClusterQueue is full", "gated"),
    ("Waiting for quota", "gated"),
    ("LocalQueue lq is stopped", "policy"),
    ("ClusterQueue cq doesn't exist", "policy"),
    (
        (
            "Workload requested 8 GPUs, but team-a quota is 4 GPUs, while 4 GPUs are already allocated for "
            "non-preemptible pods."
        ),
        "quota",
    ),
    ("0/4 nodes are available: 4 node(s) didn't have enough resources: GPUs.", "resource"),
    ("topology: 3 node-group(s) didn't have enough resources: GPUs", "resource"),
    (
        (
            'pods "x" is forbidden: unable to validate against any security context constraint: [provider '
            "restricted: .spec.hostIPC]"
        ),
        "policy",
    ),
    (
        (
            'Error creating: pods "x" is forbidden: [minimum cpu usage per Container is 100m, but request is '
            "50m, maximum memory usage per Pod is 8Gi, but limit is 16Gi]"
        ),
        "quota",
    ),
    (
        (
            'Error creating: pods "x" is forbidden: cpu max limit to request ratio per Container is 2, but '
            "provided ratio is 4.000000"
        ),
        "quota",
    ),
    (
        (
            "error creating: exceeded quota: compute, requested: limits.memory=64Gi,requests.memory=64Gi, used: "
            "limits.memory=0,requests.memory=0, limited: limits.memory=32Gi,requests.memory=32Gi"
        ),
        "quota",
    ),
    ('admission webhook "vpod.kb.io" denied the request: queue is not set', "policy"),
    (
        (
            "0/8 nodes are available: 3 node(s) had untolerated taint {dedicated: ml}, 5 Insufficient cpu, 8 "
            "Insufficient nvidia.com/gpu. preemption: 0/8 nodes are available: 3 Preemption is not helpful for "
            "scheduling, 5 No preemption victims found for incoming pod."
        ),
        "resource",
    ),
    ("no available node, all node scores do not meet", "device-plugin"),
)
"""(text of a scheduler, a queue, an autoscaler or the API server; category)"""
