"""The paper's probe: a small network that names, from a frozen model's final states, the symbol just read.

Two layers and a learned table E' of its own as output embedding, trained to name the current token while the
model's lexicon is drawn anew for every sequence. A model's own deciphering head does the same; `SymbolNamer` is what
the probe, the head and the head in hindsight have in common.
"""

import dataclasses
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lexinvariant.config import ModelConfig, OptimizerConfig
from lexinvariant.errors import UserError
from lexinvariant.files import check_regular, parse_json
from lexinvariant.model.decipher_head import decipher_logits
from lexinvariant.model.params import Params
from lexinvariant.model.transformer import forward
from lexinvariant.model.weights import Weights
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.text import Split
from lexinvariant.training.batch_metrics import token_means
from lexinvariant.training.optim import make_optimizer
from lexinvariant.training.progress import TrainProgress
from lexinvariant.training.step import decipher_sums

SECONDS_BETWEEN_SAVES = 60.0

NamingFunction = Callable[[Any, jax.Array, jax.Array], jax.Array]
"""(params, h_BTD, read_BT) -> logits_BTV; read_BT is True where the text has been read."""


@dataclass(frozen=True)
class ProbeConfig:
    """How a probe is made. The paper gives the steps and the form; the rest is ours to say."""

    steps: int = 10_000
    """The paper's."""
    batch_size: int = 64
    """Sequences a step, the paper's batch for the model itself."""
    hidden: int = 0
    """Width between the two layers (GELU); 0 is the model's own width."""
    rate: float = 1e-3
    """AdamW without weight decay, gradients clipped to norm 1: 100 steps of warm-up, but at most a tenth of all,
    then linearly down to a tenth of this rate."""
    seed: int = 0
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the frozen model's arithmetic; the probe's parameters are float32."""

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size) < 1 or self.hidden < 0:
            raise UserError("A probe needs at least one step, one sequence a step and a width of 1 or more.")

    @property
    def optimizer(self) -> optax.GradientTransformation:
        settings = OptimizerConfig(
            name="adamw",
            rate=self.rate,
            schedule="linear",
            warmup_steps=min(100, self.steps // 10),
            clip_norm=1.0,
        )
        return make_optimizer(settings, self.steps)


@dataclass(frozen=True)
class ProbeParams:
    """The two layers, and E'. P is the width between the layers."""

    up_DP: Any
    up_bias_P: Any
    down_PD: Any
    down_bias_D: Any
    table_VD: Any


class ProbeState(NamedTuple):
    """All that training carries from step to step."""

    step: jax.Array
    params: ProbeParams
    optimizer: Any


jax.tree_util.register_dataclass(ProbeParams)


def probe_logits(params: ProbeParams, h_BTD: jax.Array) -> jax.Array:
    """logits_BTV over the true identity of the symbol read at each position, in float32."""
    dtype = h_BTD.dtype
    hidden_BTP = jax.nn.gelu(h_BTD @ params.up_DP.astype(dtype) + params.up_bias_P.astype(dtype))
    out_BTD = hidden_BTP @ params.down_PD.astype(dtype) + params.down_bias_D.astype(dtype)
    product = jnp.einsum(
        "btd,vd->btv", out_BTD, params.table_VD.astype(dtype), preferred_element_type=jnp.float32
    )
    return product / math.sqrt(h_BTD.shape[2])


@dataclass(frozen=True)
class SymbolNamer:
    """Names symbols from final states: a function with its parameters."""

    name: str
    params: Any
    function: NamingFunction
    looks_ahead: bool = False
    """Whether what it says of a symbol depends on the text after it too."""

    def logits(self, h_BTD: jax.Array, n_read: int | None = None) -> jax.Array:
        """logits_BTV, when that much of the text is read (default: all)."""
        length = h_BTD.shape[1]
        return _logits(self.function, self.params, h_BTD, length if n_read is None else n_read)


@partial(jax.jit, static_argnames=("function",))
def _logits(function: NamingFunction, params: Any, h_BTD: jax.Array, n_read: jax.Array) -> jax.Array:
    read_BT = jnp.broadcast_to(jnp.arange(h_BTD.shape[1]) < n_read, h_BTD.shape[:2])
    return function(params, h_BTD, read_BT)


@cache
def _head(config: ModelConfig, in_hindsight: bool) -> NamingFunction:
    def name(params: Params, h_BTD: jax.Array, read_BT: jax.Array) -> jax.Array:
        return decipher_logits(params, config, h_BTD, read_BT if in_hindsight else None)

    return name


def _probe(params: ProbeParams, h_BTD: jax.Array, read_BT: jax.Array) -> jax.Array:
    return probe_logits(params, h_BTD)


def head_namer(model: Weights, name: str = "this model") -> SymbolNamer:
    """The deciphering head that was trained along with the model."""
    if model.params.decipher is None:
        raise UserError(
            f"{name} has no deciphering head: give a probe (the experiment cipher-key trains one with --namer probe), "
            "or a model trained with --model.decipher-head."
        )
    return SymbolNamer("head", model.params, _head(model.config, False))


def hindsight_namer(model: Weights) -> SymbolNamer:
    """The same head on the states that have seen all of the text, in a model that has them."""
    return SymbolNamer("hindsight", model.params, _head(model.config, True), looks_ahead=True)


@dataclass(frozen=True)
class Probe:
    """A trained probe, with what it belongs to."""

    params: ProbeParams
    config: ProbeConfig
    model_hash: str
    data: str
    """Fingerprint of the data it was trained on."""
    metrics: Mapping[str, float]
    """Of the last training step: loss in nats, share of symbols named rightly, and both at the end of the context."""

    @property
    def namer(self) -> SymbolNamer:
        return SymbolNamer("probe", self.params, _probe)

    def check(self, config: ModelConfig, model_hash: str) -> None:
        """Refuse a model that the probe was not trained on."""
        size, width = self.params.table_VD.shape
        if (size, width) != (config.vocab_size, config.width):
            raise UserError(
                f"The probe reads states of width {width} as {size} symbols and the model has width {config.width} "
                f"and {config.vocab_size} symbols: give the probe trained on this model, or leave out --probe."
            )
        if self.model_hash != model_hash:
            raise UserError(
                f"The probe was trained on another model ({self.model_hash}, this one is {model_hash}): give the "
                "probe trained on this model, or leave out --probe to train one."
            )


def _fan_in(key: jax.Array, n_in: int, n_out: int) -> jax.Array:
    return jax.random.normal(key, (n_in, n_out), jnp.float32) / math.sqrt(n_in)


def _start(model: ModelConfig, config: ProbeConfig) -> ProbeState:
    width, hidden = model.width, config.hidden or model.width
    up, down, table = jax.random.split(key_at(config.seed, Stream.PROBE), 3)
    params = ProbeParams(
        up_DP=_fan_in(up, width, hidden),
        up_bias_P=jnp.zeros(hidden),
        down_PD=_fan_in(down, hidden, width),
        down_bias_D=jnp.zeros(width),
        table_VD=jax.random.normal(table, (model.vocab_size, width), jnp.float32),
    )
    return ProbeState(jnp.zeros((), jnp.int32), params, config.optimizer.init(params))


@partial(jax.jit, static_argnames=("model", "config"))
def _train_step(
    state: ProbeState,
    model_params: Params,
    model: ModelConfig,
    config: ProbeConfig,
    tok_BT: jax.Array,
    mask_BT: jax.Array,
) -> tuple[ProbeState, dict[str, jax.Array]]:
    key_B = keys_for_rows(key_at(config.seed, Stream.PROBE, state.step), jnp.arange(len(tok_BT)))
    h_BTD = forward(model_params, model, tok_BT, key_B, dtype=jnp.dtype(config.dtype)).h_BTD

    def loss(params: ProbeParams) -> tuple[jax.Array, dict[str, jax.Array]]:
        sums = decipher_sums(probe_logits(params, h_BTD), tok_BT, mask_BT)
        metrics = token_means(sums, "loss", "deciphered")
        return metrics["loss"], metrics

    grads, metrics = jax.grad(loss, has_aux=True)(state.params)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats, where we do not
        updates, optimizer = config.optimizer.update(grads, state.optimizer, state.params)
    return ProbeState(state.step + 1, optax.apply_updates(state.params, updates), optimizer), metrics


def train_probe(
    params: Params,
    model: ModelConfig,
    pieces: Split,
    config: ProbeConfig,
    path: Path,
    *,
    about: tuple[str, str],
) -> Probe:
    """Train a probe on the frozen model and write it to `path`; `about` is (hash of the model, of the data).

    Everything drawn has an address, so one interrupted (its state is kept beside `path`) ends as if it had not been.
    """
    model_hash, data = about
    identity = {"config": dataclasses.asdict(config), "model_hash": model_hash, "data": data}
    unfinished = path.with_name(path.name + ".unfinished")
    state = _resume(unfinished, jax.eval_shape(lambda: _start(model, config)), identity)
    state = _start(model, config) if state is None else state
    metrics: dict[str, jax.Array] = {}
    first, saved = int(state.step), time.monotonic()
    tokens = config.batch_size * model.context
    with TrainProgress(
        "probe", config.steps, first, tokens, model.flop_per_token(model.context) / 3
    ) as meter:
        try:
            for step in range(first, config.steps):
                batch = pieces.batch(config.seed, step, config.batch_size)
                named_BT = batch.mask_BT & batch.named_B[:, None]
                tok_BT, mask_BT = jnp.asarray(batch.tok_BT), jnp.asarray(named_BT)
                state, metrics = _train_step(state, params, model, config, tok_BT, mask_BT)
                if step == first:
                    jax.block_until_ready(state)
                    meter.restart_clock(step + 1)
                elif (step + 1) % 10 == 0 or step + 1 == config.steps:
                    meter.update(step + 1, {name: float(value) for name, value in metrics.items()})
                if time.monotonic() - saved > SECONDS_BETWEEN_SAVES and step + 1 < config.steps:
                    _save_state(unfinished, state, identity)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            _save_state(unfinished, state, identity)
            raise
    final = {name: float(value) for name, value in metrics.items()}
    probe = Probe(state.params, config, model_hash, data, final)
    save_probe(probe, path)
    unfinished.unlink(missing_ok=True)
    return probe


def save_probe(probe: Probe, path: Path) -> None:
    described = {
        "config": dataclasses.asdict(probe.config),
        "model_hash": probe.model_hash,
        "data": probe.data,
        "metrics": dict(probe.metrics),
    }
    tensors = {name: np.asarray(value) for name, value in vars(probe.params).items()}
    _write(path, tensors, {"probe": described})


def load_probe(path: Path) -> Probe:
    """What `save_probe` wrote, bit for bit."""
    if not path.is_file():
        raise UserError(f"There is no probe at {path}: check the path, or leave out --probe to train one.")
    tensors, notes = _read(path)
    try:
        described = notes["probe"]
        params = ProbeParams(**{name: jnp.asarray(value) for name, value in tensors.items()})
        config = ProbeConfig(**described["config"])
        return Probe(params, config, described["model_hash"], described["data"], described["metrics"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} is not a probe of this version: train the probe again.") from error


def _save_state(path: Path, state: ProbeState, identity: dict[str, Any]) -> None:
    leaves = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    _write(path, leaves, {"training": identity})


def _resume(path: Path, abstract: ProbeState, identity: dict[str, Any]) -> ProbeState | None:
    """The state of the same training, if it was interrupted; that of any other is left alone until overwritten."""
    if not path.is_file():
        return None
    tensors, notes = _read(path)
    if notes.get("training") != identity:
        return None
    leaves = [jnp.asarray(tensors[str(i)]) for i in range(len(tensors))]
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def _write(path: Path, tensors: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> None:
    """Under another name first: a file of the right name is always whole."""
    from safetensors.numpy import save

    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(save(dict(tensors), {name: json.dumps(value) for name, value in notes.items()}))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    remedy = "train the probe again."
    try:
        check_regular(path, remedy)
        with safe_open(str(path), framework="np") as file:
            notes = {
                name: parse_json(value, f"{path}", remedy) for name, value in (file.metadata() or {}).items()
            }
            return {name: file.get_tensor(name) for name in file.keys()}, notes  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise UserError(f"{path} is damaged or no probe: {remedy}") from error
