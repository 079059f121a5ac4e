"""The house stays in order: imports point one way, some rooms need no jax, and files stay short."""

import ast
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lexinvariant

SOURCE = Path(lexinvariant.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
FLOORS = (
    {"errors", "progress"},
    {"checks", "files", "locks", "processes", "interruption", "settings"},
    {"remote"},
    {"config", "generators", "rng"},
    {"text", "augment"},
    {"theory"},
    {"results"},
    {"model"},
    {"training", "presets"},
    {"decipher"},
    {"reading"},
    {"api", "torch"},
    {"experiments", "bench", "harness"},
    {"report"},
    {"web"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
LONGEST_FILE = 450


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def is_module(name: str) -> bool:
    place = SOURCE.parent / Path(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def imported_rooms(path: Path) -> Iterator[tuple[str, int]]:
    """The rooms of the package that a file imports from, at whatever depth of its code, with line numbers."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names = [node.module or ""]
            if node.module == "lexinvariant":
                names = [f"lexinvariant.{alias.name}" for alias in node.names]
                names = [name for name in names if is_module(name)]
        else:
            continue
        for name in names:
            assert not name.startswith("lexinvariant") or is_module(name), f"{path}:{node.lineno}: no {name}"
            parts = name.split(".")
            if parts[0] == "lexinvariant" and len(parts) > 1:
                yield parts[1], node.lineno


def type_checking_lines(path: Path) -> set[int]:
    """The lines that only type checkers read."""
    blocks = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.If)]
    checked = [node for node in blocks if ast.unparse(node.test) == "TYPE_CHECKING"]
    return {line for node in checked for line in range(node.lineno, (node.end_lineno or 0) + 1)}


def modules_of(room: str) -> list[str]:
    package = SOURCE / room
    inside = [f"lexinvariant.{room}.{module.name}" for module in pkgutil.iter_modules([str(package)])]
    return [f"lexinvariant.{room}", *inside]


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":  # for type checkers alone: the package itself loads its names when they are used
        checked = type_checking_lines(path)
        assert all(line in checked for _, line in imported_rooms(path))
        return
    assert room in FLOOR, f"give {room} a floor in this test"
    for other, line in imported_rooms(path):
        assert other in FLOOR, f"{path}:{line} imports from {other}, which has no floor in this test"
        assert other == room or FLOOR[other] < FLOOR[room], f"{path}:{line}: {room} imports from {other}"


@pytest.mark.parametrize("room", ["remote", "text", "theory", "results", "report"])
def test_these_rooms_work_without_jax(room: str) -> None:
    code = f"import sys\nimport {', '.join(modules_of(room))}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stdout.split())
    assert set(modules_of(room)) <= loaded
    assert not loaded & {"jax", "jaxlib", "optax", "orbax"}


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_text_is_utf8_whatever_the_machine_speaks(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            least = {"read_text": 1, "write_text": 2}.get(node.func.attr)
            said = least is None or len(node.args) >= least or "encoding" in {k.arg for k in node.keywords}
            assert said, f"{path}:{node.lineno}: give an encoding"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_files_stay_short_and_name_no_place_of_this_machine(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= LONGEST_FILE
    place = re.compile(r"(?<![\w.])/(home|work|root|Users|mnt|tmp)/\w")
    assert not [line for line in lines if place.search(line)]
