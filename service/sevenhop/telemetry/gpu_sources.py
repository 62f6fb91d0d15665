"""Where GPU samples come from, as numbers: what agents pushed, what dcgm-exporter could not say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sevenhop.telemetry.levels import Sample


class Pushed(Protocol):
    """What takes agents' samples, such as `sources.gpu_push.receiver.GpuPush`."""

    taken: int
    refused: dict[Any, int]


class Looked(Protocol):
    """What looks at dcgm-exporter, such as `sources.dcgm.source.Dcgm`."""

    problems: dict[str, str]
    nameless: int


def gpu_source_samples(cluster: str, push: Pushed | None, dcgm: Iterable[Looked]) -> list[Sample]:
    """Of the sources that are there; of no others."""
    found: list[Sample] = []
    if push is not None:
        refused: Mapping[Any, int] = push.refused
        found.append(("sevenhop_gpu_push_events_total", (cluster,), push.taken))
        found += [("sevenhop_gpu_push_refused_total", (cluster, str(reason)), n) for reason, n in refused.items()]
    for each in dcgm:
        found.append(("sevenhop_dcgm_failing_addresses", (cluster,), len(each.problems)))
        found.append(("sevenhop_dcgm_nameless_series", (cluster,), each.nameless))
    return found
