"""
Which container the kubelet gave which device: its Pod Resources API, gRPC over a unix socket.

``v1.PodResourcesLister/List`` of k8s.io/kubelet/pkg/apis/podresources/v1: device plug-ins since 1.20, DRA claims in
`dynamic_resources` by default since 1.34.  Mount the folder, not the socket: a restarted kubelet makes a new one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from sevenhop.agent.protobuf import ProtobufError, messages, text
from sevenhop.core.gpu_sample import Holder

SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
METHOD = "/v1.PodResourcesLister/List"
CALL_S = 5.0
MAX_ANSWER = 16 * 1024 * 1024
"""As large as the kubelet's own client takes."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """
    A device and the container that has it.

    Attributes:
        resource: Such as ``nvidia.com/gpu``; the driver's name where it came by a DRA claim.
        id: As the plug-in calls it: a UUID, an index, a device file.
        is_claimed: By DRA; `id` is then the device's name in the driver's pool.
    """

    holder: Holder
    resource: str
    id: str
    is_claimed: bool = False


class PodResourcesError(Exception):
    """The kubelet does not tell; one line that says why, and the fix where there is one."""


class PodResources:
    """Asks the kubelet; goes on by itself when the kubelet has started anew."""

    def __init__(self, socket: Path = SOCKET, *, call_s: float = CALL_S) -> None:
        self._socket = socket
        self._call_s = call_s
        self._channel: Any = None
        self._list: Any = None

    async def devices(self) -> tuple[Device, ...]:
        """
        Every device that a container holds.

        Raises:
            PodResourcesError: No socket, refused, no answer in time, or one that cannot be read.
        """
        if not self._socket.exists():
            raise PodResourcesError(f"Pod Resources: {self._socket} is not there; mount its folder into the agent")
        try:
            import grpc
            from grpc import aio
        except ImportError:
            raise PodResourcesError("Pod Resources: grpcio is not installed: pip install 'sevenhop[agent]'") from None
        if self._channel is None:
            options = [
                ("grpc.max_receive_message_length", MAX_ANSWER),
                ("grpc.enable_http_proxy", 0),
                ("grpc.initial_reconnect_backoff_ms", 500),
                ("grpc.max_reconnect_backoff_ms", 5000),
                ("grpc.default_authority", "localhost"),
            ]
            self._channel = aio.insecure_channel(f"unix://{self._socket.absolute()}", options=options)
            # The messages as bytes: the answer is read here, the question is empty.
            self._list = self._channel.unary_unary(METHOD)
        try:
            answer: bytes = await self._list(b"", timeout=self._call_s)
        except aio.AioRpcError as error:
            # A new channel looks the socket up again, and waits for no back-off of the old one.
            await self.close()
            raise PodResourcesError(_why(error.code(), grpc)) from None
        try:
            return parse_list(answer)
        except ProtobufError as error:
            raise PodResourcesError(f"Pod Resources: the kubelet's answer cannot be read: {error}") from None

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


def parse_list(answer: bytes) -> tuple[Device, ...]:
    """
    A `ListPodResourcesResponse`.

    Raises:
        ProtobufError: Not one.
    """
    found = []
    for pod in messages(answer, 1):
        name, namespace = text(pod, 1), text(pod, 2)
        for container in messages(pod, 3):
            holder = Holder(namespace, name, text(container, 1))
            for devices in messages(container, 2):
                resource = text(devices, 1)
                for device in messages(devices, 2):
                    found.append(Device(holder=holder, resource=resource, id=_utf8(device)))
            for claim in messages(container, 5):
                for resource_of in messages(claim, 4):
                    driver, device_name = text(resource_of, 2), text(resource_of, 4)
                    # Before 1.34 only the CDI name was told: k8s.gpu.nvidia.com/device=gpu-0.
                    names = [device_name] if device_name else [text(each, 1) for each in messages(resource_of, 1)]
                    found += [Device(holder=holder, resource=driver, id=each, is_claimed=True) for each in names]
    return tuple(found)


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ProtobufError("not UTF-8") from None


def _why(code: Any, grpc: Any) -> str:
    status = grpc.StatusCode
    if code is status.UNIMPLEMENTED:
        return "Pod Resources: this kubelet does not serve v1 (Kubernetes before 1.20)"
    if code is status.UNAVAILABLE:
        return "Pod Resources: the kubelet's socket refuses; is the kubelet up, and may the agent open it?"
    if code is status.DEADLINE_EXCEEDED:
        return "Pod Resources: the kubelet did not answer in time"
    return f"Pod Resources: the kubelet refuses: {code.name.lower()}"
