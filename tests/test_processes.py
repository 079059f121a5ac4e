"""Nothing in the current folder is ever imported: not by a command, and not by a process that one starts."""

import ast
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import lexinvariant
from lexinvariant.processes import python_command

SOURCE = Path(lexinvariant.__file__).parent
NAMES = (
    "numpy",
    "typing",
    "json",
    "dataclasses",
    "difflib",
    "tyro",
    "rich",
    "scipy",
    "pickle",
    "msgspec",
    "decimal",
)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder in which whatever is imported says so and ends the process."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("import os; print('trapped', __file__, flush=True); os._exit(7)")
    return tmp_path


def started(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("how", ["a process that we start", "python -m", "the command"])
def test_a_command_imports_nothing_from_the_current_folder(how: str, trap: Path) -> None:
    script = Path(sysconfig.get_path("scripts")) / "lexinvariant"
    command = {
        "a process that we start": python_command("lexinvariant.cli.main", "main"),
        "python -m": [sys.executable, "-m", "lexinvariant"],
        "the command": [sys.executable, str(script)],
    }[how]
    if how == "the command" and not script.is_file():
        pytest.skip("the package is not installed")
    done = started([*command, "decipher", "--help"], trap)
    assert (done.returncode, done.stderr) == (0, "")
    assert "trapped" not in done.stdout and "usage: lexinvariant decipher" in done.stdout


def test_the_trap_works(trap: Path) -> None:
    assert started([sys.executable, "-c", "import numpy"], trap).returncode == 7


def test_no_other_module_starts_python() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        imported = {
            name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
        }
        imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert "executable" not in attributes or path.name == "processes.py", f"{path}: use python_command"
        assert "multiprocessing" not in {name.split(".")[0] for name in imported}, path
