"""Short runs with one thing changed: they train, are compared on the same text, and go on where they stopped."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.config import ShardingConfig
from lexinvariant.errors import UserError
from lexinvariant.experiments.ablation import RECIPE, VARIANTS, Options, variants_of
from lexinvariant.experiments.naming_passage import PASSAGE
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.presets import PRESETS, preset
from lexinvariant.report.draw import draw
from lexinvariant.results.ablation import TrainedVariant
from lexinvariant.results.rows import Rows
from lexinvariant.results.section import Section
from lexinvariant.text import prepare, train_tokenizer


def run(options: Options, **rest: Any) -> list[TrainedVariant]:
    return Rows(find_experiment("ablation").run(options, **rest)).of(TrainedVariant)


RECIPES = {name: preset(name).changed({"steps": 2000}) for name in ("char-small", "tokens-small")}


@pytest.mark.parametrize(
    ("recipe_name", "name"), [(recipe, name) for recipe in RECIPES for name in variants_of(RECIPES[recipe])]
)
def test_a_variant_reads_as_many_tokens_and_keeps_its_size(recipe_name: str, name: str) -> None:
    recipe = RECIPES[recipe_name]
    config = recipe.changed(VARIANTS[name].settings(recipe))
    assert config.tokens_per_step * config.steps == recipe.tokens_per_step * recipe.steps
    assert config.model.n_matmul_parameters == pytest.approx(recipe.model.n_matmul_parameters, rel=0.15)
    assert (config == recipe) == (name == RECIPE)
    assert config.model.hidden % 8 == 0, "a GPU is slow at other matrices"


def test_variants_are_those_that_change_something() -> None:
    characters, tokens = (set(variants_of(recipe)) for recipe in RECIPES.values())
    names_what_it_read = set(variants_of(preset("char-tiny")))
    assert set(VARIANTS) == characters | tokens | names_what_it_read
    assert "one lexicon" in characters - tokens
    assert "every symbol named" in tokens - characters
    assert "next symbol named" in names_what_it_read - characters - tokens
    assert "next symbol not named" in (characters & tokens) - names_what_it_read
    without_head = RECIPES["tokens-small"].changed({"model.decipher_head": False})
    assert "more hindsight" not in variants_of(without_head)


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
    said: list[str] = []
    (row,) = find_experiment("ablation").run(options, log=said.append)
    assert isinstance(row, TrainedVariant)
    assert "letters12 cannot write LookUp and Permutation: they are left out." in said
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

    assert row.new_matters, "of sixteen symbols some are new at the end"
    better = replace(row.held_out, tail_seen_loss=row.loss - 0.25)
    recipe = replace(row, name=RECIPE, settings={}, held_out=better)
    section = find_experiment("ablation").section(Rows([*read_all_rows(tmp_path), recipe]))
    assert section is not None
    assert draw(section.figures[0], "light").axes
    assert _differences(section) == {RECIPE: "+0.000", name: "+0.250"}, "the newest of each once"
    assert [cells[0] for cells in section.tables[0].rows] == [RECIPE, name], "the best first"
    assert f"variants: {RECIPE} {recipe.loss:.3g}, {name}" in section.figures[0].alt  # the lowest first

    others = [one.with_origin(replace(row.origin, seed=1)) for one in (row, recipe)]
    section = find_experiment("ablation").section(Rows([row, recipe.with_origin(row.origin), *others]))
    assert section is not None
    told = {
        f"{what}, seed {seed}": more
        for seed in (0, 1)
        for what, more in ((RECIPE, "+0.000"), (name, "+0.250"))
    }
    assert _differences(section) == told


def _differences(section: Section) -> dict[str, str]:
    [table] = section.tables
    return {cells[0]: cells[table.header.index("Against the recipe")] for cells in table.rows}


def test_tokens_are_compared_by_what_was_seen_before_and_answer_the_tasks(
    tmp_path: Path, tinier: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(PASSAGE * 3)
    vocab = train_tokenizer([str(text)], tmp_path / "words", size=300)
    prepare([str(text)], tmp_path / "data", vocab=str(tmp_path / "words"), valid=[str(text)])
    small = PRESETS["tiny"].config.changed(
        {"model.vocab_size": vocab.size, "model.decipher_head": True, "model.decipher_hidden": 8}
    )
    monkeypatch.setitem(PRESETS, "tiny", replace(PRESETS["tiny"], config=small))
    options = Options(
        preset="tiny",
        data=str(tmp_path / "data"),
        steps=2,
        out=tmp_path,
        sequences=8,
        batch_size=8,
        examples=4,
    )
    (row,) = run(replace(options, variants=("more hindsight",), seed=1))
    assert (tmp_path / "ablation" / "tiny-2-seed-1" / "more-hindsight").is_dir(), (
        "apart from the first seed's"
    )
    assert row.new_matters
    assert row.loss == row.held_out.tail_seen_loss != row.held_out.tail_loss
    assert set(row.tasks) == {"LookUp", "Permutation"}
    section = find_experiment("ablation").section(read_all_rows(tmp_path))
    assert section is not None
    assert {"Loss there, seen before", "In hindsight", "LookUp"} <= set(section.tables[0].header)
    assert "tokens seen before" in section.figures[0].panels[0].x.label


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'no deciphering head' changes nothing of tiny"):
        run(Options(preset="tiny", variants=("no deciphering head",), out=tmp_path))
    with pytest.raises(UserError, match="did you mean 'no smeared keys'"):
        run(Options(preset="tiny", variants=("no smeared key",), out=tmp_path))
    with pytest.raises(UserError, match="needs data"):
        run(Options(preset="char-tiny", out=tmp_path))
    with pytest.raises(UserError, match="--steps is 1: give at least 2"):
        run(Options(preset="tiny", steps=1, out=tmp_path))
    assert not list(tmp_path.iterdir())
