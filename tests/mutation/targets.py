"""What is mutated, which tests must notice, and which changes change nothing."""

from __future__ import annotations

from typing import NamedTuple

PACKAGE = "service/sevenhop/core/remediation"
_TESTS = "tests/unit/remediation"


class Target(NamedTuple):
    """One module, and the tests that must notice a change of it; those that notice most come first."""

    path: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        return self.path.removeprefix("service/").removesuffix(".py").replace("/", ".")


def _target(name: str, *tests: str, folder: str = "guards") -> Target:
    return Target(f"{PACKAGE}/{name}.py", tuple(f"{_TESTS}/{folder}/{test}.py" for test in tests))


TARGETS: tuple[Target, ...] = (
    _target("approvals", "test_decide", folder="desk"),
    _target("states", "test_states", folder="desk"),
    _target("consent", "test_consent", folder="desk"),
    _target("leases", "test_lend", folder="desk"),
    _target("waking", "test_waking", folder="desk"),
    _target("guards", "test_guard_table", "test_guards_refuse", "test_permit"),
    _target("guards_policy", "test_guards_refuse"),
    _target("guards_agreed", "test_guards_refuse", "test_extending", "test_giving_back_in_part"),
    _target("guards_world", "test_guards_refuse", "test_giving_back_in_part"),
    _target("guards_history", "test_guards_refuse"),
    _target("guards_people", "test_guard_parts", "test_guards_refuse"),
    _target("guards_breaker", "test_guard_parts"),
    _target("guards_freeze", "test_guard_parts"),
    _target("guards_question", "test_guards_refuse", "test_guard_parts"),
    _target("permit", "test_permit", "test_guard_table"),
    _target("person", "test_guards_refuse", "test_guard_parts"),
    _target("audit", "test_audit"),
    Target(f"{PACKAGE}/budgets.py", (f"{_TESTS}/planning/test_budgets.py", f"{_TESTS}/desk/test_evictions.py")),
    _target("planning/sick", "test_bad_gpus", folder="planning"),
    _target("planning/drains", "test_drains", folder="planning"),
    Target("service/sevenhop/core/inventory/gpu_unnamed.py", ("tests/unit/inventory/test_gpu_unnamed.py",)),
    Target("service/sevenhop/core/inventory/pool_names.py", ("tests/unit/inventory/test_pool_names.py",)),
)

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "approvals",
        "Guards = Callable[[Case, Purpose], tuple[Refusal, ...]]",
        "element 1 removed",
    ): "a type",
    (
        "approvals",
        "Guards = Callable[[Case, Purpose], tuple[Refusal, ...]]",
        "element 2 removed",
    ): "a type",
    ("approvals", 'return ""', "return None"): "no reason against somebody, in either word",
    ("approvals", "needed = max(1, playbook.approvals)", "1 → 0"): "at least one person has just said yes",
    ("budgets", 'return ""', "return None"): "no reason against it, in either word",
    (
        "budgets",
        "if plan.helps_in[1] == 1:",
        "1 → 0",
    ): "of the index; what is offered helps in all of its cases, so both numbers are the same",
    (
        "guards_agreed",
        "in_order = done >= 0 and actions == plan.actions[done : done + len(actions)]",
        "0 → -1",
    ): "from -1 on, at most as many actions as there are: always an empty slice, which no step equals",
    ("guards_people", "for size in range(len(kinds) + 1)", "1 → 2"): "more than all of them are none",
}
"""(module, line, change) → why no test can notice it.  A line that is not found any more is an error."""
