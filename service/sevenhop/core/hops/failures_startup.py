"""Texts of the kubelet, the container runtime and registries while a container starts or is ended (hop pod)."""

from __future__ import annotations

_PULL = (
    r"(?=[^\n]*(?:pull|\bimage|registry|manifest|resolve reference|toomanyrequests|repository|unpack|layer|blob))"
)
_MOUNT = r"(?=[^\n]*(?:mount|volume))"

WORDS: tuple[tuple[str, str], ...] = (
    # Images.  Sources: kubelet's image manager, containerd, CRI-O, registries' answers.
    ("image-rate-limit", rf"{_PULL}(?:toomanyrequests|too many requests|rate limit|pull limit|ratelimit|\b429\b)"),
    ("image-name", r"invalidimagename|invalid reference format|couldn'?t parse image (?:name|reference)|failed to apply default image tag|repository name must be lowercase"),
    (
        "image-platform",
        r"no match for platform in manifest|no matching manifest for|exec format error|does not match the (?:specified|host) platform|image (?:operating system|architecture)[^\n]{0,40}(?:mismatch|cannot be used)|no image found in (?:manifest|image index) (?:list )?for architecture",
    ),
    (
        "image-disk-full",
        rf"{_PULL}(?=[^\n]*(?:extract|unpack|layer|pull|blob|snapshot|ingest|copy))[^\n]*(?:no space left on device|disk quota exceeded|not enough (?:disk )?space)",
    ),
    (
        "image-not-found",
        rf"{_PULL}(?:manifest unknown|manifest for \S+ not found|name unknown|name_unknown|manifest_unknown|404 not found|(?:reference|image|tag|repository|manifest)\b[^\n]*: not found\b|code = notfound|no such image|unexpected status(?: code)?[^\n]{{0,120}}\b404\b|repository \S+ not found)",
    ),
    (
        "image-unauthorized",
        rf"{_PULL}(?:pull access denied|unauthorized|authentication required|authorization (?:failed|required)|insufficient_scope|no basic auth credentials|access (?:to the (?:requested )?resource is )?(?:denied|forbidden)|\b40[13]\b|forbidden|failed to authorize|invalid (?:username|credentials)|unable to retrieve some image pull secrets|permission_?denied|requested access to the resource is denied|token (?:has )?expired)",
    ),
    ("image-corrupt", rf"{_PULL}(?:failed size validation|unexpected commit digest|digest (?:mismatch|did not match|verification failed)|does not match (?:the )?digest|filesystem layer verification failed|invalid tar header|signature (?:verification|validation)[^\n]{{0,40}}fail|signaturevalidationfailed)"),
    ("image-never-pull", r"errimageneverpull|is not present with pull policy of never|image \S+ is not present"),
    (
        "image-registry-unreachable",
        rf"{_PULL}(?:registryunavailable|dial tcp|i/o timeout|no such host|connection (?:refused|reset)|tls handshake|x509|certificate|deadline ?exceeded|unexpected eof|: eof\b|client\.timeout|net/http|proxyconnect|server misbehaving|network is unreachable|no route to host|\b50[0234]\b[^\n]{{0,40}}(?:server|gateway|unavailable|error)|http response to https client|registry is unavailable|temporary failure in name resolution|pull qps exceeded)",
    ),
    ("image-pull-unexplained", r"errimagepull|imagepullbackoff|back-?off pulling image|failed to pull image|imageinspecterror|failed to pull and unpack|^failed to resolve reference"),
    # Configuration.  Source: kubelet.
    ("secret-missing", r"secrets? \"?[\w./-]+\"? not found|couldn'?t find key \S+ in secret|non-?existent secret key|secret \S+ (?:does not|doesn'?t) (?:exist|contain)|secret .*references non-?existent|object \"[\w./-]+\"/\"[\w.-]*(?:secret|token)[\w.-]*\" not registered|objects? \S+ not found in .*secret"),
    ("configmap-missing", r"config ?maps? \"?[\w./-]+\"? not found|couldn'?t find key \S+ in config ?map|non-?existent config ?(?:map )?key|config ?map \S+ (?:does not|doesn'?t) (?:exist|contain)|object \"[\w./-]+\"/\"[\w.-]+\" not registered"),
    ("security-context", r"runasnonroot|image will run as root|non-numeric user|unable to find user \S+|apparmor|seccomp[^\n]{0,40}(?:not found|cannot|unable|fail)|read-?only file ?system"),
    # Volumes.  Sources: kubelet, attach-detach controller, CSI drivers, mount(8).
    ("volume-multi-attach", r"multi-?attach error|already (?:exclusively )?attached to (?:one|another) (?:node|instance)|volume is already (?:attached|used|exclusively)"),
    ("csi-driver-missing", r"not found in the list of registered csi drivers|csi ?driver \S+ not found|csinode \S+ (?:does not|not)|no csi driver"),
    ("volume-claim-missing", r"persistentvolumeclaim \"?[\w./-]+\"? not found|pvc \S+ not found"),
    ("volume-attach-failed", r"attachvolume\.\w+ failed|failedattachvolume|failed to attach volume|rpc error[^\n]*controllerpublishvolume|volume attachment[^\n]{0,60}(?:fail|error)"),
    ("volume-mount-failed", r"mountvolume\.\w+ failed|mount(?:device)? failed|mount\.(?:nfs|cifs|glusterfs|ceph|lustre)\S*:|mounting command|failed to mount|hostpath type check failed|mapvolume\.\w+ failed|failed to (?:create|prepare) subpath|wrong fs type|stale file handle|error mounting \S+ to rootfs"),
    ("volume-mount-waiting", r"unable to attach or mount volumes|unmounted volumes=|failedmount|timed out waiting for the condition"),
    # Commands and arguments
    (
        "bad-command",
        r"executable file not found|exec(?:ing|ve)?:? \"?[^\s\"]+\"?: (?:no such file|permission denied|stat |is a directory)|stat \S+: no such file or directory: unknown|containercannotrun|unable to start container process: exec|can'?t open file '[^']+': \[errno 2\]|^\S*sh: (?:\d+: |line \d+: )?\S+: (?:command )?not found|starting container process caused[^\n]*(?:exec|no such file)",
    ),
    (
        "bad-arguments",
        r"unrecognized arguments?|invalid choice|the following arguments are required|expected (?:one|at least one) argument|unknown (?:flag|shorthand flag|option|argument|command)|flag provided but not defined|no such option|unexpected (?:argument|keyword argument)|got an unexpected keyword|invalid (?:int|float|\w+) value:|argument --?[\w-]+: |error: unexpected argument|ambiguous option|missing (?:required )?option",
    ),
    ("missing-environment", r"environment variables? [^\n]{0,60}(?:not (?:set|found|defined)|is required|must be set|missing)|(?:must|please|need to) set (?:the )?(?:environment variable )?(?-i:[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|\b(?-i:[A-Z][A-Z0-9]*_[A-Z0-9_]+) (?:environment variable )?(?:is not set|must be set|is required|not set)|(?-i:KeyError: '[A-Z][A-Z0-9]*_[A-Z0-9_]+')"),
    ("port-in-use", r"address already in use|errno 98|port \d+ is already (?:in use|allocated)|bind: address"),
    ("hook-failed", r"failedpoststarthook|poststarthook(?:error)?|post-?start hook[^\n]{0,40}fail"),
    # The runtime and the end of a container
    ("ephemeral-storage", r"low on resource: (?:ephemeral-storage|inodes|nodefs|imagefs)|ephemeral[- ](?:local )?storage (?:limit|usage)|exceed(?:s|ed) (?:its )?(?:the )?(?:local )?ephemeral|usage of emptydir volume|emptydir[^\n]{0,40}exceeds the limit|diskpressure|disk[- ]pressure"),
    ("evicted-memory", r"low on resource: memory|memorypressure|memory[- ]pressure|evicted[^\n]{0,60}memory"),
    ("host-oom", r"oom-?killed|oomkill(?:ing|ed)|memory cgroup out of memory|system oom encountered|container (?:exceeded|used more than)[^\n]{0,20}memory limit|killed due to (?:the node running low on memory|memory pressure|\(?oom)|killed by the (?:oom|out[- ]of[- ]memory)|oom[- ]killer|node running low on memory|cannot allocate memory|defaultcpuallocator: (?:can'?t|not enough)[^\n]*memory|std::bad_alloc|numpy\.core\._exceptions\.\w*memoryerror|^\s*memoryerror\b"),
    ("preempted", r"preempted (?:in order to|by)|^preempt(?:ing|ed)\b|preemptionbyscheduler|preempting to accommodate"),
    ("node-shutdown", r"imminent node shutdown|nodeshutdown|node (?:is )?shut(?:ting)? ?down|node was (?:preempted|reclaimed)|spot (?:instance )?(?:interruption|reclaim)|terminationbykubelet"),
    ("node-lost", r"nodelost|node which was running pod \S+ is unresponsive|node[^\n]{0,40}(?:is|became) unresponsive|nodenotready\b|node is not ready"),
    ("evicted", r"\bevicted\b|low on resource|taintmanagereviction|deletionbytaintmanager|evictionbyevictionapi|taint[- ]manager|noexecute taint|deletionbypodgc|the node had condition"),
    ("deadline-exceeded", r"pod was active on the node longer than the specified deadline|^deadlineexceeded\b"),
    ("no-gpu-in-container", r"failed to infer device type|no cuda gpus are available|no cuda-capable device|found no nvidia driver|libcuda\.so\S*[^\n]{0,40}(?:cannot open|not found|no such)|nvml ?(?:shared)? ?library ?not ?found|nvmlerror_librarynotfound|cuda is not available|torch not compiled with cuda|cuda_visible_devices[^\n]{0,40}(?:empty|invalid|no )|device_count\(\) *(?:==|=|is) *0|no gpus? (?:was |were |is |are )?(?:found|detected|available|visible)|no (?:supported )?(?:accelerator|device)s? (?:found|detected)|cudaerrornodevice|invalid device ordinal|nvidia-smi: (?:command )?not found|no hip gpus"),
    ("cuda-image-mismatch", r"error 803\b|unsupported display driver ?/ ?cuda driver combination|systemdrivermismatch|system_driver_mismatch"),
    ("sandbox-network", r"failed to set ?up (?:network|sandbox)[^\n]{0,40}(?:network|cni|sandbox)|\bcni\b[^\n]{0,80}(?:fail|error|not initialized|not found)|plugin type=\S+ failed|failed to (?:assign|allocate) (?:an )?ip|no (?:more )?(?:free )?(?:ip )?addresses (?:available|left)|networkplugin(?:not ?ready)?|network is not ready|networknotready|no ip addresses available in range"),
    ("sandbox-failed", r"failed to (?:create|start) (?:pod )?sandbox|failedcreatepodsandbox|create sandbox|sandbox (?:has )?changed"),
    ("container-lost", r"containerstatusunknown|container could not be located|failed to get container status"),
    ("container-config", r"createcontainerconfigerror|createcontainererror|prestarthookerror|failed to sync (?:configmap|secret) cache"),
    ("container-runtime", r"oci runtime create failed|failed to create (?:containerd|shim) task|runcontainererror|starterror|failed to start container|failed to create container|runc create failed|unable to start container process|context deadline exceeded.*container|failed to reserve container name"),
    ("image-content", r"modulenotfounderror|no module named|importerror: (?:cannot import name|lib|/)|error while loading shared libraries|cannot open shared object file|undefined symbol|version [`'](?:glibc|glibcxx)_|packagenotfounderror|symbol lookup error"),
    # Probes
    ("probe-kill", r"failed (?:startup|liveness) probe|(?:startup|liveness) probe,? (?:will be|container) (?:restarted|killed)|keyboardinterrupt: terminated|will be restarted"),
    ("liveness-failing", r"liveness probe (?:failed|errored)"),
    ("file-permission", r"permissionerror|\[errno 13\]|permission denied|eacces|operation not permitted"),
    ("name-resolution", r"temporary failure in name resolution|name or service not known|no such host|could not resolve host|nodename nor servname|name does not resolve"),
    ("crash-loop-unexplained", r"crashloopbackoff|back-?off (?:\S+ )?restarting failed container|^backoff\b"),
)  # fmt: skip
"""(cause, words); a text that speaks of pulling or mounting in other words is matched by a look-ahead for these."""
