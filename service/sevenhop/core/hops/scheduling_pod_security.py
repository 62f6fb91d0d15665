"""
Pod Security admission against a pod that is still to be made.

The rules are those of kubernetes.io/docs/concepts/security/pod-security-standards.
"""

from __future__ import annotations

from sevenhop.core.objects.pod import TemplateContainer, TemplateSpec

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


def violations(level: str, spec: TemplateSpec) -> list[str]:
    """
    What the level forbids about the pod, as far as it can be seen; volume types and SELinux are not looked at.

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
    for container in (*spec.init_containers, *spec.containers):
        out += _baseline(container)
        if level == "restricted":
            out += _restricted(container, spec)
    return list(dict.fromkeys(out))


def _baseline(container: TemplateContainer) -> list[str]:
    out = []
    context = container.security_context
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
    non_root = own.run_as_non_root if own is not None and own.run_as_non_root is not None else None
    if non_root is None and of_pod is not None:
        non_root = of_pod.run_as_non_root
    if non_root is not True:
        out.append(f"container {container.name} lacks runAsNonRoot: true")
    profile = (own.seccomp_profile if own is not None else None) or (of_pod.seccomp_profile if of_pod else None)
    if profile is None or profile.type not in ("RuntimeDefault", "Localhost"):
        out.append(f"container {container.name} has no seccompProfile")
    return out
