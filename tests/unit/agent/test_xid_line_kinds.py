"""Lines of every kind that drivers, consoles and collectors make: what they say, or malformed, never something else."""

from __future__ import annotations

from hypothesis import assume, example, given
from hypothesis import strategies as st

from sevenhop.agent.xid_lines import MAX_TEXT, GpuAt, Malformed, XidLine, parse_line, parse_lines

byte = st.integers(0, 255)
DETAILS = st.sampled_from(
    [
        "GPU has fallen off the bus.",
        "Ch 00000008",
        "Ch 0000001a, intr 10000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7fa1_00000000. Fault is of",
        "Graphics SM Warp Exception on (GPC 5, TPC 0, SM 1): Illegal Instruction Encoding",
        "Row Remapper Error: (0x000000011aa20100) - Pending",
        "NVLink: fatal error detected on link 2(0x0, 0x0, 0x4, 0x0, 0x0, 0x0, 0x0)",
        "TLW_RX Nonfatal XC1 i0 Link 03 (0x00000143 0x00000002 0x00000000 0x00000000 0x00000000 0x00000000)",
        "Timeout after 45s of waiting for RPC response from GPU2 GSP!",
        "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x2 (Node Reboot Required)",
        "Class Error: ChId 0010, Class 0000c7c0, Offset 000002b0, Data 00000001, ErrorCode 0000000c",
        "",
    ]
)
PROCESSES = st.sampled_from(
    [
        ("", 0),
        ("pid='<unknown>', name=<unknown>", 0),
        ("pid=<unknown>, name=<unknown>", 0),
        ("pid=1234, name=python3", 1234),
        ("pid='1234', name=python3", 1234),
        ("pid=2503421, name=ray::WorkerDict", 2503421),
        ("pid=7, name=VLLM::EngineCor", 7),
        ("pid=7, name=a b", 7),
        ("pid=7, name=a,b", 7),
        ("pid=7, name=(sd-pam)", 7),
        ("pid=7, name=日本語", 7),
        ("pid=7, name=", 7),
        ("pid=7, name=a_name_that_is_longer_than_the_kernel_allows", 7),
        ("pid=99999999999999999999, name=x", 99999999999999999999),
    ]
)
BEFORE = st.sampled_from(
    [
        "",
        "[12345.678901] ",
        "[Mon Nov 30 12:00:00 2026] ",
        "Nov 30 12:00:00 gpu-05 kernel: [ 1234.567890] ",
        "kernel: ",
        "<3>",
        "[    T1234] ",
    ]
)


@st.composite
def places(draw: st.DrawFn) -> tuple[str, str]:
    """A PCI address in one of its spellings, and in ours."""
    domain, bus, device = draw(st.integers(0, 0xFFFF)), draw(byte), draw(st.integers(0, 31))
    normal = f"{domain:04x}:{bus:02x}:{device:02x}.0"
    spelling = draw(st.sampled_from(["PCI:{d:04x}:{b:02x}:{v:02x}", "PCI:{d:04x}:{b:02x}:{v:02x}.0",
                                     "PCI:{d:08X}:{b:02X}:{v:02X}.0", "{d:04x}:{b:02x}:{v:02x}"]))  # fmt: skip
    return spelling.format(d=domain, b=bus, v=device), normal


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, XidLine, int]:
    """A line as a driver writes it, what it says, and where its number ends."""
    (written, pci), number = draw(places()), draw(st.integers(1, 999))
    (process, pid), detail = draw(PROCESSES), draw(DETAILS)
    head = f"{draw(BEFORE)}NVRM: Xid ({written}): {number}"
    rest = ", ".join(part for part in (process, detail) if part)
    line = f"{head}, {rest}" if rest else head
    text = " ".join(detail.split())[:MAX_TEXT]
    return line, XidLine(pci=pci, xid=number, pid=pid, text=text), len(head)


@given(lines())
def test_what_a_driver_writes_is_read(written: tuple[str, XidLine, int]) -> None:
    """Place, number, process and detail, in every spelling, whoever put a time before it; the name is left out."""
    line, said, _ = written
    assert parse_line(line) == said
    assert parse_lines(line) == [said]


@given(lines(), st.data())
def test_a_line_that_is_cut_off_is_shorter_or_malformed(written: tuple[str, XidLine, int], data: st.DataObject) -> None:
    """Behind the number, place and number stand; before it, it is counted, or too short to speak of XIDs."""
    line, said, end = written
    cut = data.draw(st.integers(0, len(line)))
    found = parse_line(line[:cut])
    if cut >= end:
        assert isinstance(found, XidLine)
        assert (found.pci, found.xid) == (said.pci, said.xid)
    elif isinstance(found, XidLine):  # within the number: the only place where a cut cannot be seen
        assert found.pci == said.pci
        assert str(said.xid).startswith(str(found.xid))
    else:
        assert isinstance(found, Malformed) or "NVRM: Xid" not in line[:cut]


@given(lines(), lines())
def test_two_lines_in_one_record_are_two(first: tuple[str, XidLine, int], second: tuple[str, XidLine, int]) -> None:
    """Consoles and collectors join lines: both are told, none takes the other's place."""
    found = parse_lines(f"{first[0]} {second[0]}")
    assert [(each.pci, each.xid) for each in found if isinstance(each, XidLine)] == [
        (said.pci, said.xid) for _, said, _ in (first, second)
    ]


@given(lines(), lines(), st.data())
def test_a_line_within_another_loses_no_whole_one(
    outer: tuple[str, XidLine, int], inner: tuple[str, XidLine, int], data: st.DataObject
) -> None:
    """Whoever was cut in two is told if its number came first, else counted; the one within is whole."""
    line, said, end = outer
    cut = data.draw(st.integers(0, len(line)))
    assume(not 0 < end - cut < len(str(said.xid)))
    found = parse_lines(line[:cut] + inner[0] + line[cut:])
    told = [(each.pci, each.xid) for each in found if isinstance(each, XidLine)]
    assert (inner[1].pci, inner[1].xid) in told
    assert set(told) <= {(said.pci, said.xid), (inner[1].pci, inner[1].xid)}


@given(lines(), st.integers(0, 200), st.characters(exclude_categories=["Cs"]))
@example(("NVRM: Xid (PCI:0000:00:00): 1", XidLine(pci="0000:00:00.0", xid=1), 29), 22, "f")
def test_a_damaged_character_makes_up_no_other_place(
    written: tuple[str, XidLine, int], index: int, character: str
) -> None:
    """One of ours or malformed; unless a digit of the place or the number itself was hit, those stand."""
    line, said, _ = written
    index = min(index, len(line) - 1)
    found = parse_line(line[:index] + character + line[index + 1 :])
    assert found is None or isinstance(found, XidLine | Malformed | GpuAt)
    is_digit = line[index] in "0123456789abcdefABCDEF"
    if isinstance(found, XidLine) and not is_digit and not character.isalnum():
        assert found.xid == said.xid
