"""
One GPU by NVML, with whatever its driver can tell: what it cannot is None, and never ends the reading of the others.

NVML: https://docs.nvidia.com/deploy/nvml-api.  Functions that an old driver lacks are told by pynvml as
``NVMLError_FunctionNotFound``, what the GPU lacks as ``NVMLError_NotSupported``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sevenhop.agent.nvml_told import Reading
from sevenhop.core.gpu_sample import GpuReading
from sevenhop.core.gpu_words import normal_pci, throttle_of

MIB = 1024 * 1024
MAX_LINKS = 36

_SM_UTIL, _SM_OCCUPANCY = 2, 3  # NVML_GPM_METRIC_…


class GpuGoneError(Exception):
    """The GPU cannot be spoken to any more; the text is NVML's own, such as ``GPU is lost``."""

    def __init__(self, error: Exception, *, is_gone: bool) -> None:
        super().__init__(str(error))
        self.is_gone = is_gone


class GpuReader:
    """
    Reads GPUs of this node, one at a time; remembers who sits at which index, for when it can no longer say.

    Args:
        nvml: The module `pynvml`, initialised.
        sees_all_processes: Whether we are in the node's PID namespace: the driver lists no process that our own
            cannot name, so that none may mean none that we may see.
    """

    def __init__(self, nvml: Any, *, sees_all_processes: bool = True) -> None:
        self._nvml = nvml
        self._sees_all_processes = sees_all_processes
        self._known: dict[int, tuple[GpuReading, int]] = {}
        self._gpm: dict[str, Any] = {}  # UUID to the sample before
        self._gpm_answer: Any = None
        self._lost = tuple(
            found for name in ("GpuIsLost", "GpuNotFound") if (found := getattr(nvml, f"NVMLError_{name}", None))
        )
        self._gone = (*self._lost, nvml.NVMLError_ResetRequired)
        self._over = (nvml.NVMLError_Uninitialized, nvml.NVMLError_DriverNotLoaded, nvml.NVMLError_LibRmVersionMismatch)
        # pynvml's own, no NVMLError: the unversioned name of a function whose newest version the driver lacks.
        self._mismatch = tuple(
            found for name in ("NVMLLibraryMismatchError",) if (found := getattr(nvml, name, None)) is not None
        )
        self._missing: set[str] = set()

    def read(self, index: int) -> Reading:
        """
        The GPU at an index.

        Raises:
            NVMLError: NVML as a whole is no longer usable: the driver was unloaded or replaced.
        """
        self._missing = set()
        try:
            gpu, minor, links, handle = self._read_gpu(index)
            instances = self._read_instances(handle, gpu)
        except GpuGoneError as error:
            return self._gone_at(index, error)
        self._known[index] = (gpu, minor)
        return Reading(
            index=index,
            readings=(gpu, *instances),
            minor=minor,
            links_up=links,
            missing=tuple(sorted(self._missing)),
        )

    def _gone_at(self, index: int, error: GpuGoneError) -> Reading:
        """Only who it was is still known: the values of before would be a claim about now."""
        if index not in self._known:
            return Reading(index=index, error=str(error), is_gone=error.is_gone)
        gpu, minor = self._known[index]
        who = GpuReading(index=index, uuid=gpu.uuid, product=gpu.product, pci=gpu.pci, error=str(error))
        return Reading(index=index, readings=(who,), minor=minor)

    def _gone_by(self, error: Exception) -> GpuGoneError:
        return GpuGoneError(error, is_gone=isinstance(error, self._lost))

    def _read_gpu(self, index: int) -> tuple[GpuReading, int, int | None, Any]:
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = nvml.nvmlDeviceGetUUID(handle)
        except self._over:
            raise
        except nvml.NVMLError as error:
            raise self._gone_by(error) from None
        minor = self._ask("nvmlDeviceGetMinorNumber", handle)
        gpu = GpuReading(
            index=index,
            uuid=uuid,
            product=self._ask("nvmlDeviceGetName", handle) or "",
            pci=self._pci(handle),
            **self._memory(handle),
            **self._use(handle, uuid),
            **self._state(handle),
            processes=self._processes(handle),
        )
        return gpu, -1 if minor is None else minor, self._links_up(handle), handle

    def _read_instances(self, handle: Any, gpu: GpuReading) -> list[GpuReading]:
        """MIG instances, where MIG is on.  What NVML tells of the whole GPU only (power, heat, ECC) is the GPU's."""
        mode = self._ask("nvmlDeviceGetMigMode", handle)
        if not mode or mode[0] != self._nvml.NVML_FEATURE_ENABLED:
            return []
        found = []
        for number in range(self._ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
            try:
                instance = self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
                uuid = self._nvml.nvmlDeviceGetUUID(instance)
            except self._gone as error:
                raise self._gone_by(error) from None
            except self._nvml.NVMLError:
                continue  # no instance there: they need not lie side by side
            name = self._ask("nvmlDeviceGetName", instance) or ""
            at = self._ask("nvmlDeviceGetGpuInstanceId", instance)
            found.append(
                GpuReading(
                    index=gpu.index,
                    uuid=uuid,
                    product=gpu.product,
                    pci=gpu.pci,
                    parent=gpu.uuid,
                    profile=_profile(name),
                    **self._memory(instance),
                    **({} if at is None else self._gpm_use(uuid, handle, at)),
                    processes=self._processes(instance),
                )
            )
        return found

    def _ask(self, name: str, *args: Any) -> Any:
        """
        One call; None where this driver or GPU cannot tell.

        Raises:
            GpuGoneError: The GPU was lost.
        """
        nvml = self._nvml
        try:
            return getattr(nvml, name)(*args)
        except self._gone as error:
            raise self._gone_by(error) from None
        except self._over:
            raise
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
            return None
        except (AttributeError, UnicodeDecodeError, nvml.NVMLError, *self._mismatch) as error:
            # Absent from the driver, or from pynvml; or it failed in a way of its own.
            is_absent = isinstance(error, (AttributeError, nvml.NVMLError_FunctionNotFound, *self._mismatch))
            self._missing.add(name if is_absent else f"{name}: {error}")
            return None

    def _first(self, *questions: Callable[[], Any]) -> Any:
        """The answer of the newest function that the driver has; older ones are no lack then."""
        before = set(self._missing)
        for question in questions:
            answer = question()
            if answer is not None:
                self._missing = before
                return answer
        return None

    def _pci(self, handle: Any) -> str:
        info = self._ask("nvmlDeviceGetPciInfo", handle)
        if info is None:
            return ""
        bus = info.busId.decode() if isinstance(info.busId, bytes) else str(info.busId)
        try:
            return normal_pci(bus)
        except ValueError:
            self._missing.add("nvmlDeviceGetPciInfo: not a PCI address")
            return ""

    def _memory(self, handle: Any) -> dict[str, Any]:
        info = self._ask("nvmlDeviceGetMemoryInfo", handle)
        if info is None:
            return {}
        return {"memory_used_mib": info.used // MIB, "memory_total_mib": info.total // MIB}

    def _use(self, handle: Any, uuid: str) -> dict[str, Any]:
        rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
        power = self._ask("nvmlDeviceGetPowerUsage", handle)
        found: dict[str, Any] = self._gpm_use(uuid, handle, None)
        found["utilization"] = None if rates is None else rates.gpu / 100
        found["power_w"] = None if power is None else power / 1000
        return found

    def _state(self, handle: Any) -> dict[str, Any]:
        nvml = self._nvml
        bits = self._first(
            lambda: self._ask("nvmlDeviceGetCurrentClocksEventReasons", handle),  # from R535
            lambda: self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle),
        )
        ecc = [
            self._ask("nvmlDeviceGetTotalEccErrors", handle, kind, nvml.NVML_VOLATILE_ECC)
            for kind in (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED)
        ]
        rows = self._ask("nvmlDeviceGetRemappedRows", handle)  # from Ampere on; before, whole pages are retired
        pages = self._ask("nvmlDeviceGetRetiredPagesPendingStatus", handle) if rows is None else None
        return {
            "temperature_c": self._ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU),
            "throttle": None if bits is None else throttle_of(bits),
            "ecc_uncorrected": ecc[0],
            "ecc_corrected": ecc[1],
            "remap_pending": bool(rows[2]) if rows is not None else None if pages is None else bool(pages),
            "remap_failed": bool(rows[3]) if rows is not None else None,
        }

    def _links_up(self, handle: Any) -> int | None:
        states = []
        for link in range(MAX_LINKS):
            state = self._ask("nvmlDeviceGetNvLinkState", handle, link)
            if state is None:
                break
            states.append(state)
        return sum(1 for state in states if state) if states else None

    def _processes(self, handle: Any) -> int | None:
        found = self._first(
            lambda: self._ask("nvmlDeviceGetComputeRunningProcesses_v3", handle),
            lambda: self._ask("nvmlDeviceGetComputeRunningProcesses_v2", handle),  # before R510
        )
        if found is None or (not found and not self._sees_all_processes):
            return None
        return len(found)

    def _gpm_use(self, uuid: str, handle: Any, instance: int | None) -> dict[str, Any]:
        """SM activity since the reading before (GPM, from Hopper on); empty the first time."""
        if instance is None:
            support = self._ask("nvmlGpmQueryDeviceSupport", handle)
            if support is None or not support.isSupportedDevice:
                return {}
        sample = self._ask("nvmlGpmSampleAlloc")
        if sample is None:
            return {}
        taken = (
            self._ask("nvmlGpmSampleGet", handle, sample)
            if instance is None
            else self._ask("nvmlGpmMigSampleGet", handle, instance, sample)
        )
        if taken is None:
            self._ask("nvmlGpmSampleFree", sample)
            return {}
        before, self._gpm[uuid] = self._gpm.get(uuid), sample
        if before is None:
            return {}
        found = self._gpm_between(before, sample)
        self._ask("nvmlGpmSampleFree", before)
        return found

    def _gpm_between(self, before: Any, now: Any) -> dict[str, Any]:
        nvml = self._nvml
        question = self._gpm_answer = self._gpm_answer or nvml.c_nvmlGpmMetricsGet_t()
        question.version = nvml.NVML_GPM_METRICS_GET_VERSION
        question.numMetrics = 2
        question.sample1, question.sample2 = before, now
        for place, metric in enumerate((_SM_UTIL, _SM_OCCUPANCY)):
            question.metrics[place].metricId = metric
        if self._ask("nvmlGpmMetricsGet", question) is None:
            return {}
        values = [
            min(each.value / 100, 1.0) if each.nvmlReturn == 0 and each.value >= 0 else None
            for each in question.metrics[:2]
        ]
        return {"sm_active": values[0], "sm_occupancy": values[1]}


def _profile(name: str) -> str:
    """
    >>> _profile("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), _profile("NVIDIA H100")
    ('1g.10gb', '')
    """
    return name.partition(" MIG ")[2]


def with_error(readings: tuple[GpuReading, ...], error: str) -> tuple[GpuReading, ...]:
    """The same GPUs, of which nothing but who they are is known now."""
    return tuple(
        GpuReading(
            index=each.index, uuid=each.uuid, product=each.product, pci=each.pci, parent=each.parent,
            profile=each.profile, error=error,
        )
        for each in readings
    )  # fmt: skip
