"""
The process that alone speaks with NVML: ``python -m sevenhop.agent.nvml_process``.

A call into a driver that hangs can be neither cancelled nor left behind in a thread that holds NVML's lock; a process
can be ended and replaced, and one that crashes inside the driver's library takes nothing with it.

Asked on standard input, a line each (``count``, ``read 3``); answers on standard output, in order, and XIDs unasked.
Ends when its input ends.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from sevenhop.agent import nvml_told as told
from sevenhop.agent.nvml_read import GpuReader
from sevenhop.core.gpu_words import normal_pci

EVENT_WAIT_MS = 1000
RETRY_S = 5.0

INIT_PID_NAMESPACE = 0xEFFFFFFC
"""Its inode is the same on every Linux: PROC_PID_INIT_INO in include/linux/proc_ns.h."""

_writing = threading.Lock()


def load_pynvml() -> Any:
    """
    Raises:
        ImportError: The extra ``agent`` is not installed.
    """
    with warnings.catch_warnings():
        # The name pynvml announces on PyPI that nvidia-ml-py has taken it over; we depend on both for that reason.
        warnings.filterwarnings("ignore", message="The pynvml package is deprecated", category=FutureWarning)
        import pynvml

    return pynvml


def main() -> int:
    out = os.dup(1)
    os.dup2(2, 1)  # whatever the driver's library prints must not come between the lines
    try:
        nvml = load_pynvml()
    except ImportError:
        _tell(out, told.Said(text="pynvml is not installed: pip install 'sevenhop[agent]'", is_fatal=True))
        return 1
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        _tell(out, told.Said(text=_why_not(nvml, error), is_fatal=True))
        return 1
    threading.Thread(target=_watch, args=(nvml, out), daemon=True).start()
    sees_all = _is_in_node_pid_namespace()
    if not sees_all:
        _tell(out, told.Said(text="NVML: processes of others are not shown; run the agent with hostPID"))
    reader = GpuReader(nvml, sees_all_processes=sees_all)
    try:
        for line in sys.stdin:
            _answer(nvml, reader, line.split(), out)
    except nvml.NVMLError as error:
        _tell(out, told.Said(text=f"NVML: {error}", is_fatal=True))
        return 1
    return 0


def _is_in_node_pid_namespace() -> bool:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino == INIT_PID_NAMESPACE
    except OSError:
        return False


def _answer(nvml: Any, reader: GpuReader, words: list[str], out: int) -> None:
    match words:
        case ["count"]:
            _tell(out, told.Found(count=nvml.nvmlDeviceGetCount(), driver=_driver(nvml)))
        case ["read", index]:
            _tell(out, reader.read(int(index)))
        case _:
            _tell(out, told.Said(text=f"not understood: {' '.join(words)[:40]}"))


def _driver(nvml: Any) -> str:
    try:
        return str(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return ""


def _why_not(nvml: Any, error: Exception) -> str:
    if isinstance(error, nvml.NVMLError_LibraryNotFound):
        return "NVML: libnvidia-ml.so.1 is not there: no NVIDIA driver on this node, or not mounted into the container"
    return f"NVML cannot be used: {error}"


def _watch(nvml: Any, out: int) -> None:
    """XIDs by NVML's event set, for as long as the process lives."""
    is_said = False
    while True:
        try:
            _wait_for_events(nvml, out)
        except (AttributeError, nvml.NVMLError) as error:
            # A GPU that was just lost ends a wait too: set up anew, without it.
            if not is_said and not isinstance(error, nvml.NVMLError_GpuIsLost):
                is_said = True
                _tell(out, told.Said(text=f"NVML events: {error}; XIDs come from the kernel log alone, if at all"))
            time.sleep(RETRY_S if is_said else 1.0)


def _wait_for_events(nvml: Any, out: int) -> None:
    wanted = nvml.nvmlEventTypeXidCriticalError | nvml.nvmlEventTypeDoubleBitEccError | nvml.nvmlEventMigConfigChange
    events = nvml.nvmlEventSetCreate()
    places: dict[int, tuple[str, str]] = {}
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                supported = nvml.nvmlDeviceGetSupportedEventTypes(handle)
                nvml.nvmlDeviceRegisterEvents(handle, wanted & supported, events)
            except nvml.NVMLError:  # lost, a vGPU, or too old for events: the kernel log may still tell
                continue
            places[_address(handle)] = _place(nvml, handle)
        if not places:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        while True:
            try:
                event = nvml.nvmlEventSetWait(events, EVENT_WAIT_MS)
            except nvml.NVMLError_Timeout:
                continue
            if event.eventType != nvml.nvmlEventTypeXidCriticalError:
                _tell(out, told.Stirred())
                continue
            pci, uuid = places.get(_address(event.device), ("", ""))
            _tell(out, told.Xid(xid=int(event.eventData), pci=pci, uuid=uuid))
    finally:
        nvml.nvmlEventSetFree(events)


def _address(handle: Any) -> int:
    import ctypes

    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _place(nvml: Any, handle: Any) -> tuple[str, str]:
    """PCI address and UUID, asked while the GPU still answers."""
    try:
        bus = nvml.nvmlDeviceGetPciInfo(handle).busId
        return normal_pci(bus.decode() if isinstance(bus, bytes) else bus), nvml.nvmlDeviceGetUUID(handle)
    except (ValueError, nvml.NVMLError):
        return "", ""


def _tell(out: int, what: told.Told) -> None:
    line = told.encode(what) + b"\n"
    with _writing:
        while line:
            line = line[os.write(out, line) :]


if __name__ == "__main__":
    sys.exit(main())
