"""The deciphering head: what each symbol stands for, by the final states.

A causal state knows only what was read up to its symbol. Layers of hindsight, where a model has them, look at all final
states both ways, so that the head names the first symbols of a text by the last ones too.
With `decipher_next` the head has another first layer, which names a symbol before it is read.
"""

import jax

from lexinvariant.config import ModelConfig
from lexinvariant.model.logits import float32_einsum
from lexinvariant.model.params import DecipherHead, Params, unstack
from lexinvariant.model.transformer import block


def decipher_logits(
    params: Params, config: ModelConfig, h_BTD: jax.Array, read_BT: jax.Array | None = None
) -> jax.Array:
    """logits_BTV over the true identity of the symbol read at each position.

    With `read_BT`, in hindsight of all those positions if the model has that; else by what came before alone.
    """
    if read_BT is not None:
        h_BTD = hindsight_states(params, config, h_BTD, read_BT)
    head = _head(params)
    return _logits(head, h_BTD, head.up_DP, head.up_bias_P)


def hindsight_states(params: Params, config: ModelConfig, h_BTD: jax.Array, read_BT: jax.Array) -> jax.Array:
    """The states when all positions of `read_BT` have been read; as they were, if the model has no hindsight."""
    if params.hindsight is None:
        return h_BTD
    for layer in unstack(params.hindsight):
        h_BTD, _ = block(layer, config, h_BTD, read_BT=read_BT)
    return h_BTD


def decipher_next_logits(params: Params, predictor_BTD: jax.Array) -> jax.Array:
    """logits_BTV over the true identity of the symbol that each state predicts (readout.predictors)."""
    head = _head(params)
    assert head.next_DP is not None, "this model's head does not name the next symbol"
    return _logits(head, predictor_BTD, head.next_DP, head.next_bias_P)


def _head(params: Params) -> DecipherHead:
    assert params.decipher is not None, "this model has no deciphering head"
    return params.decipher


def _logits(head: DecipherHead, h_BTD: jax.Array, up_DP: jax.Array, bias_P: jax.Array) -> jax.Array:
    hidden_BTP = jax.nn.gelu(h_BTD @ up_DP.astype(h_BTD.dtype) + bias_P.astype(h_BTD.dtype))
    return float32_einsum("btp,pv->btv", hidden_BTP, head.down_PV.astype(h_BTD.dtype)) + head.down_bias_V
