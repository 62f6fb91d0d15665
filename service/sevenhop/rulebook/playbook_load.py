"""Files to playbooks: every problem at once, as rules are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from pydantic import ValidationError

from sevenhop.core.remediation.playbook import Playbook
from sevenhop.rulebook.load import read_files, rule_files, schema_problems
from sevenhop.rulebook.playbook_lint import findings
from sevenhop.rulebook.playbook_schema import PlaybookFile
from sevenhop.rulebook.problem import Problem
from sevenhop.rulebook.yaml_nodes import read_document

_WORDS_ONLY = frozenset({"description", "costs", "not_for"})
"""Keys for people, which the core does not read."""


@dataclass(frozen=True, slots=True)
class Playbooks:
    """
    Attributes:
        playbooks: By id, in order; those that have no problem.
        written: Their files, for the reference.
        paths: Id to file.
        problems: In the order of files and lines.
    """

    playbooks: tuple[Playbook, ...] = ()
    written: Mapping[str, PlaybookFile] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def playbook(self, playbook_id: str) -> Playbook | None:
        return next((p for p in self.playbooks if p.id == playbook_id), None)

    @property
    def names(self) -> frozenset[str]:
        """Also of those with problems: a rule that names one of them is not wrong for it."""
        return frozenset(p.id for p in self.playbooks) | {PurePath(p.path).stem for p in self.problems}


def load_playbooks(paths: Iterable[Path]) -> Playbooks:
    """
    Load playbooks from folders (searched through) and files.

    Never raises for what is in the files, or for files that are not there: that is in `problems`.
    """
    paths = list(paths)
    texts, problems = read_files(rule_files(paths))
    for path in paths:
        if path.is_dir() and not any(rule_files([path])):
            problems.append(Problem(str(path), 0, "playbook-none", "no playbooks here; expected ID.yaml"))
    found = load_playbook_texts(texts)
    return Playbooks(found.playbooks, found.written, found.paths, tuple(sorted({*problems, *found.problems})))


def load_playbook_texts(texts: Mapping[str, str]) -> Playbooks:
    """Load playbooks from path → content; reads no files."""
    written: dict[str, PlaybookFile] = {}
    paths: dict[str, str] = {}
    problems: list[Problem] = []
    for path, text in sorted(texts.items()):
        file, found = load_playbook(path, text)
        problems += found
        if file is None:
            continue
        if file.id in written:
            problems.append(Problem(path, 1, "playbook-duplicate-id", f"{file.id} is also in {paths[file.id]}"))
        else:
            written[file.id], paths[file.id] = file, path
    playbooks = tuple(core_playbook(written[name]) for name in sorted(written))
    return Playbooks(playbooks, written, paths, tuple(sorted(problems)))


def load_playbook(path: str, text: str) -> tuple[PlaybookFile | None, list[Problem]]:
    """One file: what it says, or None, and every problem in it."""
    document = read_document(path, text)
    problems = list(document.problems)
    if document.data is None:
        return None, problems
    try:
        written = PlaybookFile.model_validate(document.data)
    except ValidationError as error:
        return None, problems + schema_problems(document, error, PlaybookFile.model_fields, "playbook")
    if PurePath(path).stem != written.id:
        said = f"{written.id} should equal the file's name, {PurePath(path).stem}"
        problems.append(Problem(path, document.line(("id",)), "playbook-id-not-file-name", said))
    problems += [Problem(path, document.line(key), code, said) for key, code, said in findings(written)]
    return (None if problems else written), problems


def core_playbook(written: PlaybookFile) -> Playbook:
    """The playbook as the core sees it."""
    keys = {key: getattr(written, key) for key in PlaybookFile.model_fields if key not in _WORDS_ONLY}
    return Playbook(**keys | {"steps": tuple(written.steps), "approvers": tuple(written.approvers)})
