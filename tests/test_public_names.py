"""What `import lexinvariant` promises: every public name, and nothing heavy before it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lexinvariant


@pytest.mark.parametrize("name", lexinvariant.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(lexinvariant, name) is not None
    assert name in dir(lexinvariant)
    assert "__file__" in dir(lexinvariant)


def test_type_checkers_are_told_of_every_public_name() -> None:
    nodes = ast.walk(ast.parse(Path(lexinvariant.__file__).read_text("utf-8")))
    told = {
        part.name: node.module for node in nodes if isinstance(node, ast.ImportFrom) for part in node.names
    }
    assert told == lexinvariant._HOMES


PROGRAM = """
import lexinvariant

reveal_type(lexinvariant.load())
reveal_type(lexinvariant.preset)
reveal_type(lexinvariant.load().score(["a"]))
outcome = lexinvariant.train(lexinvariant.preset("tiny").changed({"steps": 3}), "runs/x")
lexinvariant.load(outcome.model_folder).generate(n_tokens="3")
lexinvariant.lode()
"""


@pytest.mark.slow
def test_a_program_is_checked_in_full(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in run.stdout.splitlines() if line.startswith("program.py")]
    expected = [
        (4, '"lexinvariant.api.Model"'),
        (5, '"def (name: str) -> lexinvariant.config.TrainConfig"'),
        (6, "ndarray"),
        (8, 'Argument "n_tokens" to "generate" of "Model" has incompatible type "str"; expected "int"'),
        (9, 'Module has no attribute "lode"'),
    ]
    assert [int(line.split(":")[1]) for line in told] == [line for line, _ in expected], run.stdout
    for line, (_, sentence) in zip(told, expected, strict=True):
        assert sentence in line


def test_public_things_are_what_their_names_say() -> None:
    from lexinvariant.api import Model
    from lexinvariant.model.weights import Weights
    from lexinvariant.training.loop import train

    assert lexinvariant.Model is Model
    assert issubclass(Model, Weights)
    assert lexinvariant.train is train
    assert issubclass(lexinvariant.UserError, Exception)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lexinvariant.nonsense  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, lexinvariant; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "lexinvariant" in loaded
    assert not loaded & {
        "jax",
        "jaxlib",
        "numpy",
        "scipy",
        "matplotlib",
        "optax",
        "orbax",
        "tokenizers",
        "tyro",
        "torch",
        "transformers",
        "lm_eval",
    }
