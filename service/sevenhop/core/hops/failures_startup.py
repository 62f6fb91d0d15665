"""Texts of the kubelet, the container runtime and registries while a container starts or is ended (hop pod)."""

from __future__ import annotations

from sevenhop.core.hops.failures_words import Words

_PULL = (
    "pull",
    r"\bimage",
    "registry",
    "manifest",
    "resolve reference",
    "toomanyrequests",
    "repository",
    "unpack",
    "layer",
    "blob",
)
"""Texts about images."""

_UNPACK = ("extract", "unpack", "layer", "pull", "blob", "snapshot", "ingest", "copy")

WORDS: tuple[Words, ...] = (
    # Images.  Sources: kubelet's image manager, containerd, CRI-O, registries' answers.
    Words(
        "image-rate-limit",
        (
            "toomanyrequests",
            "too many requests",
            "rate limit",
            "pull limit",
            "ratelimit",
            r"\b429\b",
        ),
        near=_PULL,
    ),
    Words(
        "image-name",
        (
            "invalidimagename",
            "invalid reference format",
            "couldn'?t parse image (?:name|reference)",
            "failed to apply default image tag",
            r"short-name .{0,200}(?:did not resolve|cannot prompt)",
            "repository name must be lowercase",
        ),
    ),
    Words(
        "image-platform",
        (
            "no match for platform in manifest",
            "no matching manifest for",
            "exec format error",
            "does not match the (?:specified|host) platform",
            r"image (?:operating system|architecture).{0,40}(?:mismatch|cannot be used)",
            "no image found in (?:manifest|image index) (?:list )?for architecture",
        ),
    ),
    Words(
        "image-disk-full",
        (
            "no space left on device",
            "disk quota exceeded",
            "not enough (?:disk )?space",
        ),
        near=_UNPACK,
    ),
    Words(
        "image-not-found",
        (
            "manifest unknown",
            r"manifest for \S+ not found",
            "name unknown",
            "name_unknown",
            "manifest_unknown",
            "404 not found",
            r"(?:reference|image|tag|repository|manifest)\b.*: not found\b",
            "code = notfound",
            "no such image",
            r"unexpected status(?: code)?.{0,120}\b404\b",
            r"repository \S+ not found",
            r"artifact \S+ not found",
        ),
        near=_PULL,
    ),
    Words(
        "image-unauthorized",
        (
            "pull access denied",
            "unauthorized",
            "authentication required",
            "authorization (?:failed|required)",
            "insufficient_scope",
            "no basic auth credentials",
            "access (?:to the (?:requested )?resource is )?(?:denied|forbidden)",
            r"\b40[123]\b",
            "forbidden",
            "failed to authorize",
            "invalid (?:username|credentials)",
            "unable to retrieve some image pull secrets",
            "permission_?denied",
            "requested access to the resource is denied",
            "token (?:has )?expired",
            "credentials that do not match",
        ),
        near=_PULL,
    ),
    Words(
        "image-corrupt",
        (
            "failed size validation",
            "unexpected commit digest",
            "digest (?:mismatch|did not match|verification failed)",
            "does not match (?:the )?digest",
            "filesystem layer verification failed",
            "invalid tar header",
            "mismatched image rootfs and manifest layers",
        ),
        near=_PULL,
    ),
    Words(
        "image-refused",
        (
            r"signature (?:verification|validation).{0,40}fail",
            "signaturevalidationfailed",
            "source image rejected",
            "a signature was required",
            r"\b412 precondition failed",
            "cannot be pulled due to configured policy",
            r"(?:image|artifact).{0,60}(?:blocked|prevented|denied|not allowed) by .{0,40}policy",
        ),
        near=_PULL,
    ),
    Words(
        "image-never-pull",
        (
            "errimageneverpull",
            "is not present with pull policy of never",
            r"image \S+ is not present",
        ),
    ),
    Words(
        "image-registry-unreachable",
        (
            "registryunavailable",
            "dial tcp",
            "i/o timeout",
            "no such host",
            "connection (?:refused|reset)",
            "tls handshake",
            "x509",
            "certificate",
            "deadline ?exceeded",
            "unexpected eof",
            r": eof\b",
            r"client\.timeout",
            "net/http",
            "proxyconnect",
            "server misbehaving",
            "network is unreachable",
            "no route to host",
            r"\b50[0234]\b.{0,40}(?:server|gateway|unavailable|error)",
            "http response to https client",
            "registry is unavailable",
            "temporary failure in name resolution",
            "pull qps exceeded",
        ),
        near=_PULL,
    ),
    Words(
        "image-pull-unexplained",
        (
            "errimagepull",
            "imagepullbackoff",
            "back-?off pulling image",
            "failed to pull image",
            "imageinspecterror",
            "failed to pull and unpack",
            "^failed to resolve reference",
            "unable to fetch image",
        ),
    ),
    # Configuration.  Source: kubelet.
    Words(
        "secret-missing",
        (
            r"secrets? \"?[\w./-]+\"? not found",
            r"couldn'?t find key \S+ in secret",
            "non-?existent secret key",
            r"secret \S+ (?:does not|doesn'?t) (?:exist|contain)",
            "secret .*references non-?existent",
            r"object \"[\w./-]+\"/\"[\w.-]*(?:secret|token)[\w.-]*\" not registered",
            r"objects? \S+ not found in .*secret",
        ),
    ),
    Words(
        "configmap-missing",
        (
            r"config ?maps? \"?[\w./-]+\"? not found",
            r"couldn'?t find key \S+ in config ?map",
            "non-?existent config ?(?:map )?key",
            r"config ?map \S+ (?:does not|doesn'?t) (?:exist|contain)",
            r"object \"[\w./-]+\"/\"[\w.-]+\" not registered",
        ),
    ),
    Words(
        "security-context",
        (
            "runasnonroot",
            "image will run as root",
            "non-numeric user",
            r"unable to find user \S+",
            "apparmor",
            "sysctl ?forbidden|forbidden sysctl",
            r"seccomp.{0,40}(?:not found|cannot|unable|fail)",
            "read-?only file ?system",
        ),
    ),
    # Volumes.  Sources: kubelet, attach-detach controller, CSI drivers, mount(8).
    Words(
        "volume-multi-attach",
        (
            "multi-?attach error",
            "already (?:exclusively )?attached to (?:one|another) (?:node|instance)",
            "volume is already (?:attached|used|exclusively)",
        ),
    ),
    Words(
        "csi-driver-missing",
        (
            "not found in the list of registered csi drivers",
            r"csi ?driver \S+ not found",
            r"csinode \S+ (?:does not|not)",
            "no csi driver",
        ),
    ),
    Words(
        "volume-claim-missing",
        (
            r"persistentvolumeclaims? \"?[\w./-]+\"? not found",
            r"pvc \S+ not found",
        ),
    ),
    Words(
        "volume-attach-failed",
        (
            r"attachvolume\.\w+ failed",
            "failedattachvolume",
            "failed to attach volume",
            r"rpc error.*controllerpublishvolume",
            r"volume attachment.{0,60}(?:fail|error)",
        ),
    ),
    Words(
        "volume-mount-failed",
        (
            r"mountvolume\.\w+.{0,40}failed",
            r"mountvolume\.\w+ failed",
            "mount(?:device)? failed",
            r"mount\.(?:nfs|cifs|glusterfs|ceph|lustre)\S*:",
            "mounting command",
            "failed to mount",
            "hostpath type check failed",
            r"mapvolume\.\w+ failed",
            "failed to (?:create|prepare) subpath",
            "wrong fs type",
            "stale file handle",
            r"error mounting \S+ to rootfs",
            "is not a shared(?: or slave)? mount",
        ),
    ),
    Words(
        "volume-lost",
        (
            # With the path: of a socket and of a terminal the kernel says the same.
            r"(?:transport endpoint is not connected|input/output error|stale (?:nfs )?file handle): ?['\"]?/",
            r"/\S+: (?:transport endpoint is not connected|input/output error)",
        ),
    ),
    Words(
        "volume-mount-waiting",
        (
            "unable to attach or mount volumes",
            "unmounted volumes=",
            "failedmount",
            "timed out waiting for the condition",
        ),
    ),
    # Commands and arguments
    Words(
        "bad-command",
        (
            r"executable file (?:[`'\"]?\S+ )?not found",
            r"^exec \S+: argument list too long",
            r"exec(?:ing|ve)?:? \"?[^\s\"]+\"?: (?:no such file|permission denied|stat |is a directory)",
            r"stat \S+: no such file or directory: unknown",
            "containercannotrun",
            "unable to start container process: exec",
            r"can'?t open file '[^']+': \[errno 2\]",
            r"^\S*sh: (?:\d+: |line \d+: )?\S+: (?:command )?not found",
            r"starting container process caused.*(?:exec|no such file)",
        ),
    ),
    Words(
        "bad-arguments",
        (
            "unrecognized option",
            "unrecognized arguments?",
            "invalid choice",
            "the following arguments are required",
            "expected (?:one|at least one) argument",
            "unknown (?:flag|shorthand flag|option|argument|command)",
            "flag provided but not defined",
            "no such option",
            "unexpected (?:argument|keyword argument)",
            "got an unexpected keyword",
            r"invalid (?:int|float|\w+) value:",
            r"argument --?[\w-]+: ",
            "error: unexpected argument",
            "ambiguous option",
            "missing (?:required )?option",
            "valueerror: with `vllm serve`, you should provide the model as a positional argument",
            # A Service named like the engine: Kubernetes puts its address into the variable that holds the port.
            "appears to be a uri",
        ),
    ),
    Words(
        "missing-environment",
        (
            r"environment variables? .{0,60}(?:not (?:set|found|defined)|is required|must be set|missing)",
            r"(?:[Mm]ust|[Pp]lease|need to) set (?:the )?(?:environment variable )?[A-Z][A-Z0-9]*_[A-Z0-9_]+\b",
            r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+ (?:environment variable )?(?:is not set|must be set|is required|not set)",
            "KeyError: '[A-Z][A-Z0-9]*_[A-Z0-9_]+'",
        ),
        exact=True,
    ),
    Words(
        "port-in-use",
        (
            "address already in use",
            "errno 98",
            r"port \d+ is already (?:in use|allocated)",
            "bind: address",
        ),
    ),
    Words(
        "process-limit",
        (
            "too many open files",
            r"\berrno 24\b",
            "can'?t start new thread",
            r"pthread_create failed.{0,80}(?:resource temporarily unavailable|eagain|error 11)",
            r"(?:fork|thread|spawn|process).{0,80}resource temporarily unavailable",
            "failed to create new os thread",
        ),
    ),
    Words(
        "hook-failed",
        (
            "failedpoststarthook",
            "poststarthook(?:error)?",
            r"post-?start hook.{0,40}fail",
        ),
    ),
    # The runtime and the end of a container
    Words(
        "ephemeral-storage",
        (
            "low on resource: (?:ephemeral-storage|inodes|nodefs|imagefs)",
            "ephemeral[- ](?:local )?storage (?:limit|usage)",
            "exceed(?:s|ed) (?:its )?(?:the )?(?:local )?ephemeral",
            "usage of emptydir volume",
            r"emptydir.{0,40}exceeds the limit",
            "diskpressure",
            "disk[- ]pressure",
        ),
    ),
    Words(
        # The kubelet's and the runtime's own files; images and models have rows of their own.
        "node-disk-full",
        (
            (
                r"(?:kubelet_internal_checkpoint|/var/lib/kubelet|/var/log|/run/containerd|/var/lib/containerd\S*meta|"
                r"sandbox|checkpoint file|create (?:containerd )?(?:container|task)|shim task).{0,300}"
                r"(?:no space left on device|disk quota exceeded)"
            ),
        ),
    ),
    Words(
        "evicted-memory",
        (
            "low on resource: memory",
            "memorypressure",
            "memory[- ]pressure",
            r"evicted.{0,60}memory",
        ),
    ),
    Words(
        "host-oom",
        (
            "oom-?killed",
            "oomkill(?:ing|ed)",
            "memory cgroup out of memory",
            "system oom encountered",
            r"container (?:exceeded|used more than).{0,20}memory limit",
            r"killed due to (?:the node running low on memory|memory pressure|\(?oom)",
            "killed by the (?:oom|out[- ]of[- ]memory)",
            "oom[- ]killer",
            "node running low on memory",
            "cannot allocate memory",
            r"defaultcpuallocator: (?:can'?t|not enough).*memory",
            "std::bad_alloc",
            r"java\.lang\.outofmemoryerror",
            "requires more system memory",
            r"numpy\.core\._exceptions\.\w*memoryerror",
            r"^\s*memoryerror\b",
        ),
    ),
    Words(
        "preempted",
        (
            "preempted (?:in order to|by)",
            r"^preempt(?:ing|ed)\b",
            "preemptionbyscheduler",
            "preempting to accommodate",
        ),
    ),
    Words(
        "node-shutdown",
        (
            "imminent node shutdown",
            "nodeshutdown",
            "node (?:is )?shut(?:ting)? ?down",
            "node was (?:preempted|reclaimed)",
            "spot (?:instance )?(?:interruption|reclaim)",
            "terminationbykubelet",
        ),
    ),
    Words(
        "node-lost",
        (
            "nodelost",
            r"node which was running pod \S+ is unresponsive",
            r"node.{0,40}(?:is|became) unresponsive",
            r"nodenotready\b",
            "node is not ready",
        ),
    ),
    Words(
        "evicted",
        (
            r"\bevicted\b",
            "low on resource",
            "taintmanagereviction(?!: cancelling)",
            "deletionbytaintmanager",
            "evictionbyevictionapi",
            "taint[- ]manager",
            "noexecute taint",
            "deletionbypodgc",
            "the node had condition",
        ),
    ),
    Words(
        "deadline-exceeded",
        (
            "pod was active on the node longer than the specified deadline",
            r"^deadlineexceeded\b",
        ),
    ),
    Words(
        "no-gpu-in-container",
        (
            "cuda unknown error",
            "device string must not be empty",
            "failed to infer device type",
            "no cuda gpus are available",
            "might not have a cuda gpu",
            "nvidia driver was not detected",
            "unable to open /dev/kfd",
            "no cuda-capable device",
            "found no nvidia driver",
            r"libcuda\.so\S*.{0,40}(?:cannot open|not found|no such)",
            "nvml ?(?:shared)? ?library ?not ?found",
            "nvmlerror_librarynotfound",
            "cuda is not available",
            "unable to initialize backend '(?:tpu|cuda|rocm)'",
            "no neuron device",
            r"synstatus.{0,60}no device",
            "torch not compiled with cuda",
            r"cuda_visible_devices.{0,40}(?:empty|invalid|no )",
            r"device_count\(\) *(?:==|=|is) *0",
            "no gpus? (?:was |were |is |are )?(?:found|detected|available|visible)",
            "no (?:supported )?(?:accelerator|device)s? (?:found|detected)",
            "cudaerrornodevice",
            "invalid device ordinal",
            "nvidia-smi: (?:command )?not found",
            "no hip gpus",
            r"^\W*no devices were found\W*$",
        ),
    ),
    Words(
        "cuda-image-mismatch",
        (
            r"error 803\b",
            "unsupported display driver ?/ ?cuda driver combination",
            "systemdrivermismatch",
            "system_driver_mismatch",
        ),
    ),
    Words(
        "sandbox-network",
        (
            r"failed to set ?up (?:network|sandbox).{0,40}(?:network|cni|sandbox)",
            r"\bcni\b.{0,80}(?:fail|error|not initialized|not found)",
            r"plugin type=\S+ failed",
            "failed to (?:assign|allocate) (?:an )?ip",
            "no (?:more )?(?:free )?(?:ip )?addresses (?:available|left)",
            "networkplugin(?:not ?ready)?",
            "network is not ready",
            "networknotready",
            "no ip addresses available in range",
        ),
    ),
    Words(
        "sandbox-failed",
        (
            "failed to (?:create|start) (?:pod )?sandbox",
            "failedcreatepodsandbox",
            "create sandbox",
            "sandbox (?:has )?changed",
        ),
    ),
    Words(
        "container-lost",
        (
            "containerstatusunknown",
            "container could not be located",
            "failed to get container status",
        ),
    ),
    Words(
        "container-config",
        (
            "createcontainerconfigerror",
            "prestarthookerror",
            "failed to sync (?:configmap|secret) cache",
        ),
    ),
    Words(
        "container-runtime",
        (
            "oci runtime create failed",
            "createcontainererror",
            "error during container init",
            r"failed to generate (?:container )?(?:\S+ )?spec",
            "failed to create (?:containerd|shim) task",
            "runcontainererror",
            "starterror",
            "failed to start container",
            "failed to create container",
            "runc create failed",
            "unable to start container process",
            "context deadline exceeded.*container",
            "failed to reserve container name",
            "error reserving ctr name",
            "kubelet may be retrying requests that are timing out",
        ),
    ),
    Words(
        "image-content",
        (
            "modulenotfounderror",
            "no module named",
            "importerror: (?:cannot import name|lib|/)",
            "error while loading shared libraries",
            "cannot open shared object file",
            "undefined symbol",
            "version [`'](?:glibc|glibcxx)_",
            "packagenotfounderror",
            r"attributeerror: module '[\w.]+' has no attribute",
            r"failed to import \S+ because of the following error",
            r"\b(?:nixl|lmcache|mooncake|deep_?ep|flash_?attn|flash_?infer) is not (?:available|installed)",
            "symbol lookup error",
        ),
    ),
    # The kubelet asks the scheduler's questions again, when it is told to run the pod.
    Words(
        "node-affinity",
        (
            "predicate nodeaffinity failed",
            "^nodeaffinity: ",
        ),
    ),
    Words(
        "node-selector",
        (
            "predicate nodename failed",
            "^nodename: ",
        ),
    ),
    Words(
        "untolerated-taint",
        (
            "predicate tainttoleration failed",
            "^tainttoleration: ",
        ),
    ),
    Words(
        "volume-limit",
        ("volume ?attachment ?limit ?exceeded",),
    ),
    Words(
        "host-port",
        (
            "predicate nodeports failed",
            "^nodeports: ",
        ),
    ),
    # Probes
    Words(
        "probe-kill",
        (
            "failed (?:startup|liveness) probe",
            "(?:startup|liveness) probe,? (?:will be|container) (?:restarted|killed)",
            "keyboardinterrupt: terminated",
            "will be restarted",
        ),
    ),
    Words(
        "liveness-failing",
        ("liveness probe (?:failed|errored)",),
    ),
    Words(
        "file-permission",
        (
            "permissionerror",
            r"\[errno 13\]",
            "permission denied",
            "eacces",
            "operation not permitted",
            "trying to write in your cache folder",
        ),
    ),
    # What a program or its shell prints as it dies; the exit code says the same.
    Words(
        "shared-memory-or-bus-error",
        (
            r"^\W*bus error\b",
            "fatal python error: bus error",
        ),
    ),
    Words(
        "segmentation-fault",
        (
            r"^\W*segmentation fault\b",
            "fatal python error: segmentation fault",
            "segfault encountered",
        ),
    ),
    Words(
        "killed-unexplained",
        (
            r"^\s*killed\s*$",
            r"\bline \d+:\s+\d+ killed\b",
        ),
    ),
    Words(
        "illegal-instruction",
        (
            r"^\W*illegal instruction\b",
            "fatal python error: illegal instruction",
        ),
    ),
    Words(
        "discovery-store-unreachable",
        (
            r"unable to create lease\b.{0,60}etcd",
            r"(?:failed to|could not) connect to (?:nats|etcd|redis)\b",
            r"\b(?:nats|etcd|redis)\b.{0,80}(?:connection refused|transport error|deadline ?exceeded|timed? ?out)",
            r"(?:connection refused|transport error|deadline ?exceeded|timed? ?out).{0,80}\b(?:nats|etcd|redis)\b",
        ),
    ),
    Words(
        "name-resolution",
        (
            "temporary failure in name resolution",
            "name or service not known",
            "no such host",
            "could not resolve host",
            "nodename nor servname",
            "name does not resolve",
            "unable to resolve host",
        ),
    ),
    Words(
        "crash-loop-unexplained",
        (
            "crashloopbackoff",
            r"back-?off (?:\S+ )?restarting failed container",
            r"^backoff\b",
        ),
    ),
)
