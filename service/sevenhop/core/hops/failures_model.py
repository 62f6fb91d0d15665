"""
Texts of engines, hubs and stores while a model is loaded (hop model).

Sources: vLLM 0.3 to 0.15, SGLang, TensorRT-LLM, TGI, Triton, NIM, transformers, huggingface_hub, safetensors, PyTorch,
NCCL, KServe's storage initializer, boto3, google-cloud-storage, azure-storage.
"""

from __future__ import annotations

_HUB = r"(?=[^\n]*(?:hugging ?face|\bhf\b|\bhf\.co|\bhub\b|resolve/|modelscope|\bmodel\b|\brepo))"
_STORE = r"(?=[^\n]*(?:\bs3\b|s3:|amazonaws|minio|bucket|\bgcs\b|gs://|googleapis|storage|azure|blob|hdfs|objects?\b|boto|ngc|nvcr))"

WORDS: tuple[tuple[str, str], ...] = (
    # Hubs and stores
    (
        "hf-gated",
        r"gatedrepoerror|not in the authorized list|awaiting (?:a )?review|ask for access|request access to the gated(?! repository\.? *$)"
        r"|gated ?repo[^\n]{0,80}\b403\b|accept the (?:licen[cs]e|conditions|terms)"
        rf"|{_HUB}\b403 (?:client error|forbidden)",
    ),
    (
        "hf-unauthorized",
        rf"{_HUB}(?:\b401\b|unauthorized|invalid (?:user )?(?:token|credentials)|authentication failed|token is (?:invalid|expired|not valid))"
        r"|must have access to it and be authenticated|please log ?in|huggingface-cli login|hf auth login"
        r"|invalid credentials in authorization header|localtokennotfounderror|hugging ?face[^\n]{0,30}authentication",
    ),
    ("artifact-rate-limit", rf"(?:{_HUB}|{_STORE})(?:\b429\b|too many requests|rate limit|slowdown|throttl)"),
    (
        "artifact-disk-full",
        r"no space left on device|errno 28|enospc|disk quota exceeded|not enough (?:free )?disk space|disk (?:is )?full"
        r"|insufficient (?:disk|storage) space",
    ),
    (
        "artifact-access-denied",
        rf"{_STORE}(?:access ?denied|invalidaccesskeyid|signaturedoesnotmatch|expiredtoken|unable to locate credentials"
        r"|nocredentials|partialcredentials|\b40[13]\b|forbidden|unauthorized|permission_?denied|authentication(?: ?failed| error)|does not have storage\.\S+"
        r"|authorization(?:permissionmismatch|failure)|authentication failed|could not (?:be )?automatically determine(?:d)? credentials)"
        r"|nocredentialserror|unable to locate credentials|accessdenied\b|invalidaccesskeyid|signaturedoesnotmatch|defaultcredentialserror"
        r"|could not automatically determine credentials|ngc_?(?:cli_)?api_?key[^\n]{0,60}(?:invalid|not|missing|required)",
    ),
    (
        "artifact-not-found",
        r"repositorynotfounderror|revisionnotfounderror|repository not found|revision not found|invalid rev id"
        r"|is not a (?:local folder and is not a )?valid model identifier|hf ?validation ?error|repo id must"
        r"|nosuch(?:bucket|key)|specified (?:key|bucket|blob|container|resource) does not exist|blobnotfound|containernotfound"
        r"|no such (?:bucket|object)|bucket (?:does not exist|not found)|no model found in"
        rf"|{_HUB}(?:404 (?:client error|not found)|resource '[^']*' not found)|{_STORE}(?:\b404\b|resource '[^']*' not found|nosuch|object not found)"
        r"|resource '[^']*' not found|pull model manifest|failed to fetch model\.",
    ),
    ("storage-uri", r"cannot recognize storage type|unsupported (?:storage|uri) (?:type|scheme)|storageuri[^\n]{0,60}(?:not supported|invalid|unsupported)|invalid (?:storage|model) uri|does not match any supported (?:storage )?(?:protocol|prefix)"),
    (
        "artifact-unreachable",
        r"couldn'?t connect to '?https?://|localentrynotfounderror|offlinemodeisenabled|offline mode is enabled|cannot reach https?://\S*(?:hugg|hf\.co)"
        r"|cannot find (?:the requested files|an appropriate cached)|outgoing traffic has been disabled"
        rf"|(?:{_HUB}|{_STORE})(?:max retries exceeded|connecttimeout|connection (?:error|refused|reset|timed out)|could not connect to the endpoint|endpointconnectionerror|read timed out|temporary failure in name resolution|name or service not known|\b50[234]\b (?:server error|bad gateway|service)|ssl(?:error|certverif))",
    ),
    # Files
    (
        "corrupt-weights",
        r"headertoo(?:large|small)|invalidheader|invalid ?json ?in ?header|checksum (?:mismatch|error|failed|verification)|(?:hash|sha256|md5|digest|etag)[^\n]{0,40}(?:mismatch|does not match|did not match|differ)"
        r"|consistency check failed|invalid load key|unpicklingerror|pytorchstreamreader failed|git-?lfs|lfs pointer|not a (?:valid )?(?:safetensors|zip|gguf|zip archive)"
        r"|corrupt(?:ed)?\b|error while deserializing header(?!: metadataincomplete)|invalid magic|bad magic number|gguf_init[^\n]{0,40}(?:invalid|fail)",
    ),
    ("incomplete-weights", r"metadataincompletebuffer|incomplete ?(?:read|buffer|download|metadata)|unexpected end of (?:file|data|stream)|unexpected eof|file (?:is )?truncated|truncated (?:file|shard|header)|ran out of input|\beoferror\b|file size mismatch|size of \S+ (?:is|does not match)[^\n]{0,30}expected"),
    (
        "missing-weights",
        r"cannot find any model weights|no (?:model )?weights? (?:files? )?found|no safetensors|does not appear to have (?:a file named|files? named|any)|error no file named|entrynotfounderror|entry not found"
        r"|no such file or directory:? '?[^\n']*(?:model|weight|config\.json|generation_config|safetensors|\.bin|\.gguf|checkpoint|snapshots|/mnt/|engine|tokenizer)"
        r"|can'?t load (?:the )?(?:model|config(?:uration)?|image processor|feature extractor) for|(?:weights?|model|checkpoint)(?: files?| path| director(?:y|ies))?[^\n]{0,80}(?:does not exist|not found|is empty|are missing)"
        r"|invalid repository id or local directory|unable to find (?:a )?(?:model|config) file|no (?:config\.json|files?) found (?:in|at)|filenotfounderror",
    ),
    ("tokenizer-missing", r"can'?t load (?:the )?tokenizer|unable to load (?:vocabulary|tokenizer)|tokenizer(?:\.json|\.model|_config\.json)? (?:not found|does not exist|is missing)|couldn'?t instantiate the backend tokenizer|tokenizer class \S+ does not exist|failed to load (?:the )?tokenizer"),
    ("weights-mismatch", r"weights were not initialized|missing key\(s\) in state_dict|unexpected key\(s\) in state_dict|size mismatch for|keyerror: '(?:model\.|lm_head|transformer\.|language_model|layers?\.)|there is no module or parameter named|shape mismatch|attempted to load weight|loaded_weight|mismatch(?:ed)? (?:shape|size)|tensor \S+ (?:has|had) (?:wrong )?shape"),
    ("trust-remote-code", r"(?:set(?:ting)?|pass(?:ing)?|allow|consider|us(?:e|ing)|requires?|without|need)[^\n]{0,80}trust[_-]remote[_-]code|contains custom code|requires you to execute|custom model not yet available|trust[_-]remote[_-]code[^\n]{0,20}(?:is )?(?:required|must be|to true)"),
    (
        "unknown-architecture",
        r"model architectures?[^\n]{0,120}(?:not supported|unsupported|failed to be inspected|no(?:t)? (?:been )?(?:implemented|registered))|does not recognize this architecture|unsupported (?:model )?architecture|unrecognized (?:model|configuration class)|unknown model (?:type|arch)|has no (?:vllm|sglang) implementation|model[_ ]type[^\n]{0,60}(?:not supported|unsupported|not recognized|unknown)|unsupported model(?: type|:| '|\b[^\n]{0,20}$)|unknown (?:model )?architecture|architecture \S+ (?:is )?not (?:supported|recognized|implemented)|should have a `?model_type`? key|model[^\n]{0,40}is not supported (?:by|in)",
    ),
    ("engine-build-mismatch", r"engine plan file|serialized with (?:a )?different version|incompatible (?:device|plan|engine)|engine (?:was )?(?:built|generated)[^\n]{0,60}(?:different|incompatible|another)|plan file is not compatible|(?:tensorrt|trt)[- _]?(?:llm)? version mismatch|serialization assertion|deserialize(?:cudaengine| the cuda engine)?[^\n]{0,40}fail|current version: [^\n]{0,20}serialized engine version"),
    ("adapter-failed", r"(?:loading|load) lora[^\n]{0,80}(?:fail|error)|lora rank \d+ is greater|lora[^\n]{0,60}(?:not found|not supported|unsupported|fail)|max_lora_rank"),
    # The engine
    (
        "kv-cache-too-small",
        r"larger than the maximum number of tokens that can be stored in (?:the )?kv cache|kv cache is needed, which is larger|estimated maximum model length is|kv cache[^\n]{0,80}(?:too small|not enough|insufficient|cannot (?:fit|hold))|(?:not enough|insufficient)[^\n]{0,40}(?:for|in) (?:the )?kv[- _]?cache|available kv cache memory \([^)]*\)[^\n]{0,60}(?:max|increas)|max_num_tokens[^\n]{0,60}kv cache",
    ),
    ("gpu-memory-held", r"free memory on device[^\n]*less than desired|error in memory profiling|initial free memory[^\n]*current free memory|gpus? (?:may be|is|are) (?:occupied|used) by other process|memory capacity is unbalanced|used by other processes\."),
    (
        "gpu-oom-at-load",
        r"no available memory for the cache blocks|not enough memory\. please try|mem-fraction-static|available kv cache memory: -|not enough (?:gpu )?memory to (?:load|hold|handle|serve)|cannot fit[^\n]{0,40}(?:weights?|model)|model (?:is )?too large|insufficient (?:gpu|device|video) memory|not enough memory to handle|weights? (?:do|does) not fit",
    ),
    ("gpu-oom", r"(?:cuda|hip|xpu|npu|gpu)[^\n]{0,20} (?:is )?out of memory|outofmemoryerror|cuda_error_out_of_memory|cudaerrormemoryallocation|cudamalloc[^\n]{0,40}(?:fail|out of memory)|cublas_status_alloc_failed|error code 2: out of memory|tried to allocate [\d.]+ [gmk]i?b|(?:cuda|cudnn|gpu) (?:memory|mem)[^\n]{0,20}exhausted|ggml_[^\n]{0,40}failed to allocate"),
    ("gpu-too-old", r"compute capability|no kernel image is available|is not compatible with the current pytorch installation|nokernelimage|minimum capability|(?:not supported|unsupported|only supported)[^\n]{0,60}(?:\bgpus? with|this gpu|current gpu|architecture sm|sm_?\d\d)|requires? (?:gpu )?(?:sm|compute) ?_?\d|does not support (?:bf16|bfloat16|fp8)|(?:bf16|bfloat16|fp8)[^\n]{0,40}not supported"),
    (
        "bad-parallelism",
        r"must be divisible by|(?:is )?not divisible by|(?:tensor|pipeline|data|expert)[- _]parallel(?:ism)?(?:[- _]size)?[^\n]{0,100}(?:larger|greater|exceed|more than|cannot|must|does not|not match|invalid|only)|world ?size[^\n]{0,100}(?:larger|greater|exceed|does not match|not equal|must|mismatch)|(?:required|requested) (?:number of )?gpus?[^\n]{0,60}(?:exceed|available)|number of (?:required )?gpus exceeds|tp[_ -]?size[^\n]{0,60}(?:must|larger|greater|divis|exceed)|total number of available gpus|mpi (?:world )?size[^\n]{0,40}(?:mismatch|not)|only \d+ gpus? (?:are |is )?(?:available|visible|found)",
    ),
    ("nim-no-profile", r"no (?:compatible|valid|matching|runnable|suitable) (?:model )?profiles?|could not find a (?:profile|model)[^\n]{0,40}(?:runnable|compatible)|profile[^\n]{0,60}not compatible|detected 0 compatible profile"),
    (
        "engine-config",
        r"greater than the derived max_model_len|max_model_len[^\n]{0,80}(?:greater|larger|exceed|smaller|must)|max_num_batched_tokens[^\n]{0,80}(?:smaller|must|greater|less)|\d+ validation errors? for \w+|unknown quantization|quantization (?:method|scheme)?[^\n]{0,60}(?:not supported|unknown|does not match|invalid|unsupported)|unsupported (?:dtype|quantization|kv cache|attention|load format)|(?:attention )?backend[^\n]{0,40}(?:not supported|invalid|not available)|max_seq_len[^\n]{0,60}(?:exceed|greater|larger)|rope_scaling[^\n]{0,40}(?:must|invalid|should)|context length[^\n]{0,60}(?:exceed|longer|greater|larger)|gpu_memory_utilization must|speculative[^\n]{0,60}(?:not supported|must|invalid)|chat template[^\n]{0,40}(?:not found|invalid|could not|does not exist)|max_position_embeddings|`?max_input_(?:length|tokens)`?[^\n]{0,40}must",
    ),
    ("shm-too-small", r"/dev/shm[^\n]{0,120}(?:no space|too small|fail|error|insufficient|not enough|increase|extend)|(?:no space|too small|fail|error)[^\n]{0,120}/dev/shm|out of shared memory|insufficient shared memory|unable to open shared memory|bus error[^\n]{0,60}(?:shared|shm)|error while (?:creating|attaching to) shared memory segment|shared memory[^\n]{0,40}(?:too small|insufficient|exhausted)"),
    ("nccl-timeout", r"watchdog caught collective|collective operation timeout|worknccl\(|nccl[^\n]{0,60}(?:timed? ?out|timeout)|allreduce[^\n]{0,30}tim(?:ed|e) ?out|heartbeat ?monitor[^\n]{0,60}(?:timeout|stuck|no progress)"),
    (
        "nccl-init",
        r"nccl[^\n]{0,40}(?:unhandled system error|internal error|remote (?:process|error)|invalid usage|invalid argument|error|broken pipe|warn[^\n]{0,60}(?:fail|error|refused|no socket))|nccl(?:system|internal|remote|invalidusage|invalidargument)error|tcpstore|dist(?:network|store|backend)error|rendezvous(?:connection|timeout|closed)\w*error|init_process_group|(?:gloo|nccl)[^\n]{0,60}(?:connect|refused|unreachable)|failed to (?:connect|recv|send)[^\n]{0,40}(?:rank|store|master|peer)|the (?:client|server) socket has (?:timed out|failed)|bootstrap :[^\n]{0,40}(?:no socket|fail)|(?:ucx|nixl|nvshmem|ibv_\w+|rdma|libfabric|ucp_\w+)[^\n]{0,80}(?:fail|error|refused|unreachable|timeout|timed out)",
    ),
    ("cuda-error", r"illegal memory access|device-side assert|unspecified launch failure|misaligned address|cuda(?: driver| runtime)? error|cublas_status_|cudnn_status_|acceleratorerror|cudaerror\w+|cuda_error_\w+|hip error"),
    ("compile-failed", r"torch\._(?:dynamo|inductor)[^\n]{0,80}(?:error|exc|fail)|inductorerror|backendcompilerfailed|failed to find c compiler|ptxas[^\n]{0,40}(?:fail|error|fatal)|triton[^\n]{0,40}compil(?:e|ation)[^\n]{0,20}(?:fail|error)|nvcc[^\n]{0,40}(?:not found|fail)|ninja[^\n]{0,40}(?:fail|error|required)|cuda graph capture[^\n]{0,40}fail|capture cuda graph failed|could not find nvcc"),
    ("no-serving-runtime", r"nosupportingruntime|no runtime found to support|runtimenotrecognized|runtime(?:disabled| \S+ (?:is disabled|not found|does not exist))|specified runtime[^\n]{0,40}(?:not|disabled)|unable to find backend|no supporting runtime"),
    ("model-load-failed", r"blockedbyfailedload|modelloadfailed|failedtoload|runtimeunhealthy|invalidpredictorspec|model (?:load(?:ing)?|server)[^\n]{0,20}failed|failed to load model|failed to load '[^']+' version"),
    # Never the reason
    ("worker-stuck", r"no available shared memory broadcast block"),
    (
        "engine-init-unexplained",
        r"engine ?core (?:initialization failed|failed to start|encountered a fatal)|engine (?:process )?(?:failed to start|initialization failed)|failed core proc|workerproc initialization failed|exception in (?:a )?background process|failed to load all models|shardcannotstart|shard \d+ failed to start|shard complete standard error|received sigquit from a child|usually means the child failed|scheduler hit an exception|rank \d+ (?:scheduler|worker) is dead|see root cause above|see stack trace (?:above|for root cause)|error: creating server|worker process \S* ?(?:died|failed)|application startup failed|childfailederror|child process \d+ (?:died|terminated)|worker failed with error|actor(?:died|unavailable)error|the actor died|raytaskerror|task was killed",
    ),
    ("engine-died", r"engine ?core encountered an issue|engine_?dead_?error|enginedead|background loop has errored|engine (?:loop|process|core)?\s*(?:is )?(?:dead|died|has died)|output handler failed|mqenginedead|see stack ?trace"),
    ("slow-load", r"startup probe (?:failed|errored)"),
)  # fmt: skip
"""(cause, words)"""
