"""Short runs with one thing changed: they train, are compared on the same text, and go on where they stopped."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.config import ShardingConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments.ablation import RECIPE, VARIANTS, Options
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.presets import PRESETS, preset
from lexinvariant.report.draw import draw
from lexinvariant.results.ablation import TrainedVariant
from lexinvariant.results.rows import Rows

pytestmark = pytest.mark.usefixtures("compile_quickly")


def run(options: Options, **rest: Any) -> list[TrainedVariant]:
    return Rows(find_experiment("ablation").run(options, **rest)).of(TrainedVariant)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_reads_as_many_tokens_and_keeps_its_size(name: str) -> None:
    recipe = preset("char-small").changed({"steps": 2000})
    config = recipe.changed(VARIANTS[name].settings(recipe))
    assert config.tokens_per_step * config.steps == recipe.tokens_per_step * recipe.steps
    assert config.model.n_matmul_parameters == pytest.approx(recipe.model.n_matmul_parameters, rel=0.15)
    assert (config == recipe) == (name == RECIPE)


@pytest.fixture
def tinier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less of the preset `tiny`, and on one device: four steps take no time, but compiling them does."""
    tiny = PRESETS["tiny"]
    model = replace(tiny.config.model, context=16, n_layers=1, width=16, n_heads=2, head_dim=8, hidden=32)
    config = replace(tiny.config, model=model, batch_size=8, sharding=ShardingConfig(data=1))
    monkeypatch.setitem(PRESETS, "tiny", replace(tiny, config=config))


def test_a_variant_is_trained_once_and_compared_on_held_out_text(tmp_path: Path, tinier: None) -> None:
    name = "no smeared keys"
    options = Options(preset="tiny", steps=4, variants=(name,), out=tmp_path, sequences=32, batch_size=8)
    (row,) = run(options)
    assert row.settings == {"model.smeared_keys": False}
    assert row.curve.step == [1, 2, 3, 4]
    assert row.held_out.tail_loss == pytest.approx(row.curve.tail_loss[-1], abs=0.2)
    assert row.origin.draws == 1
    assert row.tasks == {}, "twelve symbols of a made-up language cannot write the tasks"

    weights = tmp_path / "ablation" / "tiny-4" / "no-smeared-keys" / "model" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    (again,) = run(options)
    assert weights.stat().st_mtime_ns == before, "a finished run is not trained again"
    assert again.held_out == row.held_out

    better = replace(row.held_out, tail_loss=row.held_out.tail_loss - 0.25)
    recipe = replace(row, name=RECIPE, settings={}, held_out=better)
    section = find_experiment("ablation").section(Rows([*read_all_rows(tmp_path), recipe]))
    assert section is not None
    assert draw(section.figures[0], "light").axes
    (table,) = section.tables
    differences = [(cells[0], cells[5]) for cells in table.rows]
    assert differences == [(RECIPE, "+0.000"), (name, "+0.250")], (
        "the best first, and the newest of each once"
    )
    assert f"variants: {RECIPE} {better.tail_loss:.3g}, {name}" in section.figures[0].alt  # the lowest first


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'no smeared keys'"):
        run(Options(preset="tiny", variants=("no smeared key",), out=tmp_path))
    with pytest.raises(UserError, match="needs data"):
        run(Options(preset="char-tiny", out=tmp_path))
    with pytest.raises(UserError, match="--steps is 1: give at least 2"):
        run(Options(preset="tiny", steps=1, out=tmp_path))
    assert not list(tmp_path.iterdir())
