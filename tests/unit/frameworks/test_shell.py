"""Command lines of containers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenhop.frameworks.shell import commands, split_script, substitute


@pytest.mark.parametrize(
    ("command", "args", "env", "expected"),
    [
        pytest.param(["vllm", "serve"], ["m"], {}, [["vllm", "serve", "m"]], id="plain words"),
        pytest.param([], ["--model", "m"], {}, [["--model", "m"]], id="only arguments"),
        pytest.param(["sh", "-c"], ["a; b c"], {}, [["a"], ["b", "c"]], id="script in the arguments"),
        pytest.param(["/bin/bash", "-exc", "a && b"], [], {}, [["a"], ["b"]], id="script in the command"),
        pytest.param(["bash", "-c", "run $0 $@"], ["--x=1"], {}, [["run", "$0", "$@", "--x=1"]], id="words after it"),
        pytest.param(["sh", "-c", "a \\\n  --b 1"], [], {}, [["a", "--b", "1"]], id="continued line"),
        pytest.param(["sh", "-c", "# a b\nc"], [], {}, [["c"]], id="comment line"),
        pytest.param(["sh", "-c", "a '{\"x\": [1, 2]}'"], [], {}, [["a", '{"x": [1, 2]}']], id="json in quotes"),
        pytest.param(
            ["sh", "-c", "cat > f <<'E'\nvllm serve no\nE\nrun"], [], {}, [["cat", ">", "f"], ["run"]], id="heredoc"
        ),
        pytest.param(
            ["sh", "-c", "run $M ${N} $(O)"],
            [],
            {"M": "1", "N": "2", "O": "3"},
            [["run", "1", "2", "3"]],
            id="variables",
        ),
        pytest.param(["sh", "-c", "run ${M:-d}"], [], {}, [["run", "d"]], id="default"),
        pytest.param(["sh", "script.sh"], ["-c"], {}, [["sh", "script.sh", "-c"]], id="script file"),
        pytest.param(["sh", "-c", "a 'never closes; b"], [], {}, [["a", "'never", "closes"], ["b"]], id="broken quote"),
        pytest.param([], [], {}, [], id="nothing"),
        pytest.param(["bash", "-euo", "pipefail", "-c", "a; b"], [], {}, [["a"], ["b"]], id="an option with a word"),
        pytest.param(["tini", "--", "/bin/sh", "-c", "a; b"], [], {}, [["a"], ["b"]], id="behind a wrapper"),
        pytest.param(
            ["sh", "-c", "M=x\nexport N='y z' O=\nrun $M ${N}"],
            [],
            {},
            [["M=x"], ["export", "N=y z", "O="], ["run", "x", "y z"]],
            id="the script's own variables",
        ),
        pytest.param(
            ["sh", "-c", "M=x run $M; N=$(date); run $N"],
            [],
            {},
            [["M=x", "run", "$M"], ["N=$"], ["date"], ["run", "$N"]],
            id="what is only set for one command, or computed, is not known",
        ),
    ],
)
def test_commands(command: list[str], args: list[str], env: dict[str, str], expected: list[list[str]]) -> None:
    """
    A container's command line is the commands that it runs, each as its words.
    """
    assert expected == commands(command, args, env)


def test_a_variable_that_doubles_itself_stays_small() -> None:
    """
    No script fills the memory.
    """
    (*_, last) = commands(["sh", "-c", "A=xx\n" + "A=$A$A$A\n" * 60 + "run $A"], [], {})

    assert len(last[1]) <= 1_000


def test_a_long_value_named_often_stays_small() -> None:
    """
    Neither does a variable of the pod.
    """
    assert len(substitute("$A" * 1_000, {"A": "x" * 10_000})) < 100_000


def test_an_unknown_variable_stays() -> None:
    """
    What is not known is not made up.
    """
    assert substitute("--model ${FROM_SECRET}", {}) == "--model ${FROM_SECRET}"


@given(st.text(alphabet="ab c;&|'\"\\\n$(){}<#-=", max_size=60))
def test_any_script_is_read(script: str) -> None:
    """
    No script breaks the reader, and no empty command comes of it.
    """
    assert all(split_script(script))
