"""Causes on the hop model, and what frameworks say on the hops service and gateway."""

from __future__ import annotations

from sevenhop.core.hops.cause import Cause, Strength, table
from sevenhop.core.hops.diagnosis import Category
from sevenhop.core.subject import Hop

_M = Hop.MODEL
_GENERIC = Strength.GENERIC
_SYMPTOM = Strength.SYMPTOM
_UNEXPLAINED = Strength.UNEXPLAINED
_CONSEQUENCE = Strength.CONSEQUENCE

MODEL_CAUSES: dict[str, Cause] = table(
    # Before "no space left on device" is read as a full disk.
    Cause(
        "shm-too-small",
        _M,
        Category.ENGINE,
        "Shared memory (/dev/shm) is too small for the workers.",
        ("Mount a memory-backed emptyDir at /dev/shm.",),
    ),
    # model-artifact
    Cause(
        "hf-gated",
        _M,
        Category.MODEL_ARTIFACT,
        "The hub knows the token, but its owner has not been given access to the model.",
        ("Accept the licence, or ask for access, with the account that owns the token.",),
    ),
    Cause(
        "hf-unauthorized",
        _M,
        Category.MODEL_ARTIFACT,
        "The hub refuses: there is no token, or it is not valid.",
        (
            "Set `HF_TOKEN` from a Secret, and check that it has not expired.",
            "Check the spelling of the model id: a model that does not exist gives the same answer.",
        ),
    ),
    Cause(
        "artifact-access-denied",
        _M,
        Category.MODEL_ARTIFACT,
        "The store refuses the credentials for the model's files, or there are none.",
        (("Check the service account or the Secret that the storage initializer uses, and its rights on the bucket."),),
    ),
    Cause(
        "artifact-rate-limit",
        _M,
        Category.MODEL_ARTIFACT,
        "The hub limits how often the model may be fetched.",
        ("Use a token, a mirror or a shared cache; start fewer replicas at once.",),
    ),
    Cause(
        "artifact-disk-full",
        _M,
        Category.MODEL_ARTIFACT,
        "There is no room left for the model's files.",
        (
            (
                "Enlarge the volume or the ephemeral storage; compare it with the size of the model, twice while "
                "it is unpacked."
            ),
        ),
    ),
    Cause(
        "artifact-unreachable",
        _M,
        Category.MODEL_ARTIFACT,
        "The model's store cannot be reached.",
        (
            "Check egress, proxy and DNS from the pod.",
            "If the cluster is closed, mount the weights and set the engine offline.",
        ),
    ),
    Cause(
        "artifact-not-found",
        _M,
        Category.MODEL_ARTIFACT,
        "The model, its revision or its path does not exist in the store.",
        ("Check the model id and revision, or `storageUri`.",),
    ),
    Cause(
        "corrupt-weights",
        _M,
        Category.MODEL_ARTIFACT,
        "A file of the model is damaged, or is no weights file at all.",
        (
            "Compare sizes and checksums with the store; a git-lfs pointer or an HTML page is the usual reason.",
            "Fetch that file again.",
        ),
    ),
    Cause(
        "incomplete-weights",
        _M,
        Category.MODEL_ARTIFACT,
        "A file of the model is cut off.",
        (
            "Delete it and fetch it again; check the free space of the volume.",
            "See whether two pods write to one cache.",
        ),
    ),
    Cause(
        "missing-weights",
        _M,
        Category.MODEL_ARTIFACT,
        "The model's files are not where the engine looks.",
        ("Check what the storage initializer has written, the mount path and sub-path, and the file format.",),
    ),
    Cause(
        "weights-mismatch",
        _M,
        Category.MODEL_ARTIFACT,
        "The weights do not belong to this configuration of the model.",
        ("Compare the index file with the files; take config and weights from one revision.",),
    ),
    Cause(
        "trust-remote-code",
        _M,
        Category.MODEL_ARTIFACT,
        "The model brings code of its own, which the engine may not run.",
        ("Review the code, then set `--trust-remote-code`, pinned to a revision.",),
    ),
    Cause(
        "unknown-architecture",
        _M,
        Category.MODEL_ARTIFACT,
        "The engine does not know the model's architecture.",
        ("Use an engine or transformers version that supports it; compare with the versions in the image.",),
    ),
    Cause(
        "tokenizer-missing",
        _M,
        Category.MODEL_ARTIFACT,
        "The model's tokenizer cannot be loaded.",
        ("Check that the tokenizer's files are there, and complete.",),
    ),
    Cause(
        "engine-build-mismatch",
        _M,
        Category.MODEL_ARTIFACT,
        "The compiled engine was built for another GPU or another version.",
        ("Build the engine on this GPU with this TensorRT version.",),
    ),
    Cause(
        "storage-uri",
        _M,
        Category.MODEL_ARTIFACT,
        "The storage address of the model is not understood.",
        ("Correct `storageUri`: its scheme and form.",),
    ),
    Cause(
        "adapter-failed",
        _M,
        Category.MODEL_ARTIFACT,
        "A LoRA adapter cannot be loaded.",
        ("Compare the adapter's rank and base model with the engine's limits.",),
    ),
    Cause(
        "model-load-failed",
        _M,
        Category.MODEL_ARTIFACT,
        "The operator reports that the model could not be loaded, without the reason.",
        ("Read the predictor's previous log: the operator looks at the first pod only, and not at OOMKilled.",),
        _GENERIC,
    ),
    Cause(
        "artifact-fetch-unexplained",
        _M,
        Category.MODEL_ARTIFACT,
        "The step that fetches the model fails, and nothing that is known says why.",
        ("Read its previous log: `kubectl logs --previous -c` with the init container's name.",),
        _SYMPTOM,
    ),
    Cause(
        "artifact-fetching",
        _M,
        Category.MODEL_ARTIFACT,
        "The model's files are still being fetched.",
        ("Compare with this model's usual time; look at the log of the init container.",),
        _SYMPTOM,
    ),
    # engine
    Cause(
        "kv-cache-too-small",
        _M,
        Category.ENGINE,
        "The GPU memory left for the KV cache is too small for the context length.",
        (
            "Lower `--max-model-len`.",
            "Raise `--gpu-memory-utilization`, or use more GPUs (tensor parallel).",
        ),
    ),
    Cause(
        "gpu-memory-held",
        _M,
        Category.ENGINE,
        "Another process holds memory of this GPU; the model's size is not the reason.",
        ("Find the other process or pod on this GPU: time-slicing, a pod that still terminates, a zombie.",),
    ),
    Cause(
        "gpu-oom-at-load",
        _M,
        Category.ENGINE,
        "The weights leave no GPU memory for the KV cache.",
        (
            "Use more GPUs (tensor parallel), a smaller or a quantised model.",
            "Raise `--gpu-memory-utilization`, if nothing else uses the GPU.",
        ),
    ),
    Cause(
        "gpu-oom",
        _M,
        Category.ENGINE,
        "The GPU's memory is not enough (CUDA out of memory).",
        ("Compare the model's size with the GPU's memory: more GPUs, quantise, lower `--max-model-len` or batch.",),
    ),
    Cause(
        "gpu-too-old",
        _M,
        Category.ENGINE,
        "The GPU is too old for what the model asks for.",
        ("Select nodes by GPU product, or use `--dtype=half` or another quantisation.",),
    ),
    Cause(
        "bad-parallelism",
        _M,
        Category.ENGINE,
        "The parallel sizes do not fit the model or the number of GPUs.",
        ("Choose a tensor-parallel size that divides the attention heads and is not above the pod's GPUs.",),
    ),
    Cause(
        "engine-config",
        _M,
        Category.ENGINE,
        "The engine refuses its configuration for this model.",
        ("Change the setting named in the text.",),
    ),
    Cause(
        "no-serving-runtime",
        _M,
        Category.CONFIG,
        "No serving runtime supports this model's format, or the named one does not exist.",
        ("Compare the model's format with the serving runtimes.",),
    ),
    Cause(
        "nim-no-profile",
        _M,
        Category.ENGINE,
        "No profile of this NIM fits the GPUs of the node.",
        ("List the profiles; choose another GPU product or count.",),
    ),
    Cause(
        "nccl-timeout",
        _M,
        Category.ENGINE,
        "A collective operation between ranks timed out.",
        (
            "Look for an XID on any rank's node first.",
            "Then set `NCCL_DEBUG=INFO`; check `NCCL_SOCKET_IFNAME`, P2P and /dev/shm.",
        ),
    ),
    Cause(
        "nccl-init",
        _M,
        Category.ENGINE,
        "The ranks cannot find or reach each other.",
        ("Check that every rank runs, that the ports are open, /dev/shm, and `NCCL_SOCKET_IFNAME`.",),
    ),
    Cause(
        "cuda-error",
        _M,
        Category.ENGINE,
        "The engine fails with a CUDA error of its own making.",
        ("Look for an XID 13 or 31 on the node: alone it is the program; twice on one GPU, test the hardware.",),
    ),
    Cause(
        "compile-failed",
        _M,
        Category.ENGINE,
        "The engine cannot compile its kernels or graphs.",
        ("Try `--enforce-eager`; check compiler and cache folder in the image.",),
    ),
    Cause(
        "worker-stuck",
        _M,
        Category.ENGINE,
        "A worker of the engine does not answer: it hangs, or still compiles.",
        ("If it stays for minutes, look at the other ranks.",),
        _SYMPTOM,
    ),
    Cause(
        "engine-init-unexplained",
        _M,
        Category.ENGINE,
        "The engine did not start, and this text never says why.",
        ("Look further up in the log for the first ERROR or exception of the engine's process.",),
        _SYMPTOM,
    ),
    Cause(
        "engine-died",
        _M,
        Category.ENGINE,
        "The engine's process died under the API server; this text never says why.",
        ("Look further up in the log for the first exception of the engine's process.",),
        _SYMPTOM,
    ),
    Cause(
        "slow-load",
        _M,
        Category.PROBE,
        "The model is still loading: the server's socket is not open yet.",
        ("Without restarts this is progress; with restarts raise the startup probe's threshold.",),
        _GENERIC,
    ),
    Cause(
        "not-ready-unexplained",
        _M,
        Category.PROBE,
        "The container runs past its start-up budget and is not ready, and nothing says why.",
        ("Read its log; compare with this model's usual load time.",),
        _UNEXPLAINED,
    ),
    Cause(
        "ray-capacity",
        Hop.SCHEDULING,
        Category.RESOURCE,
        "Ray waits for resources that its cluster does not have.",
        ("Look at the Ray worker pods: one is pending or missing.",),
        _SYMPTOM,
    ),
    Cause(
        "operator-reported",
        _M,
        Category.UNKNOWN,
        "The framework's operator reports a failure that Sevenhop cannot read.",
        ("Read the operator's condition, and the pods of the workload.",),
        _UNEXPLAINED,
    ),
)

SERVING_CAUSES: dict[str, Cause] = table(
    Cause(
        "port-mismatch",
        Hop.SERVICE,
        Category.CONFIG,
        "The Service's target port is not the port that the container listens on.",
        ("Correct `targetPort`.",),
    ),
    Cause(
        "by-design-not-ready",
        Hop.SERVICE,
        Category.NONE,
        "A Ray worker without a Serve replica is not ready by design.",
        ("Nothing: it is normal when there are fewer replicas than workers.",),
        _CONSEQUENCE,
    ),
    Cause(
        "not-ready",
        Hop.SERVICE,
        Category.PROBE,
        "The readiness probe fails, so the pod gets no requests.",
        ("If it was ready before, look for a dead engine; else it is loading.",),
        _CONSEQUENCE,
    ),
    Cause(
        "no-ready-endpoints",
        Hop.SERVICE,
        Category.PROBE,
        "The Service selects pods, and none is ready.",
        ("Walk back: model, then pod.",),
        _CONSEQUENCE,
    ),
    Cause(
        "no-endpoints",
        Hop.SERVICE,
        Category.DEPENDENCY,
        "The service has no endpoints.",
        ("Check that the serve application runs, then the selector.",),
        _CONSEQUENCE,
    ),
    Cause(
        "upstream-error",
        Hop.GATEWAY,
        Category.DEPENDENCY,
        "The gateway reaches no pod that answers in time.",
        ("Compare the route's timeout with the time to first token.", "Then walk back: service, model, pod."),
        _CONSEQUENCE,
    ),
    Cause(
        "route-status",
        Hop.GATEWAY,
        Category.CONFIG,
        "The route is not accepted, or its status comes from another gateway.",
        (
            "Read `status.parents` of this gateway and controller only.",
            "Check hostname, listener, backend and reference grant.",
        ),
    ),
)
