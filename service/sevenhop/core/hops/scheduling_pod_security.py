"""
Pod Security admission against a pod that is still to be made.

The rules are those of kubernetes.io/docs/concepts/security/pod-security-standards.
"""

from __future__ import annotations

from collections.abc import Iterator

from sevenhop.core.objects.pod import SecurityContext, TemplateContainer, TemplateSpec

ENFORCE = "pod-security.kubernetes.io/enforce"

_BASELINE_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)


_SAFE_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
_SE_LINUX_TYPES = frozenset(("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"))
_OTHER_VOLUMES = ("nfs", "iscsi", "fc", "cephfs", "rbd", "glusterfs", "flex_volume")


def violations(level: str, spec: TemplateSpec) -> list[str]:
    """
    What the level forbids about the pod, as far as it can be seen; hosts that probes call are not looked at.

    Args:
        level: ``privileged``, ``baseline`` or ``restricted``; any other forbids nothing.
    """
    if level not in ("baseline", "restricted"):
        return []
    out = [
        name
        for name, on in (("hostNetwork", spec.host_network), ("hostIPC", spec.host_ipc), ("hostPID", spec.host_pid))
        if on
    ]
    out += [f"volume {volume.name} is of hostPath" for volume in spec.volumes if volume.host_path is not None]
    out += _loose(spec.security_context, "the pod")
    if level == "restricted":
        out += [
            f"volume {volume.name} is of {kind}"
            for volume in spec.volumes
            for kind in _OTHER_VOLUMES
            if getattr(volume, kind) is not None
        ]
        if spec.security_context is not None and spec.security_context.run_as_user == 0:
            out.append("the pod runs as root")
    for container in (*spec.init_containers, *spec.containers):
        out += _baseline(container)
        if level == "restricted":
            out += _restricted(container, spec)
    return list(dict.fromkeys(out))


def _loose(context: SecurityContext | None, who: str) -> Iterator[str]:
    """What baseline forbids in a security context, of a pod and of a container alike."""
    if context is None:
        return
    if context.seccomp_profile is not None and context.seccomp_profile.type == "Unconfined":
        yield f"{who} has seccompProfile Unconfined"
    if context.app_armor_profile is not None and context.app_armor_profile.type == "Unconfined":
        yield f"{who} has appArmorProfile Unconfined"
    options = context.se_linux_options or {}
    if options.get("type", "") not in _SE_LINUX_TYPES or options.get("user") or options.get("role"):
        yield f"{who} sets seLinuxOptions"
    if (context.windows_options or {}).get("hostProcess"):
        yield f"{who} is a host process"
    if context.proc_mount not in ("", "Default"):
        yield f"{who} has procMount {context.proc_mount}"
    unsafe = sorted({str(each.get("name", "")) for each in context.sysctls} - _SAFE_SYSCTLS)
    if unsafe:
        yield f"{who} sets {', '.join(unsafe)}"


def _baseline(container: TemplateContainer) -> list[str]:
    context = container.security_context
    out = list(_loose(context, f"container {container.name}"))
    if context is not None and context.privileged:
        out.append(f"container {container.name} is privileged")
    if any(p.host_port for p in container.ports):
        out.append(f"container {container.name} uses a host port")
    added = set(context.capabilities.add) if context is not None and context.capabilities is not None else set()
    if added - _BASELINE_CAPABILITIES:
        out.append(f"container {container.name} adds {', '.join(sorted(added - _BASELINE_CAPABILITIES))}")
    return out


def _restricted(container: TemplateContainer, spec: TemplateSpec) -> list[str]:
    own, of_pod = container.security_context, spec.security_context
    out = []
    if own is None or own.allow_privilege_escalation is not False:
        out.append(f"container {container.name} lacks allowPrivilegeEscalation: false")
    if own is None or own.capabilities is None or "ALL" not in own.capabilities.drop:
        out.append(f"container {container.name} does not drop ALL capabilities")
    added = set(own.capabilities.add) if own is not None and own.capabilities is not None else set()
    if added & _BASELINE_CAPABILITIES - {"NET_BIND_SERVICE"}:
        out.append(f"container {container.name} adds {', '.join(sorted(added - {'NET_BIND_SERVICE'}))}")
    if own is not None and own.run_as_user == 0:
        out.append(f"container {container.name} runs as root")
    non_root = own.run_as_non_root if own is not None and own.run_as_non_root is not None else None
    if non_root is None and of_pod is not None:
        non_root = of_pod.run_as_non_root
    if non_root is not True:
        out.append(f"container {container.name} lacks runAsNonRoot: true")
    profile = (own.seccomp_profile if own is not None else None) or (of_pod.seccomp_profile if of_pod else None)
    if profile is None or profile.type not in ("RuntimeDefault", "Localhost"):
        out.append(f"container {container.name} has no seccompProfile")
    return out
