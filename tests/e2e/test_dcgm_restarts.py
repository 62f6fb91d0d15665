"""dcgm-exporter on a real control plane: its last XID stays for ever, and neither side's restart makes it a new one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.service import Service
from tests.testbed.plugin import Pool
from tests.testbed.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


class Exporter:
    """
    One node's metrics page.

    Attributes:
        xids: By index of the GPU, the last one; a GPU that is not there has no series.
        is_up: Answers; else 503.
    """

    def __init__(self, node: str, xids: dict[int, int]) -> None:
        self.xids, self.is_up, exporter = xids, True, self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if exporter.is_up else 503)
                self.end_headers()
                if exporter.is_up:
                    self.wfile.write(exporter.page(node).encode())

            def log_message(self, *_: Any) -> None:
                """Not on the test's output."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def page(self, node: str) -> str:
        lines = []
        for index, xid in self.xids.items():
            of = (
                f'gpu="{index}",UUID="GPU-{node}-{index}",pci_bus_id="00000000:{59 + index:02X}:00.0",Hostname="{node}"'
            )
            lines += [f"DCGM_FI_DEV_XID_ERRORS{{{of}}} {xid}", f"DCGM_FI_DEV_GPU_TEMP{{{of}}} 41"]
        return "\n".join(lines) + "\n"


@pytest.fixture
def exporters() -> Iterator[Callable[[str, dict[int, int]], Exporter]]:
    made: list[Exporter] = []

    def make(node: str, xids: dict[int, int]) -> Exporter:
        made.append(Exporter(node, xids))
        return made[-1]

    yield make
    for each in made:
        each.server.shutdown()


def test_a_last_xid_over_restarts(
    pool: Pool, start: Callable[..., Service], exporters: Callable[[str, dict[int, int]], Exporter]
) -> None:
    """What stands there at first sight is unknown; a change is told within a look; what was told is told once."""
    (name,) = pool.add_gpu_nodes(1, gpus=2)
    exporter = exporters(name, {0: 0, 1: 79})
    service = start(only_console=True, rules=("gpu-lost",), more={"dcgm": {"pages": [exporter.address], "every": "1s"}})

    def xids() -> list[int | None]:
        return [row["xid"] for row in service.rows("gpus") if row["node"] == name]

    eventually(lambda: xids() == [0, None], timeout=30, what="the first look")
    assert "XID 79 stood there at our first look" in service.rows("gpus")[1]["unknown"]

    exporter.xids[0] = 48
    began = time.monotonic()
    eventually(lambda: xids() == [48, None], timeout=20, every=0.05, what="the change")
    print(f"another last XID → get gpus: {time.monotonic() - began:.2f} s")
    eventually(lambda: "XID 48" in service.console, timeout=20, what="the message")

    exporter.is_up = False
    eventually(lambda: "answers 503" in str(service.doctor()), timeout=20, what="the exporter's absence")
    exporter.is_up = True
    eventually(lambda: "answers 503" not in str(service.doctor()), timeout=20, what="the exporter's return")
    assert xids() == [48, None]
    (before,) = [row for row in service.rows("alerts") if row["rule"] == "gpu-fatal-error"]

    service.stop()
    service.start()
    eventually(lambda: xids() == [48, None], timeout=30, what="the look after our restart")
    (after,) = [row for row in service.rows("alerts") if row["rule"] == "gpu-fatal-error"]
    assert (after["subject"], after["since"]) == (before["subject"], before["since"])
    exporter.xids[1] = 0  # it was started anew: nothing new, and what is unknown stays so
    time.sleep(3)
    assert xids() == [48, None]
    assert [row["xid_repeats_24h"] for row in service.rows("gpus")] == [0, 0]
