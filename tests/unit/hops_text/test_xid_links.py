"""Errors of NVLink: the unit and the registers in the driver's line say what to do, the word alone does not."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.core.hops.xid_links import APP, NOTHING, RESET, asks_for, is_harmless_74
from sevenhop.core.hops.xids import XidClass, class_of, rank_of
from tests.shared import SHARED


def line(unit: str, severity: str, first: int, status: int | None = 0, link: str = "Link 09") -> str:
    more = "" if status is None else f" 0x{status:08x} 0x00000000 0x00000000 0x00000000 0x00000000"
    return f"{unit} {severity} XC0 i0 {link} (0x{first:08x}{more})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Registers as drivers before R575 write them, and as newer ones do.
        pytest.param(line("RLW_RXPIPE", "Nonfatal", 0x040130C2, 0x8), NOTHING, id="nothing to do"),
        pytest.param(line("SAW_MVB", "Nonfatal", 0x21, 0x4), NOTHING, id="corrected"),
        pytest.param(line("SAW_MVB", "Fatal", 0x21, 0x2), RESET, id="both say fatal"),
        pytest.param(line("SAW_MVB", "Nonfatal", 0x01, 0x10), RESET, id="the table outweighs its word"),
        pytest.param(line("RLW_SRC_TRACK", "Nonfatal", 0xE2, 0x4), APP, id="the program, without a directive"),
        pytest.param(line("RLW_REMAP", "Nonfatal", 0x82, 0x41), RESET, id="of two bits the worse"),
        pytest.param(line("RLW_REMAP", "Nonfatal", 0x82, 0x101), APP, id="of two bits the program's"),
        pytest.param(line("RLW_REMAP", "Nonfatal", 0x82, 0x80000000), NOTHING, id="a note"),
        pytest.param(line("TLW_RX_PIPE1", "Nonfatal", 0x0B, 0x2), NOTHING, id="a numbered pipe"),
        pytest.param(line("TLW_TX", "Fatal", 0x163, 0x4), RESET, id="the unit without its pipe"),
        pytest.param(line("TREX", "Nonfatal", 0x184, 0x1), NOTHING, id="TREX"),
        pytest.param(line("NVLPW", "Nonfatal", 0x0F, 0x80000000), NOTHING, id="NVLPW"),
        pytest.param(line("NETIR", "Fatal", 0x000AE406, 0x0, "Link -1"), RESET, id="NETIR without a link"),
        pytest.param(line("NETIR_BER_EVENT", "Nonfatal", 0x226, 0x3), NOTHING, id="bit errors: look at the cable"),
        pytest.param(line("NETIR_MFDE_EVENT", "Fatal", 0x246, 0x5), RESET, id="a number, not a mask"),
        pytest.param(line("NETIR_MFDE_EVENT", "Nonfatal", 0x246, 0x3), NOTHING, id="3 is not 1 and 2"),
        pytest.param(line("NETIR_LINK_EVT", "Fatal", 0x004315C6), RESET, id="link down, its signal"),
        pytest.param(line("NETIR_LINK_DOWN", "Fatal", 0x02A00011), RESET, id="the newer name"),
        pytest.param(line("NETIR_LINK_EVT", "Fatal", 38 << 20 | 0x1C6), NOTHING, id="taken down on purpose"),
        pytest.param(line("NETIR_LINK_EVT", "Fatal", 40 << 20 | 0x1C6), NOTHING, id="the host's doing"),
        pytest.param(line("NETIR_LINK_EVT", "Fatal", 63 << 20 | 0x1C6), RESET, id="an unlisted reason, and fatal"),
        pytest.param(line("NETIR_LINK_EVT", "Nonfatal", 63 << 20 | 0x1C6), None, id="an unlisted reason"),
        pytest.param(line("MSE_WATCHDOG", "Fatal", 0x0), RESET, id="the watchdog"),
        pytest.param(line("RLW_RXPIPE", "Nonfatal", 0x0C2, 0x1), NOTHING, id="may be promoted, is not"),
        pytest.param(line("RLW_RXPIPE", "Nonfatal", 0x4C2, 0x1), None, id="promoted, and nonfatal by its word"),
        pytest.param(line("RLW_RXPIPE", "Nonfatal", 0x086, 0x2), None, id="promoted, as newer drivers write it"),
        pytest.param(line("RLW_RXPIPE", "Nonfatal", 0x006, 0x2), NOTHING, id="not promoted, as newer drivers write it"),
        pytest.param(line("RLW_RXPIPE", "Fatal", 0x4C2, 0x1), RESET, id="promoted"),
        pytest.param(line("RLW_RXPIPE", "Nonfatal", 0x0C2, 0x40), None, id="an unlisted bit"),
        pytest.param(line("RLW_NEW_UNIT", "Nonfatal", 0x0C2, 0x1), None, id="an unlisted unit"),
        pytest.param(line("RLW_NEW_UNIT", "Fatal", 0x0C2, 0x1), RESET, id="an unlisted unit, and fatal"),
        pytest.param(line("RLW_RXPIPE", "Nonfatal", 0x0C2, None), None, id="cut off before the status"),
        pytest.param("NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]", RESET, id="an older form"),
        pytest.param("NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025315c6 0x0)", RESET, id="more blanks"),
        pytest.param("RLW_UNKNOWN Non-fatal XC0 i0 Link 1 (0x1 0x2)", None, id="nonfatal with a hyphen"),
        pytest.param("RLW_UNKNOWN non fatal", None, id="nonfatal in two words"),
        pytest.param("", None, id="no line"),
    ],
)
def test_what_a_line_asks_for(text: str, expected: str | None) -> None:
    """As NVIDIA's table decodes it; where that says nothing, only a plain "fatal" counts."""
    assert asks_for(text) == expected


@pytest.mark.parametrize(
    ("registers", "expected"),
    [
        ("0x800000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", True),
        ("0x40800001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", True),
        ("0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0", False),
        ("0x800010, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", False),
        ("0x800000, 0x0, 0x1, 0x0, 0x0, 0x0, 0x0", False),
        ("0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0", False),
        ("0x800000, 0x0, 0x0", False),
    ],
)
def test_the_registers_of_an_older_link(registers: str, expected: bool) -> None:
    """Only bits that may be ignored, and nothing else: anything that is not understood asks for a reset."""
    text = f"NVLink: fatal error detected on link 14({registers})"
    assert is_harmless_74(text) is expected
    assert class_of(74, text) is (XidClass.NONE if expected else XidClass.RESET)


@given(st.sampled_from(range(144, 151)), st.text(max_size=160))
def test_no_line_breaks_it(number: int, text: str) -> None:
    """Whatever the driver writes is one of our classes or unknown, and ranked."""
    assert class_of(number, text) in {None, XidClass.NONE, XidClass.APP, XidClass.RESET}
    assert rank_of(number, text) >= rank_of(number) or class_of(number, text) is not XidClass.NONE


@given(st.sampled_from(["SAW_MVB", "RLW_TAGSTATE", "TLW_CTRL", "NETIR_BER_EVENT"]), st.integers(0, 2**32 - 1))
def test_a_fatal_line_is_never_unknown(unit: str, status: int) -> None:
    """Whether or not its status is in the table."""
    assert asks_for(line(unit, "Fatal", 0x21, status)) is not None


def test_real_lines_are_classified() -> None:
    """Every line of these numbers in users' logs and other tools' tests."""
    path = SHARED / "data/failures/xid.yaml"
    if not path.exists():
        pytest.skip("shared data is not here")
    samples = yaml.safe_load(path.read_text())["log_formats"]["samples"]
    texts = {
        sample: sample.split("): ", 1)[1].split(", ", 1) for sample in samples if "Xid" in sample and "): 14" in sample
    }
    found = {sample: class_of(int(number), text.split(", ")[-1]) for sample, (number, text) in texts.items()}
    assert len(found) == 3
    assert None not in found.values()
