"""The parameters: what there is, how it starts, how it is sharded and what it is called.

A field's name ends in its axes (`up_DF`), and that suffix is the single source of its shape, its sharding and
its documentation. Axes: V vocabulary, D width, N heads, E all heads' dimensions together, F hidden width,
W position buckets, L layers, H layers of hindsight, P hidden width of the deciphering head, C width of the recall,
Q statistics of occurrences and G their buckets.
Attention's matrices are stored as plain matrices, since Adafactor factors what it sees: a matrix (D, E) is not the same
to it as an array (D, N, K).
"""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from lexinvariant.config import ModelConfig
from lexinvariant.rng import Stream, key_at

OCCURRENCE_STATISTICS, OCCURRENCE_BUCKETS = 5, 13  # the last bucket is of more than 2,048

Init = Callable[[jax.Array, tuple[int, ...]], jax.Array]


@dataclass(frozen=True)
class EmbeddingParams:
    """The learned token table, where the lexicon has one, and the affine map that every embedded row goes through."""

    table_VD: Any
    scale: Any
    bias: Any
    occurrence_QGD: Any  # a row for each bucket of each statistic of a symbol's occurrences (embedding.py)


@dataclass(frozen=True)
class Layer:
    """One Transformer block; or all of a stack, along a first axis (L, H) that the names leave out."""

    attention_norm_D: Any
    query_DE: Any
    key_DE: Any
    value_DE: Any
    qk_scale_N: Any
    position_WN: Any
    future_WN: Any  # the position bias of what comes later, in layers that look at it
    smear_N: Any
    out_ED: Any
    mlp_norm_D: Any
    up_DF: Any
    down_FD: Any


@dataclass(frozen=True)
class DecipherHead:
    """Linear, GELU, linear: from a hidden state to the true identity of the symbol just read, or of the next one."""

    up_DP: Any
    up_bias_P: Any
    next_DP: Any  # in place of `up`, for the symbol to come
    next_bias_P: Any
    down_PV: Any
    down_bias_V: Any


@dataclass(frozen=True)
class Recall:
    """Projections of a state to the note that it leaves, the note's log-weight, and the query for notes (recall.py)."""

    note_DC: Any
    gate_D: Any
    ask_DC: Any


@dataclass(frozen=True, repr=False)
class Params:
    """A model's parameters; or a tree of that form of anything else there is one of for each: specs, shardings."""

    embedding: EmbeddingParams
    layers: Layer  # stacked: a few large arrays are faster to update, save and pass than many small ones
    final_norm_D: Any
    start_D: Any  # the state that predicts the first symbol, before anything is read
    unseen_D: Any  # the readout row of "a symbol not seen yet"
    recall: Recall | None
    decipher: DecipherHead | None
    hindsight: Layer | None  # stacked as the others

    def __repr__(self) -> str:
        leaves = jax.tree.leaves(self, is_leaf=is_spec)
        size = sum(math.prod(getattr(leaf, "shape", ())) for leaf in leaves)
        return f"Params({len(leaves)} arrays, {size:,} numbers)"


for _node in (EmbeddingParams, Layer, DecipherHead, Recall, Params):
    jax.tree_util.register_dataclass(_node)


@dataclass(frozen=True)
class ParamSpec:
    """All that is to know of one parameter before it has a value."""

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    init: Init


def _constant(value: float) -> Init:
    return lambda key, shape: jnp.full(shape, value, jnp.float32)


def _unit_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return jax.random.normal(key, shape, jnp.float32)


def _fan_in(n_inputs: int) -> Init:
    """Truncated normal of variance 1/n_inputs (the factor undoes what truncation at two sigma takes away)."""
    deviation = 1 / math.sqrt(n_inputs) / 0.87962566103423978
    return lambda key, shape: deviation * jax.random.truncated_normal(key, -2, 2, shape, jnp.float32)


def _smear_half_of_heads(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Half of the heads start by matching the previous symbol, half by matching the current one."""
    s_N = jnp.where(jnp.arange(shape[-1]) < shape[-1] // 2, 3.0, -3.0)
    # The type is said, since a weak one would make the train step compile twice.
    return jnp.broadcast_to(s_N, shape).astype(jnp.float32)


def specs(config: ModelConfig) -> Params:
    """The table of every parameter of a model, in the form of its parameters."""
    c = config
    size = {"V": c.vocab_size, "D": c.width, "N": c.n_heads, "E": c.n_heads * c.head_dim}
    size |= {
        "L": c.n_layers,
        "H": c.hindsight_layers,
        "F": c.hidden,
        "W": c.position_buckets,
        "P": c.decipher_hidden,
        "C": c.recall_width,
        "Q": OCCURRENCE_STATISTICS,
        "G": OCCURRENCE_BUCKETS,
    }

    def spec(axes: str, init: Init) -> ParamSpec:
        return ParamSpec(tuple(size[axis] for axis in axes), tuple(axes), init)

    def from_names(node: type, inits: Mapping[str, Init | None], stacked: str = "") -> Any:
        """Shapes come from the suffix of each name; None stands for a parameter this model does without."""

        def from_name(name: str, init: Init | None) -> ParamSpec | None:
            return None if init is None else spec(stacked + name.rpartition("_")[2], init)

        return node(**{name: from_name(name, init) for name, init in inits.items()})

    ones, zeros = _constant(1.0), _constant(0.0)
    bias = _fan_in(c.position_buckets) if c.positions == "bias" else None
    layer: dict[str, Init | None] = {
        "attention_norm_D": ones,
        "query_DE": _fan_in(c.width),
        "key_DE": _fan_in(c.width),
        "value_DE": _fan_in(c.width),
        "qk_scale_N": _constant(c.qk_scale_init) if c.normalize_qk else None,
        "position_WN": bias,
        "future_WN": None,
        "smear_N": _smear_half_of_heads if c.smeared_keys else None,
        "out_ED": _fan_in(c.width),
        "mlp_norm_D": ones,
        "up_DF": _fan_in(c.width),
        "down_FD": _fan_in(c.hidden),
    }
    both_ways = layer | {"future_WN": bias}
    affine = "D" if c.lexicon.affine == "channel" else ""
    head: dict[str, Init | None] = {
        "up_DP": _fan_in(c.width),
        "up_bias_P": zeros,
        "next_DP": _fan_in(c.width) if c.decipher_next else None,
        "next_bias_P": zeros if c.decipher_next else None,
        "down_PV": _fan_in(c.decipher_hidden),
        "down_bias_V": zeros,
    }
    recall = {"note_DC": _fan_in(c.width), "gate_D": zeros, "ask_DC": zeros}  # at first nothing is asked
    return Params(
        embedding=EmbeddingParams(
            table_VD=spec("VD", _unit_normal) if c.lexicon.has_table else None,
            scale=spec(affine, ones),
            bias=spec(affine, zeros),
            occurrence_QGD=spec("QGD", zeros) if c.count_occurrences else None,
        ),
        layers=from_names(Layer, layer, stacked="L"),
        final_norm_D=spec("D", ones),
        start_D=spec("D", zeros),
        unseen_D=spec("D", zeros) if c.readout == "seen" else None,
        recall=from_names(Recall, recall) if c.has_recall else None,
        decipher=from_names(DecipherHead, head) if c.decipher_head else None,
        hindsight=from_names(Layer, both_ways, stacked="H") if c.has_hindsight else None,
    )


def is_spec(leaf: Any) -> bool:
    return isinstance(leaf, ParamSpec)


def flatten_named(tree: Any) -> Iterator[tuple[str, Any]]:
    """Leaves with dotted names (`layers.up_DF`), the names used in safetensors files."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_spec)[0]:
        yield ".".join(part.name for part in path), leaf


def init(config: ModelConfig, seed: int) -> Params:
    """Fresh parameters; each is drawn from its own name, so adding one leaves the others as they were."""
    table = specs(config)
    values = [
        spec.init(key_at(seed, Stream.INIT, zlib.crc32(name.encode())), spec.shape)
        for name, spec in flatten_named(table)
    ]
    return jax.tree.unflatten(jax.tree.structure(table, is_leaf=is_spec), values)


@jax.custom_vjp
def unstack(layers: Layer) -> tuple[Layer, ...]:
    """The layers one by one. Its gradient stacks; that of plain indexing would add up L padded arrays."""
    arrays, form = jax.tree.flatten(layers)
    return tuple(jax.tree.unflatten(form, of_one_layer) for of_one_layer in zip(*arrays, strict=True))


unstack.defvjp(
    lambda layers: (unstack(layers), None),
    lambda _, grads: (jax.tree.map(lambda *grad: jnp.stack(grad), *grads),),
)


def abstract(config: ModelConfig) -> Params:
    """Shapes and types without values."""
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, jnp.float32), specs(config), is_leaf=is_spec)


def count(config: ModelConfig) -> int:
    return sum(math.prod(spec.shape) for _, spec in flatten_named(specs(config)))
