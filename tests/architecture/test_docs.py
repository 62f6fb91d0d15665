"""
Pages that people wrote: their links, the files they name, the commands they show and the examples they give.

A page with a worked example is read as a reader would: rules and settings are loaded, timelines run, commands parsed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from sevenhop.cli.main import COMMANDS, build_parser
from sevenhop.core.facts.table import FACTS
from sevenhop.core.incidents import message
from sevenhop.core.objects.kinds import kind_of
from sevenhop.core.subject import HOPS
from sevenhop.rehearsal.play import play
from sevenhop.rulebook.load import load_rulebook
from sevenhop.rulebook.playbook_load import load_playbooks
from sevenhop.rulebook.playbook_scene import PlaybookScene
from sevenhop.rulebook.playbook_testing import run_playbook_tests
from sevenhop.rulebook.shipped import shipped_playbooks, shipped_rules
from sevenhop.rulebook.testing import run_tests
from sevenhop.settings import load_settings
from tests.shared import ROOT

PACKAGE = ROOT / "service" / "sevenhop"
PAGES = sorted(
    (
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "playbooks").rglob("*.md"),
        *(ROOT / "tests" / "testbed").rglob("*.md"),
    )
)
WRITTEN = [page for page in PAGES if page.parent.name != "reference"]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")


class Example(NamedTuple):
    """A fenced block: its language, its text, and the file that it belongs into, where its first line says so."""

    language: str
    text: str
    place: str


def place_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", PAGES, ids=place_of)
each_written = pytest.mark.parametrize("page", WRITTEN, ids=place_of)


@cache
def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def prose_of(page: Path) -> str:
    return FENCE.sub("", text_of(page))


def examples(page: Path) -> Iterator[Example]:
    for language, text in FENCE.findall(text_of(page)):
        first = re.match(r"# ([\w./<>-]+\.(?:yaml|py))\b", text)
        yield Example(language, text, first[1] if first else "")


def anchors(page: Path) -> set[str]:
    """As GitHub makes them: small letters, spaces to dashes, everything else but letters, digits, - and _ dropped."""
    found = set()
    for heading in re.findall(r"^#+ +(.+)$", FENCE.sub("", text_of(page)), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    """
    Every link within the project leads to a file, and to a heading in it.
    """
    broken = []
    for target in LINK.findall(prose_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            broken.append(target)

    assert broken == []


@each_written
def test_paths_that_are_named_exist(page: Path) -> None:
    """
    A page that names a file of ours names one that is there; `<name>` stands for a name of the reader's.
    """
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()}
    inner = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    missing = []
    for span in SPAN.findall(prose_of(page)):
        if not re.fullmatch(r"[\w.-]+(/[\w.-]*)*", span) or ("/" not in span and not span.endswith(".py")):
            continue
        first = span.partition("/")[0]
        if first in tops:
            candidates = [ROOT / span]
        elif first in inner or span.endswith(".py"):
            candidates = [PACKAGE / span, page.parent / span]
        else:
            continue
        if not any(path.exists() for path in candidates) and not any(
            path.name == span for path in PACKAGE.rglob("*.py")
        ):
            missing.append(span)

    assert missing == []


@each_written
def test_every_page_is_reached(page: Path) -> None:
    """
    Whoever begins at the README comes by links to every page.
    """
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        at = waiting.pop()
        if at in seen or at.suffix != ".md" or not at.exists():
            continue
        seen.add(at)
        waiting += [(at.parent / t.partition("#")[0]).resolve() for t in LINK.findall(prose_of(at)) if ":" not in t]

    assert page in seen


def commands(page: Path) -> Iterator[tuple[str, bool]]:
    """(words after `sevenhop`, whether the line is complete: in a block, not in the middle of a sentence)."""
    for span in SPAN.findall(prose_of(page)):
        if span.startswith("sevenhop ") and "|" not in span and "…" not in span:
            yield span, False
    for language, text in FENCE.findall(text_of(page)):
        if language not in ("sh", "console"):
            continue
        for line in re.sub(r"\\\n\s*", "", text).splitlines():
            command = line.removeprefix("$ ").partition(" #")[0] if language == "sh" or line.startswith("$ ") else ""
            for part in re.split(r" [|&]+ ", command.strip()):
                if part.strip().startswith("sevenhop "):
                    yield part.strip(), True


@cache
def parser() -> argparse.ArgumentParser:
    return build_parser()


def complaint(command: str, *, is_complete: bool) -> str:
    """What the real parser says against a command; of a mention only what it knows to be wrong."""
    words = [word for word in shlex.split(command)[1:] if not word.startswith((">", "<"))]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            parser().parse_args(words)
    except SystemExit as stop:
        last = said.getvalue().strip().splitlines()[-1:] or [""]
        is_only_short = "the following arguments are required" in last[0]
        return "" if stop.code == 0 or (is_only_short and not is_complete) else f"{command}: {last[0]}"
    return ""


@each_written
def test_commands_are_understood(page: Path) -> None:
    """
    Every command line that a page shows is one that the parser takes.
    """
    assert [said for command, full in commands(page) if (said := complaint(command, is_complete=full))] == []


def test_commands_are_found() -> None:
    """
    The check above reads what it should: a misspelt command or option is found.
    """
    assert complaint("sevenhop scna", is_complete=False)
    assert complaint("sevenhop scan --contxt=x", is_complete=False)
    assert complaint("sevenhop explain", is_complete=True)
    assert not complaint("sevenhop explain", is_complete=False)
    assert {command.split()[1] for page in WRITTEN for command, _ in commands(page)} >= set(COMMANDS) - {"version"}


@each_written
def test_make_targets_exist(page: Path) -> None:
    """
    A page that says `make thing` names a target.
    """
    targets = set(re.findall(r"^([a-z0-9]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    shown = "\n".join((*SPAN.findall(prose_of(page)), *(text for _, text in FENCE.findall(text_of(page)))))
    indented = "\n".join(re.findall(r"^    (make .+)$", text_of(page), re.MULTILINE))

    assert [name for name in re.findall(r"(?m)^make ([a-z0-9]+)", f"{shown}\n{indented}") if name not in targets] == []


def yaml_examples() -> list[Any]:
    return [
        pytest.param(page, example, id=f"{place_of(page)}:{example.place or number}")
        for page in PAGES
        for number, example in enumerate(examples(page))
        if example.language == "yaml"
    ]


@pytest.mark.parametrize(("page", "example"), yaml_examples())
def test_yaml_examples_load(page: Path, example: Example, tmp_path: Path) -> None:
    """
    What a page gives to copy is taken by the loader that will read it: settings, rules, timelines, objects.
    """
    data = yaml.safe_load(example.text)
    if "apiVersion" in data:
        assert kind_of(data["apiVersion"], data["kind"]) or data["apiVersion"].startswith("rbac.authorization.k8s.io/")
    elif "expr" in data or "rule" in data:
        folder = write_rules(page, tmp_path)
        book = load_rulebook([folder], FACTS)
        report = run_tests(book, [folder], FACTS)
        assert [str(p) for p in (*book.problems, *report.problems)] == []
        assert [str(f) for result in report.results for f in result.failures] == []
        assert report.results
    elif "steps" in data or "playbook" in data:
        folder = write_playbooks(page, tmp_path)
        playbooks = load_playbooks([folder])
        told = run_playbook_tests(playbooks, [folder])
        assert [str(p) for p in (*playbooks.problems, *told.problems)] == []
        assert [str(f) for result in told.results for f in result.failures] == []
        assert told.results
    elif "scenes" in data:
        lends = load_playbooks([shipped_playbooks() / "free-gpu-capacity.yaml"]).playbooks[0]
        rules = load_rulebook([shipped_rules()], FACTS).rules
        for written in data["scenes"]:
            assert play(lends, PlaybookScene.model_validate(written), rules) == [], written["name"]
    elif example.place == "values.yaml":
        assert set(data) <= set(yaml.safe_load((ROOT / "helm" / "sevenhop" / "values.yaml").read_text("utf-8")))
        path = tmp_path / "sevenhop.yaml"
        path.write_text(yaml.safe_dump(data["config"]), "utf-8")
        names = [name.replace(".", "__").upper() for name in data["secrets"]["settings"]]
        assert load_settings(path, environ={f"SEVENHOP__{name}": "invented" for name in names})
    else:
        path = tmp_path / "sevenhop.yaml"
        path.write_text(example.text, "utf-8")
        assert load_settings(path, environ=dict(environment(page)))


def write_rules(page: Path, folder: Path) -> Path:
    """The page's rules and timelines as the files that their first lines name."""
    for example in examples(page):
        if re.fullmatch(rf"rules/({'|'.join(HOPS)}|self)/[\w-]+(\.test)?\.yaml", example.place):
            path = folder / example.place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(example.text, "utf-8")
    return folder / "rules"


def write_playbooks(page: Path, folder: Path) -> Path:
    """The page's playbooks and stories, likewise."""
    for example in examples(page):
        if re.fullmatch(r"playbooks/[\w-]+(\.test)?\.yaml", example.place):
            path = folder / example.place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(example.text, "utf-8")
    return folder / "playbooks"


def environment(page: Path) -> Iterator[tuple[str, str]]:
    """Variables of ours that the page sets in its shell examples: part of the settings that it shows."""
    for language, text in FENCE.findall(text_of(page)):
        if language == "sh":
            yield from re.findall(r"(SEVENHOP__\w+)=(\S+)", text)


@each_written
def test_python_examples_compile(page: Path) -> None:
    """
    Python that a page gives to copy is Python, and what it imports from us is there.
    """
    for example in examples(page):
        if example.language != "python":
            continue
        compile(example.text, f"{place_of(page)}", "exec")
        imports = re.findall(r"^from (sevenhop[\w.]*) import (.+)$", example.text, re.MULTILINE)
        for module, names in imports:
            loaded = __import__(module, fromlist=["x"])
            missing = [n.strip() for n in names.split(",") if not hasattr(loaded, n.strip().partition(" as ")[0])]
            assert missing == [], f"{module}: {missing}"


def test_every_line_of_a_message_is_explained() -> None:
    """
    A line that a person may meet at night stands in the page that explains them.
    """
    tree = ast.parse(text_of(PACKAGE / "core" / "incidents" / "message.py"))
    labels = {
        getattr(message, said.id) if isinstance(said, ast.Name) else said.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Line"
        for said in call.args[1:2]
        if isinstance(said, ast.Constant) or (isinstance(said, ast.Name) and said.id.isupper())
    }
    rows = re.findall(r"^\| ([^|]+) \|", text_of(ROOT / "docs" / "howto" / "read-an-alert.md"), re.MULTILINE)
    explained = {name.strip() for row in rows for name in row.split(",")}

    assert len(labels) > 12
    assert labels - explained == set()


def test_every_self_rule_has_a_row() -> None:
    """
    Whoever runs Sevenhop finds what to do when it alerts about itself.
    """
    ids = {path.stem for path in (ROOT / "rules" / "self").glob("*.yaml") if not path.name.endswith(".test.yaml")}

    assert ids
    assert {name for name in ids if f"| `{name}` |" not in text_of(ROOT / "docs" / "operating" / "running.md")} == set()


def test_every_named_playbook_is_explained() -> None:
    """
    A rule that names a playbook names one that the page of playbooks speaks of.
    """
    named = {rule.playbook for rule in load_rulebook([ROOT / "rules"], FACTS).rules if rule.playbook}

    assert {name for name in named if f"| `{name}` |" not in text_of(ROOT / "playbooks" / "README.md")} == set()


def test_every_row_of_contributing_leads_to_a_page() -> None:
    """
    For each open set there is a page that says how to add to it.
    """
    howto = {f"docs/howto/{path.name}" for path in (ROOT / "docs" / "howto").glob("add-*.md")}
    rows = [line for line in text_of(ROOT / "CONTRIBUTING.md").splitlines() if line.startswith("| a")]

    assert howto == {target for row in rows for target in LINK.findall(row)}
    assert [row for row in rows if not LINK.search(row)] == []
