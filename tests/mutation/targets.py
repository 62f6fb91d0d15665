"""What is mutated, which tests must notice, and which changes change nothing."""

from __future__ import annotations

from typing import NamedTuple

PACKAGE = "service/sevenhop/core/remediation"
_TESTS = "tests/unit/remediation/guards"


class Target(NamedTuple):
    """One module, and the tests that must notice a change of it; those that notice most come first."""

    path: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.path.removeprefix("service/").removesuffix(".py").replace("/", ".")


def _target(name: str, *tests: str) -> Target:
    return Target(f"{PACKAGE}/{name}.py", tuple(f"{_TESTS}/{test}.py" for test in tests))


TARGETS: tuple[Target, ...] = (
    _target("guards", "test_guard_table", "test_guards_refuse", "test_permit"),
    _target("guards_policy", "test_guards_refuse"),
    _target("guards_agreed", "test_guards_refuse", "test_giving_back_in_part"),
    _target("guards_world", "test_guards_refuse", "test_giving_back_in_part"),
    _target("guards_history", "test_guards_refuse"),
    _target("guards_people", "test_guard_parts", "test_guards_refuse"),
    _target("guards_breaker", "test_guard_parts"),
    _target("guards_freeze", "test_guard_parts"),
    _target("guards_question", "test_guards_refuse", "test_guard_parts"),
    _target("permit", "test_permit", "test_guard_table"),
    _target("person", "test_guards_refuse", "test_guard_parts"),
    _target("audit", "test_audit"),
)

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "guards_agreed",
        "in_order = done >= 0 and actions == plan.actions[done : done + len(actions)]",
        "0 → -1",
    ): "from -1 on, at most as many actions as there are: always an empty slice, which no step equals",
    ("guards_people", "for size in range(len(kinds) + 1)", "1 → 2"): "more than all of them are none",
}
"""(module, line, change) → why no test can notice it.  A line that is not found any more is an error."""
