"""`lexinvariant experiment` and `lexinvariant report` from the command line's side."""

import re
from pathlib import Path

import pytest

from lexinvariant.cli import experiment, report
from lexinvariant.errors import UserError
from lexinvariant.experiments.registry import EXPERIMENTS, read_all_rows


def test_help_lists_experiments_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert experiment.main([]) == experiment.main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {entry.name} " in printed and entry.about in printed for entry in EXPERIMENTS)
    assert "example: lexinvariant experiment theory --quick" in printed


@pytest.mark.parametrize("main", [lambda a: experiment.main(["theory", *a]), report.main])
def test_options_are_explained(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])  # type: ignore[operator]
    assert stop.value.code == 0
    assert re.search(r"examples?:\s+lexinvariant", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("teory", "theory"), ("theorie", "theory"), ("convergense", "convergence")],
)
def test_unknown_name_suggests_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"no experiment called '{name}': did you mean '{meant}'"):
        experiment.main([name])


def test_a_name_like_none_gets_all_of_them() -> None:
    with pytest.raises(
        UserError, match="no experiment called 'x': choose from training, ablation, convergence, "
    ):
        experiment.main(["x"])


def test_run_then_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "with space"
    assert experiment.main(["theory", "--quick", "--length", "16", "--seed", "7", "--out", str(out)]) == 0
    rows = list(read_all_rows(out))
    assert {row.origin.seed for row in rows} == {7}
    assert rows[0].origin.command.startswith(
        "lexinvariant experiment theory --quick --length 16 --seed 7 --out '"
    )
    assert report.main([str(out), "--markdown"]) == 0
    assert (out / "report.html").is_file() and (out / "report.md").is_file()
    assert "report.html" in capsys.readouterr().out


def test_report_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no folder"):
        report.main([str(tmp_path / "none")])
