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
from lexinvariant.model import params as model_params
from lexinvariant.model.folder import BUNDLED, FORMAT, MODEL_TYPE, find_model, read_description, read_vocab
from lexinvariant.model.params import Params
from lexinvariant.model.tensor_file import SCALE, file_metadata, read_tensors
from lexinvariant.settings import from_dict, to_json
from lexinvariant.text import HuggingFaceVocab, Vocab

Precision = Literal["float32", "bfloat16", "int8"]


@dataclass(frozen=True, repr=False)
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


def _quantize(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 with one scale for each matrix and output column: the largest entry becomes 127."""
    scale = np.maximum(np.abs(value).max(axis=-2, keepdims=True), 1e-12) / 127
    return np.round(value / scale).astype(np.int8), scale.astype(np.float32)


def save_model(
    folder: Path,
    config: ModelConfig,
    params: Params,
    vocab: Vocab,
    *,
    precision: Precision = "float32",
    notes: dict[str, Any] | None = None,
) -> None:
    """Write a model. Vectors stay float32 whatever the precision: they are few, and scales matter."""
    from safetensors.flax import save  # not at the top: reading a configuration needs none of it

    tensors: dict[str, Any] = {}
    for name, value in model_params.flatten_named(params):
        is_matrix = name.rpartition("_")[2].isupper() and len(name.rpartition("_")[2]) > 1
        if precision == "int8" and is_matrix:
            quantized, scale = _quantize(np.asarray(value, np.float32))
            tensors[name], tensors[name + SCALE] = jnp.asarray(quantized), jnp.asarray(scale)
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
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / "model.safetensors.part"
        metadata = file_metadata({name: np.asarray(value) for name, value in tensors.items()})
        unfinished.write_bytes(save(tensors, metadata))
        (folder / "config.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
        vocab.save(folder)
        if isinstance(vocab, HuggingFaceVocab):  # with this, transformers' AutoTokenizer reads tokenizer.json
            tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.context}
            (folder / "tokenizer_config.json").write_text(
                json.dumps(tokenizer, indent=2) + "\n", encoding="utf-8"
            )
        unfinished.replace(folder / "model.safetensors")
    except OSError as error:
        raise UserError(
            f"The model could not be written to {folder} ({error.strerror or error}): free some space or choose "
            "another folder."
        ) from error


def load_weights(place: str | Path = BUNDLED) -> Weights:
    """The bundled model, one in a folder or one on the Hub; int8 and bfloat16 weights become float32."""
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
