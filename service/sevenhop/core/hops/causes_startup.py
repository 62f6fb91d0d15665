"""Causes on the hop pod: images, configuration, volumes, the runtime, probes."""

from __future__ import annotations

from sevenhop.core.hops.cause import Cause, Strength, table
from sevenhop.core.hops.diagnosis import Category as C
from sevenhop.core.subject import Hop

_P = Hop.POD
_GENERIC = Strength.GENERIC
_SYMPTOM = Strength.SYMPTOM

STARTUP_CAUSES: dict[str, Cause] = table(
    # image
    Cause("image-rate-limit", _P, C.IMAGE, "The registry limits how often images may be pulled.", ("Pull through a mirror, or with credentials.",)),
    Cause("image-name", _P, C.IMAGE, "The image's name is not valid.", ("Correct the name; an unexpanded template variable is the usual reason.",)),
    Cause("image-platform", _P, C.IMAGE, "The image is not built for the node's processor.", ("Use an image for this architecture, or select nodes of the other.",)),
    Cause("image-disk-full", _P, C.IMAGE, "The node has no room to unpack the image.", ("Free the node's image disk, or move the pod; large engine images need tens of GiB.",)),
    Cause("image-unauthorized", _P, C.IMAGE, "The registry refuses the credentials, or there are none.", ("Check the pull secret in the pod's namespace: present, named in the pod, not expired.", "A misspelt repository gives the same answer.")),
    Cause("image-not-found", _P, C.IMAGE, "The image or its tag does not exist.", ("Correct the tag, or push the image.",)),
    Cause("image-registry-unreachable", _P, C.IMAGE, "The node cannot reach the registry.", ("Check DNS, proxy, egress and certificate from this node.", "If other nodes can pull, it is this node.")),
    Cause("image-corrupt", _P, C.IMAGE, "The image's content does not match its digest.", ("Pull again; if it stays, push the image anew or clear the mirror's copy.",)),
    Cause("image-never-pull", _P, C.IMAGE, "The image is not on the node, and the pod forbids pulling it.", ("Set `imagePullPolicy: IfNotPresent`, or load the image on the node.",)),
    Cause("image-content", _P, C.IMAGE, "The image lacks something that the program needs.", ("Compare the image with the one that worked; install the missing module or library.",)),
    Cause("image-pull-unexplained", _P, C.IMAGE, "The image cannot be pulled, and the text does not say why.", ("Read the earlier `Failed` event of this pod: it has the registry's answer.",), _SYMPTOM),
    # config
    Cause("secret-missing", _P, C.CONFIG, "A Secret, or a key in it, that the pod names does not exist.", ("Create the Secret in the pod's namespace, or correct its name or key.",)),
    Cause("configmap-missing", _P, C.CONFIG, "A ConfigMap, or a key in it, that the pod names does not exist.", ("Create the ConfigMap in the pod's namespace, or correct its name or key.",)),
    Cause("volume-multi-attach", _P, C.CONFIG, "The volume is attached to another node, and allows only one.", ("Use ReadWriteMany or ReadOnlyMany for weights, or one replica.", "After a lost node, the old attachment must be released first.")),
    Cause("csi-driver-missing", _P, C.CONFIG, "The volume's CSI driver does not run on the node.", ("Check the CSI driver's node pod.",)),
    Cause("volume-claim-missing", _P, C.CONFIG, "A volume claim that the pod names does not exist.", ("Create the claim, or correct its name.",)),
    Cause("volume-attach-failed", _P, C.CONFIG, "The volume cannot be attached to the node.", ("Read the attacher's answer in the event; compare zone and attach limit.",)),
    Cause("volume-mount-failed", _P, C.CONFIG, "A volume cannot be mounted.", ("Read the mount's answer in the event: server, path, credentials, permissions.",)),
    Cause("volume-mount-waiting", _P, C.CONFIG, "The kubelet waits for volumes, and the text does not say why.", ("Look for FailedAttachVolume and for the other FailedMount events of this pod.",), _SYMPTOM),
    Cause("bad-command", _P, C.CONFIG, "The container's command cannot be executed.", ("Correct the command, or its path and mode in the image.",)),
    Cause("bad-arguments", _P, C.CONFIG, "The program does not accept its arguments.", ("Correct the argument named in the text; compare it with the engine's version.",)),
    Cause("missing-environment", _P, C.CONFIG, "An environment variable that the program needs is not set.", ("Set the variable named in the text.",)),
    Cause("file-permission", _P, C.CONFIG, "The program may not read or write a path.", ("Give it a writable volume, or set `fsGroup` and `runAsUser`.",)),
    Cause("port-in-use", _P, C.CONFIG, "The port is in use.", ("With host networking another pod of the node has it; else two processes of this container want it.",)),
    Cause("security-context", _P, C.CONFIG, "The image does not fit the pod's security context.", ("Set `runAsUser`, or build the image for a numeric non-root user.",)),
    Cause("hook-failed", _P, C.CONFIG, "A lifecycle hook of the container failed.", ("Read the hook's answer; a failed postStart kills the container.",)),
    Cause("container-config", _P, C.CONFIG, "The kubelet cannot put the container's configuration together.", ("Read the message: it names what is missing.",), _GENERIC),
    # runtime
    Cause("host-oom", _P, C.RUNTIME, "The container used more host memory than its limit (not GPU memory).", ("Raise the memory limit: weights pass through host memory while they load.", "Lower CPU offload, swap space or loader threads.")),
    Cause("ephemeral-storage", _P, C.RUNTIME, "The pod was evicted for the node's or its own ephemeral storage.", ("Put the model cache on a volume, and request ephemeral storage.",)),
    Cause("evicted-memory", _P, C.RUNTIME, "The pod was evicted because the node ran out of memory.", ("Set memory requests to what it uses; see who used more than requested on the node.",)),
    Cause("evicted", _P, C.RUNTIME, "The pod was evicted.", ("See who evicted it and why: node pressure, a drain, or a taint.",)),
    Cause("preempted", _P, C.RUNTIME, "The pod had to make room for one of higher priority.", ("See which pod came, and whether the priorities are meant so.",)),
    Cause("node-shutdown", _P, C.RUNTIME, "The node was shut down under the pod.", ("See whether it was maintenance or spot reclaim.",)),
    Cause("node-lost", _P, C.RUNTIME, "The node does not answer: what became of the pod is not known.", ("Look at the node; a GPU that falls off the bus may hang it.",)),
    Cause("deadline-exceeded", _P, C.RUNTIME, "The pod ran longer than its own deadline.", ("Raise `activeDeadlineSeconds`, or see why it took so long.",)),
    Cause("sandbox-network", _P, C.RUNTIME, "The pod gets no network on this node.", ("Look at the network plugin's pod on the node, and at free addresses.",)),
    Cause("sandbox-failed", _P, C.RUNTIME, "The node's container runtime cannot create the pod's sandbox.", ("Look at the container runtime's log on the node.",)),
    Cause("container-runtime", _P, C.RUNTIME, "The container runtime cannot create or start the container.", ("Read the runtime's answer; compare with another node.",), _GENERIC),
    Cause("no-gpu-in-container", _P, C.DEVICE, "The program sees no GPU in its container.", ("Check that the container has a GPU limit and the runtime class that the cluster needs.", "Then look at the device plugin, and at `NVIDIA_VISIBLE_DEVICES`.")),
    Cause("cuda-image-mismatch", _P, C.ENGINE, "The image's CUDA compatibility libraries do not fit the node's driver: an image problem that looks like a node's.", ("Use an image built for this driver, or take its CUDA compat path out of `LD_LIBRARY_PATH`.",)),
    Cause("ray-version-mismatch", _P, C.CONFIG, "Worker and head run different versions of Ray or Python.", ("Use the same image for head and workers, and its version as `rayVersion`.",)),
    Cause("ray-address", _P, C.CONFIG, "The worker asks for the Ray head at an address where none answers.", ("Compare the port (6379, not the dashboard's 8265) and `rayVersion` with the images; check NetworkPolicies.",)),
    Cause("ray-worker-not-registered", _P, C.RUNTIME, "The Ray worker did not register with the head in time.", ("Check the worker's resources and image pull; raise the time-out.",), _GENERIC),
    Cause("ray-head-unreachable", _P, C.DEPENDENCY, "The worker waits for the Ray head.", ("Look at the head pod and its Service first: the worker is a victim.",), _SYMPTOM),
    Cause("name-resolution", _P, C.RUNTIME, "A name cannot be resolved.", ("Check the cluster's DNS from this node, and the name.",), _GENERIC),
    # probes
    Cause("probe-kill", _P, C.PROBE, "The kubelet kills the container because a probe gives up before the model is loaded.", ("Compare failureThreshold × periodSeconds of the startup probe with how long this model takes to load, and raise it.", "If it was ready before, look for what made the engine hang."), _GENERIC),
    Cause("liveness-failing", _P, C.PROBE, "The liveness probe fails.", ("See whether the engine hangs, or is too busy to answer.",), _GENERIC),
    # what an exit code alone tells
    Cause("shared-memory-or-bus-error", _P, C.RUNTIME, "The program ended with a bus error (signal 7): mostly /dev/shm is too small.", ("Mount a memory-backed emptyDir at /dev/shm.",), _GENERIC),
    Cause("segmentation-fault", _P, C.RUNTIME, "The program crashed (signal 11).", ("Compare image and driver with a replica that works; look for an XID on the node.",), _GENERIC),
    Cause("aborted", _P, C.RUNTIME, "The program aborted itself (signal 6).", ("Read the lines before the abort in the previous log.",), _GENERIC),
    Cause("illegal-instruction", _P, C.RUNTIME, "The program uses an instruction that this processor lacks (signal 4).", ("Use an image for this processor, or other nodes.",), _GENERIC),
    Cause("killed-unexplained", _P, C.RUNTIME, "The container was killed (signal 9), and nothing says by whom: not its memory limit, not a probe.", ("Look at the node's kernel log for an out-of-memory kill, and for evictions.",), _GENERIC),
    Cause("terminated-from-outside", _P, C.RUNTIME, "The container was asked to stop (signal 15).", ("Look for Killing events: probe, drain, preemption, scale-down.",), _GENERIC),
    Cause("container-lost", _P, C.RUNTIME, "The kubelet lost track of the container.", ("Look at the node: restart of the kubelet, pressure, a reboot.",), _GENERIC),
    Cause("exit-code-unexplained", _P, C.UNKNOWN, "The program ended with an error, and nothing that is known says why.", ("Read the container's previous log: `kubectl logs --previous`.",), _SYMPTOM),
    Cause("exited-unexpectedly", _P, C.UNKNOWN, "The program ended without an error, although it should keep running.", ("Check the command: a server must stay in the foreground.",), _SYMPTOM),
    Cause("crash-loop-unexplained", _P, C.UNKNOWN, "The container crashes again and again; this is only the symptom.", ("Read the container's previous log: `kubectl logs --previous`.", "Look at `lastState.terminated`: exit code and message."), _SYMPTOM),
    Cause("container-creating", _P, C.UNKNOWN, "The container is being created, and nothing says what it waits for.", ("`kubectl describe pod`: volumes, image pull and network show as events.",), _SYMPTOM),
    Cause("init-waiting", _P, C.UNKNOWN, "An init container has not finished.", ("Read the log of the init container.",), _SYMPTOM),
    Cause("pod-failed-unexplained", _P, C.UNKNOWN, "The pod failed, and its status does not say why.", ("Look at the pod's events and at the node at that time.",), _SYMPTOM),
    Cause("pending-unexplained", Hop.SCHEDULING, C.UNKNOWN, "The pod is Pending, and nothing says why.", ("Check that a scheduler with the pod's `schedulerName` runs, then the pod's conditions.",), _SYMPTOM),
    Cause("stuck-terminating", _P, C.RUNTIME, "The pod is being deleted, and does not go away.", ("See which controller owns the finalizer, or whether the node answers.", "Until then it holds its GPUs.")),
)  # fmt: skip
