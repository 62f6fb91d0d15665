"""docs/reference/playbooks.md, rendered from the playbooks and from the table of guards."""

from __future__ import annotations

from collections.abc import Iterable

from sevenhop.core.remediation.guards import GUARDS
from sevenhop.core.remediation.permit import Purpose
from sevenhop.core.remediation.playbook import Playbook
from sevenhop.rulebook.playbook_load import Playbooks
from sevenhop.rulebook.playbook_schema import PlaybookFile
from sevenhop.rulebook.schema import format_duration

_HEAD = """# Playbooks

Rendered from `playbooks/` by `sevenhop playbooks docs`; change a playbook's file, not this page.

A playbook says what may be done about an alert, how far it may go, and who must agree. A rule names it (`playbook:`); a
*plan* is a playbook bound to objects and numbers. Shipped playbooks are in mode `shadow`: plans are made and recorded,
and nobody is asked until an operator says so. How approvals, guards and the kill switch work:
[remediation](../operating/remediation.md); what becomes of a plan: [plan states](plan-states.md).
"""

_PURPOSES: dict[Purpose, str] = {
    Purpose.DRY_RUN: "try on the API server",
    Purpose.APPLY: "do",
    Purpose.UNDO: "undo",
    Purpose.RESTORE: "give back",
    Purpose.EXTEND: "extend",
    Purpose.READ_BACK: "look",
}


def render(book: Playbooks) -> str:
    """The page: overview, each playbook, the guards, the fields of a file."""
    parts = [_HEAD, _overview(book.playbooks)]
    parts += [_playbook(playbook, book.written[playbook.id]) for playbook in book.playbooks]
    parts += [_guards(), _fields()]
    return "\n".join(parts)


def _overview(playbooks: Iterable[Playbook]) -> str:
    rows = ["| playbook | does | mode | steps | goal | approvals |", "| --- | --- | --- | --- | --- | --- |"]
    for p in playbooks:
        steps = ", ".join(f"`{step}`" for step in p.steps)
        rows.append(f"| [{p.id}](#{p.id}) | {p.title} | `{p.mode}` | {steps} | `{p.goal}` | {p.approvals} |")
    return "\n".join(rows) + "\n"


def _playbook(playbook: Playbook, written: PlaybookFile) -> str:
    lease = f"lease {format_duration(playbook.lease)}" if playbook.lease else "nothing is lent"
    terms = [
        f"a person has {format_duration(playbook.expires)} to decide",
        f"reminded once after {format_duration(playbook.remind_after)}",
        f"undone after {format_duration(playbook.no_progress)} without progress",
        lease,
        f"cooldown {format_duration(playbook.cooldown)}",
        f"at most {playbook.most_replicas} replicas or pods and {playbook.most_gpus} GPUs a plan",
        f"{playbook.most_runs_per_day} runs a day, {playbook.most_concurrent} at once",
    ]
    lines = [f"## {playbook.id}\n", " ".join(written.description.split()) + "\n"]
    lines.append("; ".join(terms)[:1].upper() + "; ".join(terms)[1:] + ".\n")
    lines.append("May cost:\n")
    lines += [f"- {text}" for text in written.costs]
    lines.append("\nNot for:\n")
    lines += [f"- {text}" for text in written.not_for]
    return "\n".join(lines) + "\n"


def _guards() -> str:
    lines = [
        "## Guards\n",
        "Asked in this order, at the moment of each step, with what is true then. The first that stands against the",
        "step is its answer. Little stands in the way of giving back.\n",
        "| guard | lets pass when | " + " | ".join(_PURPOSES.values()) + " |",
        "| --- | --- |" + " --- |" * len(_PURPOSES),
    ]
    for guard in GUARDS:
        cells = ["yes" if purpose in guard.purposes else "–" for purpose in _PURPOSES]
        lines.append(f"| `{guard.name}` | {guard.docs} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _fields() -> str:
    rows = ["## A playbook's file\n", "| key | required | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in PlaybookFile.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if field.is_required() or default == []:
            shown = "–"
        elif hasattr(default, "total_seconds"):
            shown = f"`{format_duration(default)}`"
        else:
            shown = f"`{default}`"
        rows.append(f"| `{name}` | {'yes' if field.is_required() else 'no'} | {shown} | {field.description} |")
    return "\n".join(rows) + "\n"
