"""Pages of metrics as tests read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from sevenhop.telemetry.levels import Sample
from sevenhop.telemetry.meter import Meter
from sevenhop.telemetry.scrape import page


def read(meter: Meter, samples: Iterable[Sample] = ()) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """(series' name, labels) to value, of all that /metrics would serve."""
    text = page(meter.registry, list(samples)).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(meter: Meter, name: str, samples: Iterable[Sample] = (), **labels: str) -> float:
    """One series; NaN where there is none."""
    return read(meter, samples).get((name, frozenset(labels.items())), math.nan)
