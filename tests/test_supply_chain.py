"""What is installed is what was tested, and files that others wrote are data and never code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lexinvariant

ROOT = Path(__file__).parents[1]
SOURCE = Path(lexinvariant.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# By their last name, whatever they are called on: all of these run code, or write where a file says.
NO_CALLS = {"eval", "exec", "extractall", "extract", "unpack_archive"}
NO_IMPORTS = {"pickle", "shelve", "marshal", "dill", "cloudpickle", "joblib", "yaml"}
NO_ARGUMENTS = {"allow_pickle", "trust_remote_code"}


def locked() -> Iterator[tuple[str, str, list[str]]]:
    """(name, version, hashes) of everything in requirements.lock."""
    text = (ROOT / "requirements.lock").read_text("utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            pinned, *hashes = line.split("--hash=")
            name, version = re.match(r"([\w.-]+)==([\w.]+)", pinned).groups()  # type: ignore[union-attr]
            yield name, version, [entry.strip() for entry in hashes]


def test_the_lock_has_hashes_for_everything_and_no_address() -> None:
    assert "://" not in (ROOT / "requirements.lock").read_text("utf-8")
    for name, _, hashes in locked():
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", entry) for entry in hashes), name


def test_the_lock_has_the_versions_that_are_tested() -> None:
    tested: dict[str, set[str]] = {}
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        if found := re.match(r"([\w.-]+)==([\w.]+)", line):
            tested.setdefault(found[1].lower().replace("_", "-"), set()).add(found[2])
    by_name: dict[str, set[str]] = {}
    for name, version, _ in locked():
        by_name.setdefault(name, set()).add(version)
    assert {name: by_name[name] for name in tested if name in by_name} == {
        name: tested[name] for name in tested if name in by_name
    }
    required = re.search(
        r"\ndependencies = \[(.*?)\]", (ROOT / "pyproject.toml").read_text("utf-8"), re.DOTALL
    )
    assert required is not None
    names = {name.lower().replace("_", "-") for name in re.findall(r'"([\w.-]+)', required[1])}
    assert names <= by_name.keys()


@pytest.mark.parametrize("room", sorted({path.relative_to(SOURCE).parts[0] for path in FILES}))
def test_no_file_that_is_read_can_be_code(room: str) -> None:
    files = sorted((SOURCE / room).rglob("*.py")) if (SOURCE / room).is_dir() else [SOURCE / room]
    for path in files:
        own_pipes = path.name == "workers.py"  # between two processes of our own
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            place = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                of_a_network = (
                    isinstance(function, ast.Attribute) and name == "eval"
                )  # PyTorch's: no such thing
                assert name not in NO_CALLS or of_a_network, f"{place}: {name}"
                assert not NO_ARGUMENTS & {keyword.arg for keyword in node.keywords}, place
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = (
                    [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
                )
                assert not {str(name).split(".")[0] for name in names} & NO_IMPORTS or own_pipes, place
