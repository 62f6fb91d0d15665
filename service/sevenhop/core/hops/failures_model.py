"""
Texts of engines, hubs and stores while a model is loaded (hop model).

Sources: vLLM 0.3 to 0.15, SGLang, TensorRT-LLM, TGI, Triton, NIM, transformers, huggingface_hub, safetensors, PyTorch,
NCCL, KServe's storage initializer, boto3, google-cloud-storage, azure-storage.
"""

from __future__ import annotations

from sevenhop.core.hops.failures_words import Words

_HUB = (
    "hugging ?face",
    r"\bhf\b",
    r"\bhf\.co",
    r"\bhub\b",
    "resolve/",
    "modelscope",
    r"\bmodel\b",
    r"\brepo",
)
"""Texts about a model hub."""

_STORE = (
    r"\bs3\b",
    "s3:",
    "amazonaws",
    "minio",
    "bucket",
    r"\bgcs\b",
    "gs://",
    "googleapis",
    "storage",
    "azure",
    "blob",
    "hdfs",
    r"objects?\b",
    "boto",
    "ngc",
    "nvcr",
)
"""Texts about an object store."""

_HUB_OR_STORE = (*_HUB, *_STORE)

WORDS: tuple[Words, ...] = (
    # Hubs and stores
    Words(
        "hf-gated",
        (
            r"gatedrepoerror(?!.*\b401\b)",
            "not in the authorized list",
            "awaiting (?:a )?review",
            "ask for access",
            r"request access to the gated(?! repository\.? *$)",
            r"gated ?repo.{0,80}\b403\b",
            "accept the (?:licen[cs]e|conditions|terms)",
        ),
    ),
    Words(
        "hf-gated",
        (r"\b403 (?:client error|forbidden)",),
        near=_HUB,
    ),
    Words(
        "hf-unauthorized",
        (
            r"\b401 (?:client error|unauthorized)",
            r"(?:status(?:[ _]?code)?|error|http|code|response|returned)\W{0,3}401\b",
            r"\(401\)",
            "unauthorized",
            "invalid (?:user )?(?:token|credentials)",
            "authentication failed",
            "token is (?:invalid|expired|not valid)",
        ),
        near=_HUB,
    ),
    Words(
        "hf-unauthorized",
        (
            "must have access to it and be authenticated",
            "please log ?in",
            "huggingface-cli login",
            "hf auth login",
            "invalid credentials in authorization header",
            "localtokennotfounderror",
            r"hugging ?face.{0,30}authentication",
        ),
    ),
    Words(
        "artifact-rate-limit",
        (
            r"\b429 (?:client error|too many)",
            r"(?:status(?:[ _]?code)?|error|http|code|response|returned)\W{0,3}429\b",
            "too many requests",
            "rate limit",
            "slowdown",
            "throttl",
        ),
        near=_HUB_OR_STORE,
    ),
    Words(
        "artifact-disk-full",
        (
            "no space left on device",
            "errno 28",
            "enospc",
            "disk quota exceeded",
            "not enough (?:free )?disk space",
            "disk (?:is )?full",
            "insufficient (?:disk|storage) space",
        ),
    ),
    Words(
        "artifact-access-denied",
        (
            "access ?denied",
            "invalidaccesskeyid",
            "signaturedoesnotmatch",
            "expiredtoken",
            "unable to locate credentials",
            "nocredentials",
            "partialcredentials",
            r"\b40[13] (?:client error|unauthorized|forbidden|get|post|head)",
            r"(?:status(?:[ _]?code)?|error|http|code|response|returned)\W{0,3}40[13]\b",
            r"\(40[13]\)",
            "forbidden",
            "unauthorized",
            "permission_?denied",
            "authentication(?: ?failed| error)",
            r"does not have storage\.\S+",
            "authorization(?:permissionmismatch|failure)",
            "authentication failed",
            "could not (?:be )?automatically determine(?:d)? credentials",
        ),
        near=_STORE,
    ),
    Words(
        "artifact-access-denied",
        (
            "nocredentialserror",
            "unable to locate credentials",
            r"accessdenied\b",
            "invalidaccesskeyid",
            "signaturedoesnotmatch",
            "defaultcredentialserror",
            "could not automatically determine credentials",
            r"ngc_?(?:cli_)?api_?key.{0,60}(?:invalid|not|missing|required)",
        ),
    ),
    Words(
        "artifact-not-found",
        (
            "repositorynotfounderror",
            "revisionnotfounderror",
            "repository not found",
            "revision not found",
            "invalid rev id",
            "is not a (?:local folder and is not a )?valid model identifier",
            "hf ?validation ?error",
            "repo id must",
            "nosuch(?:bucket|key)",
            "specified (?:key|bucket|blob|container|resource) does not exist",
            "blobnotfound",
            "containernotfound",
            "no such (?:bucket|object)",
            "bucket (?:does not exist|not found)",
            "no model found in",
            "resource '[^']*' not found",
            "pull model manifest",
            r"failed to fetch model\.",
        ),
    ),
    Words(
        "artifact-not-found",
        (
            "404 (?:client error|not found)",
            "resource '[^']*' not found",
        ),
        near=_HUB,
    ),
    Words(
        "artifact-not-found",
        (
            r"\b404\b",
            "resource '[^']*' not found",
            "nosuch",
            "object not found",
        ),
        near=_STORE,
    ),
    Words(
        "storage-uri",
        (
            "cannot recognize storage type",
            "unsupported (?:storage|uri) (?:type|scheme)",
            r"storageuri.{0,60}(?:not supported|invalid|unsupported)",
            "invalid (?:storage|model) uri",
            "does not match any supported (?:storage )?(?:protocol|prefix)",
        ),
    ),
    Words(
        "artifact-unreachable",
        (
            "couldn'?t connect to '?https?://",
            "localentrynotfounderror",
            "offlinemodeisenabled",
            "offline mode is enabled",
            r"cannot reach https?://\S*(?:hugg|hf\.co)",
            "cannot find (?:the requested files|an appropriate cached)",
            "outgoing traffic has been disabled",
        ),
    ),
    Words(
        "artifact-unreachable",
        (
            "max retries exceeded",
            "connecttimeout",
            "connection (?:error|refused|reset|timed out)",
            "could not connect to the endpoint",
            "endpointconnectionerror",
            "read timed out",
            "temporary failure in name resolution",
            "name or service not known",
            r"\b50[234]\b (?:server error|bad gateway|service)",
            "ssl(?:error|certverif)",
        ),
        near=_HUB_OR_STORE,
    ),
    # Files
    Words(
        "corrupt-weights",
        (
            "headertoo(?:large|small)",
            "invalidheader",
            "invalid ?json ?in ?header",
            "checksum (?:mismatch|error|failed|verification)",
            r"(?:hash|sha256|md5|digest|etag).{0,40}(?:mismatch|does not match|did not match|differ)",
            "consistency check failed",
            "invalid load key",
            "unpicklingerror",
            "pytorchstreamreader failed",
            "git-?lfs",
            "lfs pointer",
            "not a (?:valid )?(?:safetensors|zip|gguf|zip archive)",
            r"corrupt(?:ed)?\b",
            "error while deserializing header(?!: metadataincomplete)",
            "invalid magic",
            "bad magic number",
            r"gguf_init.{0,40}(?:invalid|fail)",
        ),
    ),
    Words(
        "incomplete-weights",
        (
            "metadataincompletebuffer",
            "incomplete ?(?:read|buffer|download|metadata)",
            "unexpected end of (?:file|data|stream)",
            "unexpected eof",
            "file (?:is )?truncated",
            "truncated (?:file|shard|header)",
            "ran out of input",
            r"\beoferror\b",
            "file size mismatch",
            r"size of \S+ (?:is|does not match).{0,30}expected",
        ),
    ),
    Words(
        "missing-weights",
        (
            "unable to load weights from",
            "path contains no models",
            "cannot find any model weights",
            "no (?:model )?weights? (?:files? )?found",
            "no safetensors",
            "does not appear to have (?:a file named|files? named|any)",
            "error no file named",
            "entrynotfounderror",
            "entry not found",
            (
                r"no such file or directory:? '?[^\n']*(?:model|weight|config\.json|generation_config|"
                r"safetensors|\.bin|\.gguf|checkpoint|snapshots|/mnt/|engine|tokenizer)"
            ),
            "can'?t load (?:the )?(?:model|config(?:uration)?|image processor|feature extractor) for",
            (
                r"(?:weights?|model|checkpoint)(?: files?| path| director(?:y|"
                r"ies))?.{0,80}(?:does not exist|not found|is empty|are missing)"
            ),
            "invalid repository id or local directory",
            "unable to find (?:a )?(?:model|config) file",
            r"no (?:config\.json|files?) found (?:in|at)",
            "filenotfounderror",
        ),
    ),
    Words(
        "tokenizer-missing",
        (
            "can'?t load (?:the )?tokenizer",
            "unable to load (?:vocabulary|tokenizer)",
            r"tokenizer(?:\.json|\.model|_config\.json)? (?:not found|does not exist|is missing)",
            "couldn'?t instantiate the backend tokenizer",
            r"tokenizer class \S+ does not exist",
            "failed to load (?:the )?tokenizer",
        ),
    ),
    Words(
        "weights-mismatch",
        (
            r"shape '\[[^\]]*\]' is invalid for input",
            r"the size of tensor a \(\d+\) must match",
            "weights were not initialized",
            r"missing key\(s\) in state_dict",
            r"unexpected key\(s\) in state_dict",
            "size mismatch for",
            r"keyerror: '(?:model\.|lm_head|transformer\.|language_model|layers?\.)",
            "there is no module or parameter named",
            "shape mismatch",
            "attempted to load weight",
            "loaded_weight",
            "mismatch(?:ed)? (?:shape|size)",
            r"tensor \S+ (?:has|had) (?:wrong )?shape",
        ),
    ),
    Words(
        "trust-remote-code",
        (
            (
                r"(?:set(?:ting)?|pass(?:ing)?|allow|consider|us(?:e|ing)|requires?|without|"
                r"need).{0,80}trust[_-]remote[_-]code"
            ),
            "contains custom code",
            "requires you to execute",
            "custom model not yet available",
            r"trust[_-]remote[_-]code.{0,20}(?:is )?(?:required|must be|to true)",
        ),
    ),
    Words(
        "unknown-architecture",
        (
            r"keyerror: '[a-z]+\d[\w-]*'",
            (
                r"model architectures?.{0,120}(?:not supported|unsupported|failed to be inspected|"
                r"no(?:t)? (?:been )?(?:implemented|registered))"
            ),
            "does not recognize this architecture",
            "unsupported (?:model )?architecture",
            "unrecognized (?:model|configuration class)",
            "unknown model (?:type|arch)",
            "has no (?:vllm|sglang) implementation",
            r"model[_ ]type.{0,60}(?:not supported|unsupported|not recognized|unknown)",
            r"unsupported model(?: type|:| '|\b.{0,20}$)",
            "unknown (?:model )?architecture",
            r"architecture \S+ (?:is )?not (?:supported|recognized|implemented)",
            "should have a `?model_type`? key",
            r"model.{0,40}is not supported (?:by|in)",
        ),
    ),
    Words(
        "engine-build-mismatch",
        (
            "engine plan file",
            "serialized with (?:a )?different version",
            "incompatible (?:device|plan|engine)",
            r"engine (?:was )?(?:built|generated).{0,60}(?:different|incompatible|another)",
            "plan file is not compatible",
            "(?:tensorrt|trt)[- _]?(?:llm)? version mismatch",
            "serialization assertion",
            r"deserialize(?:cudaengine| the cuda engine)?.{0,40}fail",
            r"current version: .{0,20}serialized engine version",
        ),
    ),
    Words(
        "adapter-failed",
        (
            r"(?:loading|load) lora.{0,80}(?:fail|error)",
            r"lora rank \d+ is greater",
            r"lora.{0,60}(?:not found|not supported|unsupported|fail)",
            "max_lora_rank",
        ),
    ),
    # The engine
    Words(
        "kv-cache-too-small",
        (
            "larger than the maximum number of tokens that can be stored in (?:the )?kv cache",
            "kv cache is needed, which is larger",
            "estimated maximum model length is",
            r"kv cache.{0,80}(?:too small|not enough|insufficient|cannot (?:fit|hold))",
            r"(?:not enough|insufficient).{0,40}(?:for|in) (?:the )?kv[- _]?cache",
            r"available kv cache memory \([^)]*\).{0,60}(?:max|increas)",
            r"max_num_tokens.{0,60}kv cache",
        ),
    ),
    Words(
        "gpu-memory-held",
        (
            r"free memory on device.*less than desired",
            "error in memory profiling",
            r"initial free memory.*current free memory",
            "gpus? (?:may be|is|are) (?:occupied|used) by other process",
            "memory capacity is unbalanced",
            r"used by other processes\.",
        ),
    ),
    Words(
        "gpu-oom-at-load",
        (
            "no available memory for the cache blocks",
            r"not enough memory\. please try",
            "mem-fraction-static",
            "available kv cache memory: -",
            "not enough (?:gpu )?memory to (?:load|hold|handle|serve)",
            r"cannot fit.{0,40}(?:weights?|model)",
            "model (?:is )?too large",
            "insufficient (?:gpu|device|video) memory",
            "not enough memory to handle",
            "weights? (?:do|does) not fit",
        ),
    ),
    Words(
        "gpu-oom",
        (
            r"(?:cuda|hip|xpu|npu|gpu).{0,20} (?:is )?out of memory",
            "outofmemoryerror",
            "cuda_error_out_of_memory",
            "cudaerrormemoryallocation",
            r"cudamalloc.{0,40}(?:fail|out of memory)",
            "cublas_status_alloc_failed",
            "error code 2: out of memory",
            r"tried to allocate [\d.]+ [gmk]i?b",
            r"(?:cuda|cudnn|gpu) (?:memory|mem).{0,20}exhausted",
            r"ggml_.{0,40}failed to allocate",
        ),
    ),
    Words(
        "gpu-too-old",
        (
            "compute capability",
            "no kernel image is available",
            "is not compatible with the current pytorch installation",
            "nokernelimage",
            "minimum capability",
            (
                r"(?:not supported|unsupported|only supported).{0,60}(?:\bgpus? with|this gpu|current gpu|"
                r"architecture sm|sm_?\d\d)"
            ),
            r"requires? (?:gpu )?(?:sm|compute) ?_?\d",
            "does not support (?:bf16|bfloat16|fp8)",
            r"(?:bf16|bfloat16|fp8).{0,40}not supported",
        ),
    ),
    Words(
        "bad-parallelism",
        (
            "mpisize",
            "must be divisible by",
            "(?:is )?not divisible by",
            (
                r"(?:tensor|pipeline|data|expert)[- _]parallel(?:ism)?(?:[- _]size)?.{0,100}(?:larger|"
                r"greater|exceed|more than|cannot|must|does not|not match|invalid|only)"
            ),
            r"world ?size.{0,100}(?:larger|greater|exceed|does not match|not equal|must|mismatch)",
            r"(?:required|requested) (?:number of )?gpus?.{0,60}(?:exceed|available)",
            "number of (?:required )?gpus exceeds",
            r"tp[_ -]?size.{0,60}(?:must|larger|greater|divis|exceed)",
            "total number of available gpus",
            r"mpi (?:world )?size.{0,40}(?:mismatch|not)",
            r"only \d+ gpus? (?:are |is )?(?:available|visible|found)",
        ),
    ),
    Words(
        "nim-no-profile",
        (
            "no (?:compatible|valid|matching|runnable|suitable) (?:model )?profiles?",
            r"could not find a (?:profile|model).{0,40}(?:runnable|compatible)",
            r"profile.{0,60}not compatible",
            "detected 0 compatible profile",
        ),
    ),
    Words(
        "engine-config",
        (
            "longer than the maximum model length",
            r"(?<!-)--[a-z][\w-]{1,60}`?.{0,40}(?:not supported|is incompatible)",
            "greater than the derived max_model_len",
            r"max_model_len.{0,80}(?:greater|larger|exceed|smaller|must)",
            r"max_num_batched_tokens.{0,80}(?:smaller|must|greater|less)",
            r"\d+ validation errors? for \w+",
            "unknown quantization",
            r"quantization (?:method|scheme)?.{0,60}(?:not supported|unknown|does not match|invalid|unsupported)",
            "unsupported (?:dtype|quantization|kv cache|attention|load format)",
            r"(?:attention )?backend.{0,40}(?:not supported|invalid|not available)",
            r"max_seq_len.{0,60}(?:exceed|greater|larger)",
            r"rope_scaling.{0,40}(?:must|invalid|should)",
            r"context length.{0,60}(?:exceed|longer|greater|larger)",
            "gpu_memory_utilization must",
            r"speculative.{0,60}(?:not supported|must|invalid)",
            r"chat template.{0,40}(?:not found|invalid|could not|does not exist)",
            "max_position_embeddings",
            r"`?max_input_(?:length|tokens)`?.{0,40}must",
        ),
    ),
    Words(
        "shm-too-small",
        (
            r"dev/shm.{0,120}(?:no space|too small|fail|error|insufficient|not enough|increase|extend)",
            r"(?:no space|too small|fail|error).{0,120}/dev/shm",
            "out of shared memory",
            "insufficient shared memory",
            "unable to open shared memory",
            r"bus error.{0,60}(?:shared|shm)",
            "error while (?:creating|attaching to) shared memory segment",
            r"shared memory.{0,40}(?:too small|insufficient|exhausted)",
        ),
    ),
    Words(
        "nccl-timeout",
        (
            "watchdog caught collective",
            "collective operation timeout",
            r"worknccl\(",
            r"nccl.{0,60}(?:timed? ?out|timeout)",
            r"allreduce.{0,30}tim(?:ed|e) ?out",
            r"heartbeat ?monitor.{0,60}(?:timeout|stuck|no progress)",
        ),
    ),
    Words(
        "nccl-init",
        (
            "nccl warn.{0,80}(?:no usable|unable|could not)",
            (
                r"nccl.{0,40}(?:unhandled system error|internal error|remote (?:process|error)|"
                r"invalid usage|invalid argument|error|broken pipe|warn.{0,60}(?:fail|error|refused|"
                r"no socket))"
            ),
            "nccl(?:system|internal|remote|invalidusage|invalidargument)error",
            "tcpstore",
            "dist(?:network|store|backend)error",
            r"rendezvous(?:connection|timeout|closed)\w*error",
            "init_process_group",
            r"(?:gloo|nccl).{0,60}(?:connection closed|connect failed|refused|reset by peer|unreachable)",
            r"failed to (?:connect|recv|send).{0,40}(?:rank|store|master|peer)",
            "the (?:client|server) socket has (?:timed out|failed)",
            r"bootstrap :.{0,40}(?:no socket|fail)",
            (
                r"(?:ucx|nixl|nvshmem|ibv_\w+|rdma|libfabric|ucp_\w+).{0,80}(?:fail|error|refused|"
                r"unreachable|timeout|timed out)"
            ),
        ),
    ),
    Words(
        "cuda-error",
        (
            "illegal memory access",
            "device-side assert",
            "unspecified launch failure",
            "misaligned address",
            "cuda(?: driver| runtime)? error",
            "cublas_status_",
            "cudnn_status_",
            "acceleratorerror",
            r"cudaerror\w+",
            r"cuda_error_\w+",
            "hip error",
        ),
    ),
    Words(
        "compile-failed",
        (
            r"torch\._(?:dynamo|inductor).{0,80}(?:error|exc|fail)",
            "inductorerror",
            "backendcompilerfailed",
            "failed to find c compiler",
            r"ptxas.{0,40}(?:fail|error|fatal)",
            r"triton.{0,40}compil(?:e|ation).{0,20}(?:fail|error)",
            r"nvcc.{0,40}(?:not found|fail)",
            r"ninja.{0,40}(?:fail|error|required)",
            r"cuda graph capture.{0,40}fail",
            "capture cuda graph failed",
            "could not find nvcc",
        ),
    ),
    Words(
        "no-serving-runtime",
        (
            "nosupportingruntime",
            "no runtime found to support",
            "runtimenotrecognized",
            r"runtime(?:disabled| \S+ (?:is disabled|not found|does not exist))",
            r"specified runtime.{0,40}(?:not|disabled)",
            "unable to find backend",
            "no supporting runtime",
        ),
    ),
    Words(
        "model-load-failed",
        (
            "failed to load the model config",
            "blockedbyfailedload",
            "modelloadfailed",
            "failedtoload",
            "runtimeunhealthy",
            "invalidpredictorspec",
            r"model (?:load(?:ing)?|server).{0,20}failed",
            "failed to load model",
            "failed to load '[^']+' version",
        ),
    ),
    # Never the reason
    Words(
        "artifact-fetch-unexplained",
        (
            "failed to download (?:the )?(?:model|weights|file)",
            "(?:error|failure) (?:while )?downloading",
            "download(?:ing)? .{0,60} failed",
        ),
    ),
    Words(
        "worker-stuck",
        ("no available shared memory broadcast block",),
    ),
    Words(
        "engine-init-unexplained",
        (
            "engine ?core (?:initialization failed|failed to start|encountered a fatal)",
            "engine (?:process )?(?:failed to start|initialization failed)",
            "failed core proc",
            "workerproc initialization failed",
            "exception in (?:a )?background process",
            "failed to load all models",
            "shardcannotstart",
            r"shard \d+ failed to start",
            "shard complete standard error",
            "received sigquit from a child",
            "usually means the child failed",
            "scheduler hit an exception",
            r"rank \d+ (?:scheduler|worker) is dead",
            "see root cause above",
            "see stack trace (?:above|for root cause)",
            "error: creating server",
            r"worker process \S* ?(?:died|failed)",
            "application startup failed",
            "childfailederror",
            r"child process \d+ (?:died|terminated)",
            "worker failed with error",
            "actor(?:died|unavailable)error",
            "the actor died",
            "raytaskerror",
            "task was killed",
        ),
    ),
    Words(
        "engine-died",
        (
            "engine ?core encountered an issue",
            "engine_?dead_?error",
            "enginedead",
            "background loop has errored",
            r"engine (?:loop|process|core)?\s*(?:is )?(?:dead|died|has died)",
            "output handler failed",
            "mqenginedead",
            "see stack ?trace",
        ),
    ),
    Words(
        "slow-load",
        ("startup probe (?:failed|errored)",),
    ),
)
