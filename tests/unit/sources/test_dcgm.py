"""dcgm-exporter's page, or the same from Prometheus, says what our agent would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.events import Event, GpusSampled, XidSeen
from sevenhop.core.gpu_sample import Holder, Throttle
from sevenhop.sources.dcgm.mapping import NodeGpus, new_xids, read_nodes
from sevenhop.sources.dcgm.series import Series, SeriesError, parse_answer, parse_page
from sevenhop.sources.dcgm.settings import DcgmSettings
from sevenhop.sources.dcgm.source import Dcgm

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
GPU = 'gpu="0",UUID="GPU-a",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-01"'  # noqa: E501
POD = 'container="main",namespace="prod",pod="decode-0"'

PAGE = f"""# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{{GPU},{POD},DCGM_FI_DRIVER_VERSION="550.54.15"}} 40
DCGM_FI_PROF_SM_ACTIVE{{{GPU},{POD}}} 0.455
DCGM_FI_PROF_SM_OCCUPANCY{{{GPU},{POD}}} 0.125
DCGM_FI_DEV_FB_USED{{{GPU},{POD}}} 70000
DCGM_FI_DEV_FB_FREE{{{GPU},{POD}}} 11000
DCGM_FI_DEV_FB_RESERVED{{{GPU},{POD}}} 559
DCGM_FI_DEV_POWER_USAGE{{{GPU},{POD}}} 301.5
DCGM_FI_DEV_GPU_TEMP{{{GPU},{POD}}} 50
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{{GPU},{POD}}} 72
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{GPU},{POD}}} 1
DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{{GPU},{POD}}} 9223372036854775792
DCGM_FI_DEV_ROW_REMAP_PENDING{{{GPU},{POD}}} 1
DCGM_FI_DEV_ROW_REMAP_FAILURE{{{GPU},{POD}}} 0
DCGM_FI_DEV_XID_ERRORS{{{GPU},{POD},err_code="79",err_msg="GPU has fallen off the \\"bus\\", said, it"}} 79
go_goroutines 7
"""


def nodes_of(page: str, node_label: str = "") -> list[NodeGpus]:
    return read_nodes(parse_page(page, "DCGM_"), node_label)[0]


def test_a_page() -> None:
    """Each value in our unit; DCGM's number for "no value" is none."""
    (node,) = nodes_of(PAGE)
    (reading,) = node.readings
    assert (node.node, node.driver, node.has_holders) == ("gpu-01", "550.54.15", True)
    assert (reading.index, reading.uuid, reading.pci) == (0, "GPU-a", "0000:3b:00.0")
    assert reading.product == "NVIDIA H100 80GB HBM3"
    assert (reading.utilization, reading.sm_active, reading.sm_occupancy) == (0.4, 0.455, 0.125)
    assert (reading.memory_used_mib, reading.memory_total_mib) == (70000, 81559)
    assert (reading.power_w, reading.temperature_c, reading.throttle) == (301.5, 50, Throttle.THERMAL)
    assert (reading.ecc_uncorrected, reading.ecc_corrected) == (1, None)
    assert (reading.remap_pending, reading.remap_failed) == (True, False)
    assert reading.holders == (Holder("prod", "decode-0", "main"),)
    assert reading.last_xid == 79


def test_what_is_not_there_is_unknown() -> None:
    """A field that the exporter was not asked for is not 0."""
    (node,) = nodes_of(f"DCGM_FI_DEV_GPU_TEMP{{{GPU}}} 50\n")
    (reading,) = node.readings
    assert (reading.utilization, reading.throttle, reading.ecc_uncorrected, reading.remap_failed) == (None,) * 4
    assert reading.memory_total_mib is None


def test_instances() -> None:
    """MIG instances hang below their GPU, which has no series of its own; an instance without a pod is unknown."""
    part = f'{GPU},GPU_I_ID="9",GPU_I_PROFILE="1g.10gb"'
    (node,) = nodes_of(f'DCGM_FI_DEV_FB_USED{{{part},pod="",namespace=""}} 1\n')
    assert [(each.uuid, each.parent, each.profile) for each in node.readings] == [
        ("GPU-a", "", ""),
        ("MIG-GPU-a/9/0", "GPU-a", "1g.10gb"),
    ]
    assert not node.has_holders
    (node,) = nodes_of(f'{PAGE}DCGM_FI_DEV_FB_USED{{{part},pod="",namespace=""}} 1\n')
    assert not node.has_holders  # another GPU has its pod; this instance may have one too


@pytest.mark.parametrize(
    ("labels", "holders", "is_known"),
    [
        pytest.param('pod="decode-0",namespace="prod"', (Holder("prod", "decode-0"),), True, id="plain"),
        pytest.param(
            'pod="dcgm-x",namespace="gpu-operator",exported_pod="decode-0",exported_namespace="prod"',
            (Holder("prod", "decode-0"),),
            True,
            id="labels not honoured",
        ),
        pytest.param(
            'pod="nvidia-dcgm-exporter-x",namespace="gpu-operator",container="nvidia-dcgm-exporter"', (), False,
            id="the exporter holds nothing",
        ),
        pytest.param('pod="",namespace=""', (), False, id="empty"),
        pytest.param('device="nvidia0"', (), False, id="not asked for"),
    ],
)  # fmt: skip
def test_holders(labels: str, holders: tuple[Holder, ...], is_known: bool) -> None:
    """Whoever holds it, by whatever name; nobody is only said where anybody is."""
    labelled = 'gpu="0",UUID="GPU-a",Hostname="gpu-01",' + labels
    (node,) = nodes_of(f"DCGM_FI_DEV_GPU_TEMP{{{labelled}}} 50\n")
    assert node.readings[0].holders == holders
    assert node.has_holders is is_known


@pytest.mark.parametrize(
    ("labels", "chosen", "node"),
    [
        ('Hostname="dcgm-pod",node="gpu-01"', "", "gpu-01"),
        ('Hostname="gpu-02"', "", "gpu-02"),
        ('Hostname="dcgm-pod",where="gpu-03"', "where", "gpu-03"),
    ],
)
def test_which_node(labels: str, chosen: str, node: str) -> None:
    """The label that Prometheus adds is better than the exporter's own, which may be its pod's name."""
    found = nodes_of(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a",{labels}}} 50\n', chosen)
    assert [each.node for each in found] == [node]


def test_series_without_a_name_are_counted() -> None:
    """No node or no GPU: left out."""
    page = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 50\nDCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="n"} 50\n'
    assert read_nodes(parse_page(page, "DCGM_")) == ([], 2)


def xids(gauge: float, **counts: int) -> NodeGpus:
    page = f"DCGM_FI_DEV_XID_ERRORS{{{GPU}}} {gauge}\n"
    page += "".join(f'DCGM_EXP_XID_ERRORS_COUNT{{{GPU},xid="{x[1:]}"}} {n}\n' for x, n in counts.items())
    return nodes_of(page)[0]


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        pytest.param(None, xids(79), [], id="the last one alone is for the core to judge"),
        pytest.param(xids(0), xids(79), [], id="so is another one"),
        pytest.param(xids(13, x13=1), xids(13, x13=2), [13], id="the same one again, counted"),
        pytest.param(xids(13, x13=2), xids(13, x13=1), [], id="the window moved on"),
        pytest.param(xids(0, x31=0), xids(79, x31=1, x79=1), [31, 79], id="two at once, each once"),
        pytest.param(None, xids(0, x31=3), [], id="counted before we looked"),
    ],
)
def test_new_xids(before: NodeGpus | None, now: NodeGpus, found: list[int]) -> None:
    """Where counts are exported, none is missed; without them, what is the last is in the readings."""
    assert new_xids(before, now) == [("0000:3b:00.0", "GPU-a", xid) for xid in found]


@pytest.mark.parametrize(("series", "expected"), [("79", 79), ("0", 0), ("2147483632", None)], ids=str)
def test_the_last_xid_is_of_the_whole_gpu(series: str, expected: int | None) -> None:
    """Whether it is a new one shows against what was known before; instances repeat their GPU's."""
    part = f'{GPU},GPU_I_ID="1",GPU_I_PROFILE="1g.10gb"'
    (node,) = nodes_of(f"DCGM_FI_DEV_XID_ERRORS{{{part}}} {series}\nDCGM_FI_DEV_GPU_TEMP{{{part}}} 50\n")
    assert {reading.parent: reading.last_xid for reading in node.readings} == {"": expected, "GPU-a": None}


def as_prometheus(series: Iterable[Series]) -> bytes:
    rows = [{"metric": s.labels | {"__name__": s.name}, "value": [1.5, str(s.value)]} for s in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode()


def test_prometheus_says_the_same() -> None:
    """One mapping for both."""
    assert read_nodes(parse_answer(as_prometheus(parse_page(PAGE, "DCGM_")), "DCGM_")) == read_nodes(
        parse_page(PAGE, "DCGM_")
    )


@pytest.mark.parametrize(
    "page",
    [f"DCGM_FI_DEV_GPU_TEMP{{{GPU}", f"DCGM_FI_DEV_GPU_TEMP{{{GPU},bad}} 5", "DCGM_FI_DEV_GPU_TEMP"],
)
def test_a_page_that_is_cut_off(page: str) -> None:
    """It is not taken for a node with fewer GPUs."""
    with pytest.raises(SeriesError):
        list(parse_page(page, "DCGM_"))


@given(st.text(max_size=200) | st.text(max_size=200).map(lambda text: "DCGM_X{" + text))
def test_text_of_any_sort(text: str) -> None:
    """Read, or refused as what it is."""
    with suppress(SeriesError):
        list(parse_page(text, "DCGM_"))
    with suppress(SeriesError):
        list(parse_answer(text.encode("utf-8", "replace"), "DCGM_"))


@asynccontextmanager
async def exporter(answers: list[tuple[int, bytes]]) -> AsyncIterator[str]:
    """Answers one after the other."""

    async def take(_: web.Request) -> web.Response:
        status, body = answers.pop(0)
        return web.Response(status=status, body=body)

    app = web.Application()
    app.router.add_get("/metrics", take)
    app.router.add_get("/api/v1/query", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def looks(source: Dcgm, count: int) -> list[list[Event]]:
    found: list[list[Event]] = []

    async def emit(events: list[Event]) -> None:
        found[-1].extend(events)

    async with aiohttp.ClientSession(raise_for_status=True) as session:
        for _ in range(count):
            found.append([])
            await source.look(session, emit)
    return found


@pytest.mark.parametrize("way", ["page", "prometheus"])
async def test_looks_become_events(way: str) -> None:
    """An XID when it is counted, a whole sample each time, in growing order."""
    counted = f'{PAGE}DCGM_EXP_XID_ERRORS_COUNT{{{GPU},xid="79"}} 1\n'
    pages = [text.encode() if way == "page" else as_prometheus(parse_page(text, "DCGM_")) for text in (PAGE, counted)]
    async with exporter([(200, page) for page in pages]) as address:
        settings: Any = {"pages": [f"{address}/metrics"]} if way == "page" else {"prometheus": address}
        first, second = await looks(Dcgm(DcgmSettings(**settings), lambda: AT), 2)
    assert [type(event) for event in (*first, *second)] == [GpusSampled, XidSeen, GpusSampled]
    assert [event.seq for event in (*first, *second)] == [1, 2, 3]
    assert isinstance(first[0], GpusSampled)
    assert (first[0].is_whole, first[0].received_at, first[0].readings[0].last_xid) == (True, AT, 79)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (500, b"", "answers 500"),
        (200, b"", "no series of DCGM there"),
        (200, b"go_goroutines 7\n", "no series of DCGM there"),
        (200, b'DCGM_FI_DEV_GPU_TEMP{gpu="0"', "not a metric"),
        (302, b"", "no series of DCGM there"),
    ],
)
async def test_a_page_that_cannot_be_read_says_nothing_of_gpus(status: int, body: bytes, said: str) -> None:
    """They become unknown, never lost; and it is forgotten when it can be read again."""
    async with exporter([(status, body), (200, PAGE.encode())]) as address:
        source = Dcgm(DcgmSettings(pages=[f"{address}/metrics"]), lambda: AT)
        assert await looks(source, 1) == [[]]
        assert said in next(iter(source.problems.values()))
        assert len((await looks(source, 1))[0]) == 1
    assert source.problems == {}


async def test_nobody_there() -> None:
    """A line, and no event."""
    source = Dcgm(DcgmSettings(pages=["http://127.0.0.1:1/metrics"]), lambda: AT)
    assert await looks(source, 1) == [[]]
    assert len(source.problems) == 1
