"""What a program warns of and goes on: no cause, or less of one than what it dies of."""

from __future__ import annotations

import pytest

from sevenhop.core.hops.failures_text import Context, classify_logs, classify_text, rank

WARN = "WARNING 11-30 06:00:00 [x.py:1] "
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."
NO_GPU = "Failed to import from vllm._C with ImportError('libcuda.so.1: cannot open shared object file')"


@pytest.mark.parametrize(
    "line",
    [
        WARN + "FlashInfer is not available. Falling back to the PyTorch-native implementation of top-p sampling.",
        WARN + "--task is not supported by the V1 Engine. Falling back to V0.",
        WARN + "Environment variable HF_TOKEN not found, gated models are not accessible",
        WARN + "No tokenizer found in /l, using base model tokenizer instead. (Can't load tokenizer for '/l'.)",
        WARN + "The model's config.json does not contain any of the following keys to determine the original length",
        WARN + "Sequence group 1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache.",
        WARN + "Failed to import from amdsmi with ModuleNotFoundError(\"No module named 'amdsmi'\")",
        "Unrecognized keys in `rope_scaling` for 'rope_type'='yarn': {'original_max_position_embeddings'}",
        "NCCL WARN NET/Plugin: Could not find: libnccl-net.so.",
        "E0000 00:00:17 7 cuda_dnn.cc:8310] Unable to register cuDNN factory: one has already been registered",
    ],
)
def test_what_every_start_says(line: str) -> None:
    """It is read at every start of a healthy engine."""
    assert classify_text(line, context=Context.TERMINATED) is None


@pytest.mark.parametrize(
    "warning",
    [
        WARN + NO_GPU,
        "(EngineCore_0 pid=7) " + WARN + NO_GPU,
        "2026-11-30 06:00:00,123 - vllm.config - WARNING - " + NO_GPU,
        "[TensorRT-LLM][WARNING] " + NO_GPU,
        "[rank0]:[W1130 06:00:00.1 x.cpp:1] " + NO_GPU,
        "/opt/x/hub.py:105: UserWarning: " + NO_GPU,
        '{"level": "warning", "msg": "libcuda.so.1: cannot open shared object file"}',
        'time="x" level=warning msg="libcuda.so.1: cannot open shared object file"',
    ],
)
def test_what_it_dies_of_comes_first(warning: str) -> None:
    """A warning is the reason only where nothing better is said, whatever the hops' order."""
    alone = classify_text(warning, context=Context.TERMINATED)
    both = classify_text(f"{warning}\n{OOM}", context=Context.TERMINATED)

    assert alone is not None
    assert alone.cause.slug == "no-gpu-in-container"
    assert both is not None
    assert both.cause.slug == "gpu-oom"
    # Without its level it would have been the better explanation.
    assert rank(alone.cause) < rank(both.cause)
    assert [found.cause.slug for found in classify_logs([warning, OOM])] == ["gpu-oom"]


def test_a_symptom_does_not_outdo_a_warning() -> None:
    """ "Engine core initialization failed" says nothing; what was warned of before may."""
    text = f"{WARN}{NO_GPU}\nRuntimeError: Engine core initialization failed. See root cause above."
    found = classify_text(text, context=Context.TERMINATED)

    assert found is not None
    assert found.cause.slug == "no-gpu-in-container"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("llama_model_load: failed to open GGUF file '/m/x.gguf' (No such file or directory)", "missing-weights"),
        ("Exception: Unable to create lease. Check etcd server status at http://e:2379", "discovery-store-unreachable"),
        ("Error: Failed to connect to NATS: IO error: Connection refused", "discovery-store-unreachable"),
        ("RuntimeError: Unable to initialize backend 'tpu': ABORTED", "no-gpu-in-container"),
        ("ABORTED: The TPU is already in use by process with pid 7", "gpu-busy-or-exclusive"),
        ("RuntimeError: synStatus=26 [Generic failure] Device acquire failed.", "gpu-busy-or-exclusive"),
        ("RuntimeError: The PyTorch Neuron Runtime could not be initialized. nrt_init failed", "driver-broken"),
        ("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "gpu-xid"),
    ],
)  # fmt: skip
def test_other_vendors_and_stores(text: str, cause: str) -> None:
    """What TPUs, Gaudi, Neuron, llama.cpp and Dynamo's stores say."""
    found = classify_text(text, context=Context.TERMINATED)

    assert found is not None
    assert found.cause.slug == cause


PULL = 'Failed to pull image "reg/x:1": '


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("unexpected status code https://nvcr.io/v2/x/blobs/sha256:1: 402 Payment Required", "image-unauthorized"),
        ("unexpected status from HEAD request to https://h/v2/x/manifests/1: 412 Precondition Failed", "image-refused"),
        ('current image with "Critical" vulnerability cannot be pulled due to configured policy', "image-refused"),
        ("Source image rejected: A signature was required, but no signature exists", "image-refused"),
        ("nodeClaim creation failed: exceeding approved standardNDSH100v5Family Cores quota", "autoscaler-backoff"),
        ("Quota 'NVIDIA_H100_GPUS' exceeded.  Limit: 8.0 in region us-east4.", "autoscaler-backoff"),
    ],
)
def test_registries_and_clouds_that_refuse(text: str, cause: str) -> None:
    """A registry's policy is no matter of credentials, and a cloud's quota is not the namespace's."""
    prefix = PULL if cause.startswith("image-") else ""
    context = Context.EVENT if prefix else Context.CONDITION
    found = classify_text(prefix + text, context=context)

    assert found is not None
    assert found.cause.slug == cause
