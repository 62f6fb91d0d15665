"""What the driver writes into the kernel log is understood in all its spellings."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.agent.xid_lines import MAX_TEXT, GpuAt, Malformed, XidLine, parse_line
from sevenhop.core.gpu_words import normal_pci
from tests.shared import shared_path

HEAD = "NVRM: Xid (PCI:0000:3b:00): "


@pytest.mark.parametrize(
    "text",
    ["0000:3b:00", "0000:3b:00.0", "00000000:3B:00.0", "0000:3B:00", "3b:00.0", " 0000:3b:00.0 "],
)
def test_spellings_of_an_address_are_one(text: str) -> None:
    """The kernel, NVML and people write the same place differently."""
    assert normal_pci(text) == "0000:3b:00.0"


@pytest.mark.parametrize("text", ["", "0000:3b", "GPU-1", "0000:3b:00.9", "zz:00.0", "0000:3b:00.0 x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="not a PCI address"):
        normal_pci(text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            HEAD + "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            XidLine(pci="0000:3b:00.0", xid=79, text="GPU has fallen off the bus."),
            id="unknown process",
        ),
        pytest.param(
            HEAD + "94, pid=2503421, name=python3, Ch 00000008",
            XidLine(pci="0000:3b:00.0", xid=94, pid=2503421, text="Ch 00000008"),
            id="process",
        ),
        pytest.param(
            "NVRM: Xid (PCI:00000000:3B:00.0): 45, pid=7, name=ray::WorkerDict, Ch 1: a",
            XidLine(pci="0000:3b:00.0", xid=45, pid=7, text="Ch 1: a"),
            id="colons in the name",
        ),
        pytest.param(
            HEAD + "13, pid=7, name=secret,name, Graphics Exception",
            XidLine(pci="0000:3b:00.0", xid=13, pid=7, text="Graphics Exception"),
            id="a comma in the name",
        ),
        pytest.param(
            "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            XidLine(
                pci="0008:01:00.0",
                xid=154,
                text="GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            ),
            id="no process",
        ),
        pytest.param(HEAD + "999", XidLine(pci="0000:3b:00.0", xid=999), id="unknown and bare"),
        pytest.param(
            "NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.",
            XidLine(pci="0000:91:00.0", xid=79, text="GPU has fallen off the bus."),
            id="fallen off without an XID",
        ),
        pytest.param(
            "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus "
            "and is not responding to commands.",
            XidLine(pci="0000:b3:00.0", xid=79, text="GPU has fallen off the bus."),
            id="fallen off, longer",
        ),
        pytest.param(
            "NVRM: Xid (0000:3b:00): 79, GPU has fallen off the bus.",
            XidLine(pci="0000:3b:00.0", xid=79, text="GPU has fallen off the bus."),
            id="as old drivers write it",
        ),
        pytest.param(
            "NVRM: GPU at PCI:0000:91:00 has fallen off the bus.",
            XidLine(pci="0000:91:00.0", xid=79, text="GPU has fallen off the bus."),
            id="fallen off, as old drivers write it",
        ),
        pytest.param(
            "[12345.678] NVRM: Xid (PCI:0000:3b:00): 48, pid=1, name=a b, DBE",
            XidLine(pci="0000:3b:00.0", xid=48, pid=1, text="DBE"),
            id="with the time before it, and a blank in the name",
        ),
        pytest.param(
            "NVRM: GPU at PCI:0000:91:00: GPU-12345678-1234-1234-1234-123456789abc",
            GpuAt("0000:91:00.0", "GPU-12345678-1234-1234-1234-123456789abc"),
            id="who sits where",
        ),
        pytest.param("NVRM: loading NVIDIA UNIX Open Kernel Module", None, id="the driver, of something else"),
        pytest.param("eth0: Xid is not ours", None, id="somebody else"),
    ],
)
def test_a_line(line: str, expected: object) -> None:
    """Place, number and process as they stand there, the name of the process left out."""
    assert parse_line(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:3b): 79, gone",
        "NVRM: Xid (PCI:0000:3b:00): seventy",
        "NVRM: Xid",
        "NVRM: Xid (PCI:0000:3b:00) 79",
        "NVRM: Xid (PCI:0000:3b:00): 7.9, what",
        "NVRM: Xid (PCI:): 79",
    ],
)
def test_a_line_that_cannot_be_read_is_told_apart(line: str) -> None:
    """It speaks of an XID, so it is counted rather than passed over."""
    assert isinstance(parse_line(line), Malformed)


@given(st.text(max_size=300))
def test_no_text_ends_the_agent(text: str) -> None:
    """Whatever follows, the result is one of ours and short."""
    for line in (text, HEAD + text, HEAD + "79" + text, "NVRM: GPU at PCI:" + text):
        found = parse_line(line)
        assert found is None or isinstance(found, XidLine | GpuAt | Malformed)
        if isinstance(found, XidLine):
            assert len(found.text) <= MAX_TEXT


def test_real_lines() -> None:
    """Lines from users' logs and other tools' tests are all understood, and name no process."""
    samples = yaml.safe_load(shared_path("data/failures/xid.yaml").read_text("utf-8"))["log_formats"]["samples"]
    assert len(samples) >= 10
    for line in samples:
        found = parse_line(line)
        assert isinstance(found, XidLine), line
        assert f"): {found.xid}" in line
        assert "pid=" not in found.text
        assert "name=" not in found.text
