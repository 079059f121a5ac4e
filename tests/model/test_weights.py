"""Models on disk: exact in float32, close in fewer bits, and never half-read."""

import json
import os
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.config import LexiconConfig, ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.model.params import Params, count, flatten_named
from lexinvariant.model.weights import Precision, find_model, load_weights, read_description, save_model
from lexinvariant.text import CharVocab, LetterVocab, Vocab, train_tokenizer
from tests.tiny_models import TINY, random_params

CONFIG = ModelConfig(
    vocab_size=128,
    context=16,
    n_layers=2,
    width=16,
    n_heads=2,
    head_dim=8,
    hidden=256,
    lexicon=LexiconConfig(kind="annealed", anneal_share=0.1),
    readout="seen",
    smeared_keys=True,
    decipher_head=True,
    decipher_hidden=32,
    decipher_next=True,
    hindsight_layers=1,
)
PARAMS = random_params(CONFIG)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path / "model", CONFIG, PARAMS, CharVocab(), notes={"step": 7})
    return tmp_path / "model"


@pytest.fixture(scope="module")
def trained_vocab(tmp_path_factory: pytest.TempPathFactory) -> Vocab:
    place = tmp_path_factory.mktemp("tokenizer")
    (place / "text.txt").write_text("the cat and the hat and the café sat there " * 20)
    return train_tokenizer([str(place / "text.txt")], place / "tokenizer.json", size=270)


def assert_one_sentence(error: pytest.ExceptionInfo[UserError], *parts: str) -> None:
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 250
    for part in parts:
        assert part in message


@pytest.mark.parametrize("name", ["characters", "letters", "tokenizer"])
def test_float32_comes_back_bit_for_bit_with_its_vocabulary(
    name: str, tmp_path: Path, trained_vocab: Vocab
) -> None:
    vocab = {"characters": CharVocab(), "letters": LetterVocab(12), "tokenizer": trained_vocab}[name]
    config = replace(CONFIG, vocab_size=vocab.size)
    params = random_params(config)
    save_model(tmp_path, config, params, vocab)
    weights = load_weights(tmp_path)
    loaded_config, loaded, loaded_vocab = weights.config, weights.params, weights.vocab
    assert loaded_config == config
    jax.tree.map(np.testing.assert_array_equal, loaded, params)
    assert (loaded_vocab.name, loaded_vocab.size) == (vocab.name, vocab.size)
    text = "the cat abba"
    np.testing.assert_array_equal(loaded_vocab.encode(text), vocab.encode(text))
    assert loaded_vocab.decode(loaded_vocab.encode(text)) == vocab.decode(vocab.encode(text))


def test_a_model_without_the_optional_parameters_comes_back_without_them(tmp_path: Path) -> None:
    config = ModelConfig(vocab_size=12, context=8, n_layers=1, width=4, n_heads=1, head_dim=4, hidden=4)
    save_model(tmp_path, config, random_params(config), LetterVocab(12))
    weights = load_weights(tmp_path)
    loaded_config, loaded = weights.config, weights.params
    assert loaded_config == config
    jax.tree.map(np.testing.assert_array_equal, loaded, random_params(config))
    assert loaded.embedding.table_VD is None


def test_notes_are_kept(folder: Path) -> None:
    assert read_description(folder)["notes"] == {"step": 7}


def matrices_and_others(params: Params) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    named = {name: np.asarray(value) for name, value in flatten_named(params)}
    rank = {name: value.ndim - name.startswith(("layers.", "hindsight.")) for name, value in named.items()}
    return {n: x for n, x in named.items() if rank[n] == 2}, {n: x for n, x in named.items() if rank[n] < 2}


@pytest.mark.parametrize("precision", ["bfloat16", "int8", "int6"])
def test_fewer_bits_round_matrices_within_bounds_and_leave_vectors_alone(
    precision: str, tmp_path: Path
) -> None:
    save_model(tmp_path, CONFIG, PARAMS, CharVocab(), precision=precision)
    loaded = load_weights(tmp_path).params
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(loaded))
    (matrices, others), (loaded_matrices, loaded_others) = map(matrices_and_others, (PARAMS, loaded))
    assert len(matrices) == 19
    for name, value in others.items():
        np.testing.assert_array_equal(loaded_others[name], value, err_msg=name)
    for name, value in matrices.items():
        error = np.abs(loaded_matrices[name] - value)
        assert error.max() > 0, name
        if precision == "bfloat16":
            assert np.all(error <= 2**-8 * np.abs(value)), name
        else:
            largest = {"int8": 127, "int6": 31}[precision]
            half_a_step = np.abs(value).max(axis=-2, keepdims=True) / largest / 2
            assert np.all(error <= 1.001 * half_a_step), name


@pytest.mark.parametrize("precision", ["int8", "int6"])
def test_a_column_of_zeros_comes_back_as_zeros(tmp_path: Path, precision: Precision) -> None:
    layers = replace(PARAMS.layers, up_DF=PARAMS.layers.up_DF.at[:, :, 3].set(0.0))
    save_model(tmp_path, CONFIG, replace(PARAMS, layers=layers), CharVocab(), precision=precision)
    np.testing.assert_array_equal(load_weights(tmp_path).params.layers.up_DF[:, :, 3], 0.0)


def test_files_are_as_small_as_their_precision(tmp_path: Path) -> None:
    size = {}
    for precision in ("float32", "bfloat16", "int8", "int6"):
        save_model(tmp_path / precision, CONFIG, PARAMS, CharVocab(), precision=precision)
        size[precision] = (tmp_path / precision / "model.safetensors").stat().st_size
        assert sorted(path.name for path in (tmp_path / precision).iterdir()) == [
            "config.json",
            "model.safetensors",
            "vocab.json",
        ]
    assert 4 * count(CONFIG) < size["float32"] < 4 * count(CONFIG) + 4000
    assert size["bfloat16"] < 0.6 * size["float32"]
    assert size["int8"] < 0.45 * size["float32"]
    assert size["int6"] < 0.87 * size["int8"]


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def cut_to_a_stub(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"abc")


def corrupt_header(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:8] + b"\x00\xff" * 50 + path.read_bytes()[108:])


def remove_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize("damage", [truncate, cut_to_a_stub, corrupt_header, remove_weights])
def test_damaged_weights_are_told_in_a_sentence(folder: Path, damage: Callable[[Path], None]) -> None:
    damage(folder)
    with pytest.raises(UserError) as error:
        load_weights(folder)
    assert_one_sentence(error, "model.safetensors", "missing or damaged", "export the model again")


def edit_description(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_weights_of_another_shape_than_the_configuration_are_refused(folder: Path) -> None:
    model = read_description(folder)["model"]
    edit_description(folder, model={**model, "hidden": 128})
    with pytest.raises(UserError) as error:
        load_weights(folder)
    assert_one_sentence(error, "does not fit its config.json", "layers.up_DF")


def test_a_newer_format_is_told_apart(folder: Path) -> None:
    edit_description(folder, format=2)
    with pytest.raises(UserError) as error:
        load_weights(folder)
    assert_one_sentence(error, "newer lexinvariant", "update")


def test_a_field_of_another_version_is_told(folder: Path) -> None:
    edit_description(folder, model={**read_description(folder)["model"], "gates": 3})
    with pytest.raises(UserError) as error:
        load_weights(folder)
    assert_one_sentence(error, "gates", "install the version")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"model": {}}', '{"format": "x"}', '{"format": 1}'])
def test_a_configuration_that_is_none_is_told(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(UserError) as error:
        load_weights(folder)
    assert_one_sentence(error, "config.json", "export the model again")


@pytest.mark.parametrize(
    "nested", ["[" * 100_000, '{"format": 1, "model": {"a": ' + "[" * 99 + "]" * 99 + "}}"]
)
def test_a_configuration_without_a_bottom_is_told(folder: Path, nested: str) -> None:
    for name in ("config.json", "vocab.json"):
        whole = (folder / name).read_bytes()
        (folder / name).write_text(nested)
        with pytest.raises(UserError) as error:
            load_weights(folder)
        assert_one_sentence(error, name, "nested more than 64 levels deep")
        (folder / name).write_bytes(whole)


def test_pipes_in_a_models_folder_are_not_waited_for(folder: Path) -> None:
    for name in ("model.safetensors", "config.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(UserError) as error:
            load_weights(folder)
        assert_one_sentence(error, name, "not a regular file")


def relabel(folder: Path, name: str, old: bytes, new: bytes) -> None:
    path = folder / "model.safetensors"
    at = path.read_bytes().index(b'"' + name.encode() + b'"')
    head, tail = path.read_bytes()[:at], path.read_bytes()[at:]
    path.write_bytes(head + tail.replace(old, new, 1))


@pytest.mark.parametrize(
    ("precision", "old", "new", "sentence"),
    [
        ("float32", b'"F32"', b'"I32"', "layers.up_DF in int32, which no model has"),
        ("float32", b'"F32"', b'"U32"', "layers.up_DF in uint32, which no model has"),
        ("bfloat16", b'"BF16"', b'"F16" ', "layers.up_DF in float16, which no model has"),
        ("int8", b'"I8"', b'"U8"', "layers.up_DF in uint8, which no model has"),
        ("int6", b'"U8"', b'"I8"', "does not fit its config.json (layers.up_DF)"),
        ("int6", b'up_DF.scale"', b'up_DF.scala"', "no scale that fits layers.up_DF"),
        ("int8", b'up_DF.scale"', b'up_DF.scala"', "no scale that fits layers.up_DF"),
    ],
)
def test_a_tensor_under_another_types_name_is_refused(
    tmp_path: Path, precision: Precision, old: bytes, new: bytes, sentence: str
) -> None:
    save_model(tmp_path, CONFIG, PARAMS, CharVocab(), precision=precision)
    relabel(tmp_path, "layers.up_DF.scale" if b"scale" in old else "layers.up_DF", old, new)
    with pytest.raises(UserError) as error:
        load_weights(tmp_path)
    assert_one_sentence(error, sentence, "export", "again")


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F4"])
def test_types_that_numpy_has_not_are_refused(tmp_path: Path, dtype: str) -> None:
    save_model(tmp_path, CONFIG, PARAMS, CharVocab())
    write_header(
        tmp_path, {"x": {"dtype": dtype, "shape": [16], "data_offsets": [0, 8 if dtype == "F4" else 16]}}
    )
    with pytest.raises(UserError) as error:
        load_weights(tmp_path)
    assert_one_sentence(error, "missing or damaged", "export the model again")


def write_header(folder: Path, tensors: dict[str, Any]) -> None:
    """Weights that are holes: of any size, and without one byte on the disk."""
    header = json.dumps(tensors).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + max(tensor["data_offsets"][1] for tensor in tensors.values()))


def test_a_file_of_holes_is_not_read(tmp_path: Path) -> None:
    save_model(tmp_path, CONFIG, PARAMS, CharVocab())
    size = 1 << 42
    write_header(tmp_path, {"x": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}})
    with pytest.raises(UserError) as error:
        load_weights(tmp_path)
    assert_one_sentence(error, "does not fit its config.json (it is larger)", "export the model again")


@pytest.mark.parametrize(("kind", "size"), [("learned", 100), ("gaussian", 100), ("gaussian", 10**9)])
def test_a_vocabulary_of_another_size_than_the_model_is_refused(tmp_path: Path, kind: Any, size: int) -> None:
    config = replace(TINY, vocab_size=min(size, 128), lexicon=LexiconConfig(kind=kind))
    save_model(tmp_path, config, random_params(config), CharVocab())
    edit_description(tmp_path, model={**read_description(tmp_path)["model"], "vocab_size": size})
    with pytest.raises(UserError) as error:
        load_weights(tmp_path)
    assert_one_sentence(error, "a vocabulary of 128", f"a model of {size} symbols")


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    spoilt = replace(PARAMS, start_D=PARAMS.start_D.at[3].set(jnp.nan))
    save_model(tmp_path, CONFIG, spoilt, CharVocab())
    with pytest.raises(UserError) as error:
        load_weights(tmp_path)
    assert_one_sentence(error, "start_D", "NaN or infinite")


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8", "int6"])
def test_one_wrong_bit_of_a_number_is_noticed(tmp_path: Path, precision: Precision) -> None:
    save_model(tmp_path, CONFIG, PARAMS, CharVocab(), precision=precision)
    load_weights(tmp_path)
    path = tmp_path / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-len(data) // 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match="is damaged, its numbers are not those"):
        load_weights(tmp_path)


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        load_weights(tmp_path)
    assert_one_sentence(error, str(tmp_path), "no config.json", "lexinvariant export")


def test_the_folder_of_a_run_is_the_model_that_it_ended_with(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "model").mkdir()
    assert find_model(tmp_path) == tmp_path / "model"


def test_the_folder_of_a_run_under_way_gets_the_command_that_makes_a_model_of_it(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(UserError) as error:
        load_weights(tmp_path)
    assert_one_sentence(error, f"`lexinvariant export {tmp_path} OUT`")


def test_a_missing_vocabulary_is_told(folder: Path) -> None:
    (folder / "vocab.json").unlink()
    with pytest.raises(UserError) as error:
        load_weights(folder)
    assert_one_sentence(error, "tokenizer.json")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError) as error:
        save_model(tmp_path / "file", CONFIG, PARAMS, CharVocab())
    assert_one_sentence(error, "could not be written", "choose another place")


def test_an_existing_folder_is_the_model(folder: Path) -> None:
    assert find_model(folder) == folder
    assert find_model(str(folder)) == folder


@pytest.mark.parametrize("place", ["./nowhere", "/nowhere/at/all", "nowhere", "a/b/c"])
def test_a_path_that_does_not_exist_is_not_looked_for_on_the_hub(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError) as error:
        find_model(place)
    assert_one_sentence(error, f"no folder {place}", "OWNER/NAME")


def test_a_hub_name_without_the_hub_library_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError) as error:
        find_model("someone/some-model")
    assert_one_sentence(error, "someone/some-model", "pip install 'lexinvariant[hub]'")


def hub_that(answer: Callable[..., str]) -> types.ModuleType:
    library = types.ModuleType("huggingface_hub")
    library.snapshot_download = answer  # type: ignore[attr-defined]
    return library


def test_a_hub_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> str:
        raise ConnectionError("a long story\nover two lines")

    monkeypatch.setitem(sys.modules, "huggingface_hub", hub_that(fail))
    with pytest.raises(UserError) as error:
        find_model("someone/some-model")
    assert_one_sentence(error, "someone/some-model", "ConnectionError", "check the name and the network")


def test_a_model_on_the_hub_is_where_the_hub_put_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def fetch(name: str, **options: object) -> str:
        asked.append(options)
        return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", hub_that(fetch))
    assert load_weights("someone/some-model").config == CONFIG
    assert asked == [{"allow_patterns": ["*.json", "*.safetensors"]}], "data, and no code"


def test_a_model_says_how_transformers_reads_it(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat and the hat " * 20)
    vocab = train_tokenizer([str(tmp_path / "text.txt")], tmp_path / "tokenizer", size=260)
    config = replace(CONFIG, vocab_size=vocab.size, context=48)
    save_model(tmp_path / "model", config, random_params(config), vocab)
    assert read_description(tmp_path / "model")["model_type"] == "lexinvariant"
    tokenizer = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    assert tokenizer == {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 48}


def test_a_kill_while_a_model_is_replaced_leaves_no_mixture(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every step in which files come to their places, the old model is left, or the new one, or none."""
    other = replace(CONFIG, norm_eps=0.5)
    old = (folder / "config.json").read_bytes()
    steps = 0
    for killed_at in range(100):
        save_model(folder, CONFIG, PARAMS, CharVocab(), notes={"step": 7})
        steps = 0

        def counted(original: Callable[..., Any], at: int = killed_at) -> Callable[..., Any]:
            def call(*arguments: Any, **more: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps > at:
                    raise KeyboardInterrupt
                return original(*arguments, **more)

            return call

        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            for name in ("write_bytes", "write_text", "replace", "unlink"):
                patch.setattr(Path, name, counted(getattr(Path, name)))
            save_model(folder, other, jax.tree.map(jnp.zeros_like, PARAMS), CharVocab())
        if not (folder / "model.safetensors").exists():
            with pytest.raises(UserError, match="missing or damaged: export the model again"):
                load_weights(folder)
            continue
        weights = load_weights(folder)
        is_new = not any(np.asarray(value).any() for value in jax.tree.leaves(weights.params))
        assert weights.config == (other if is_new else CONFIG)
        assert is_new or (folder / "config.json").read_bytes() == old
        if steps <= killed_at:
            break
    assert is_new and 3 < steps < 100
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.json",
    ]


def test_another_tokenizer_than_the_models_is_told(tmp_path: Path) -> None:
    vocab = train_tokenizer(["stdlib:code?limit=5"], tmp_path / "tokenizer", size=300)
    save_model(
        tmp_path / "model",
        replace(CONFIG, vocab_size=300),
        random_params(replace(CONFIG, vocab_size=300)),
        vocab,
    )
    path = tmp_path / "model" / "tokenizer.json"
    written = path.read_bytes()
    changed = json.loads(written)
    tokens = changed["model"]["vocab"]
    tokens["a"], tokens["b"] = tokens["b"], tokens["a"]
    path.write_text(json.dumps(changed))
    with pytest.raises(UserError, match="is not what was written there, by its hash"):
        load_weights(tmp_path / "model")
    path.write_bytes(written)
    load_weights(tmp_path / "model")


def test_notes_that_are_none_are_told(folder: Path) -> None:
    description = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(description | {"notes": [1]}))
    with pytest.raises(UserError, match="its notes are none: export the model again"):
        read_description(folder)
