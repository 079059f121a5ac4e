"""Models on disk: model.safetensors, config.json and the tokenizer, without any training state."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from lexinvariant.config import ModelConfig
from lexinvariant.errors import UserError
from lexinvariant.files import write_remedy
from lexinvariant.locks import alone_in, staging_folder
from lexinvariant.model import params as model_params
from lexinvariant.model.folder import BUNDLED, FORMAT, MODEL_TYPE, find_model, read_description, read_vocab
from lexinvariant.model.params import Params
from lexinvariant.model.quantize import quantize
from lexinvariant.model.tensor_file import SCALE, TENSORS, file_metadata, read_tensors
from lexinvariant.settings import from_dict, to_json
from lexinvariant.text import HuggingFaceVocab, Vocab

Precision = Literal["float32", "bfloat16", "int8", "int6"]
_BITS = {"int8": 8, "int6": 6}


@dataclass(frozen=True, repr=False, eq=False)
class Weights:
    """A model's parameters, their configuration and their vocabulary."""

    config: ModelConfig
    params: Params
    vocab: Vocab

    def __repr__(self) -> str:
        config = self.config
        return (
            f"{type(self).__name__}({config.lexicon.kind} lexicon, {config.n_layers} layers x {config.width}, "
            f"{model_params.count(config):,} parameters, {self.vocab.name} vocabulary of {config.vocab_size}, "
            f"context {config.context})"
        )


def save_model(
    folder: Path,
    config: ModelConfig,
    params: Params,
    vocab: Vocab,
    *,
    precision: Precision = "float32",
    notes: dict[str, Any] | None = None,
) -> None:
    """Write a model: a folder has the old one or the new one, or for a moment none, and never parts of both.

    Vectors stay float32 whatever the precision: they are few, and scales matter.
    """
    from safetensors.flax import save  # not at the top: reading a configuration needs none of it

    tensors: dict[str, Any] = {}
    for name, value in model_params.flatten_named(params):
        axes = name.rpartition("_")[2]
        is_matrix = axes.isupper() and len(axes) > 1
        if precision in _BITS and is_matrix:
            stored, scale = quantize(np.asarray(value, np.float32), _BITS[precision])
            tensors[name], tensors[name + SCALE] = jnp.asarray(stored), jnp.asarray(scale)
        else:
            tensors[name] = value.astype(jnp.bfloat16) if precision == "bfloat16" and is_matrix else value
    description = {
        "model_type": MODEL_TYPE,
        "architectures": ["LexinvariantForCausalLM"],
        "format": FORMAT,
        "precision": precision,
        "model": json.loads(to_json(config)),
        "notes": notes or {},
    }
    try:
        # Within the folder: the one around it may belong to somebody else.
        with staging_folder(folder / TENSORS) as staged:
            metadata = file_metadata({name: np.asarray(value) for name, value in tensors.items()})
            (staged / TENSORS).write_bytes(save(tensors, metadata))
            (staged / "config.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
            vocab.save(staged)
            if isinstance(
                vocab, HuggingFaceVocab
            ):  # with this, transformers' AutoTokenizer reads tokenizer.json
                tokenizer = {
                    "tokenizer_class": "PreTrainedTokenizerFast",
                    "model_max_length": config.context,
                }
                (staged / "tokenizer_config.json").write_text(
                    json.dumps(tokenizer, indent=2) + "\n", encoding="utf-8"
                )
            with alone_in(folder):
                (folder / TENSORS).unlink(missing_ok=True)  # without it nothing here counts as a model
                for written in sorted(staged.iterdir(), key=lambda path: path.name == TENSORS):
                    written.replace(folder / written.name)
    except OSError as error:
        raise UserError(
            f"The model could not be written to {folder} ({error.strerror or error}): {write_remedy(error)}."
        ) from error


def load_weights(place: str | Path = BUNDLED) -> Weights:
    """The bundled model, one in a folder or one on the Hub; weights in fewer bits become float32."""
    folder = find_model(place)
    description = read_description(folder)
    config = from_dict(ModelConfig, description["model"])
    specs = model_params.specs(config)
    tensors = read_tensors(folder, model_params.count(config))
    values = []
    for name, spec in model_params.flatten_named(specs):
        value = tensors.get(name)
        if value is None or value.shape != spec.shape:
            raise UserError(
                f"{folder}/model.safetensors does not fit its config.json ({name}): export it again."
            )
        values.append(jnp.asarray(value))
    params = jax.tree.unflatten(jax.tree.structure(specs, is_leaf=model_params.is_spec), values)
    return Weights(config, params, read_vocab(folder, config))
