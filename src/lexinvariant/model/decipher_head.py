"""The deciphering head: what each symbol stands for, by the final states.

A causal state knows only what was read up to its symbol. Layers of hindsight, where a model has them, look at all final
states both ways, so that the head names the first symbols of a text by the last ones too.
"""

import jax
import jax.numpy as jnp

from lexinvariant.config import ModelConfig
from lexinvariant.model.params import Params, unstack
from lexinvariant.model.transformer import block


def decipher_logits(
    params: Params, config: ModelConfig, h_BTD: jax.Array, read_BT: jax.Array | None = None
) -> jax.Array:
    """logits_BTV over the true identity of the symbol read at each position.

    With `read_BT`, in hindsight of all those positions if the model has that; else by what came before alone.
    """
    if read_BT is not None and params.hindsight is not None:
        for layer in unstack(params.hindsight):
            h_BTD, _ = block(layer, config, h_BTD, read_BT=read_BT)
    head = params.decipher
    assert head is not None, "this model has no deciphering head"
    hidden_BTP = jax.nn.gelu(h_BTD @ head.up_DP.astype(h_BTD.dtype) + head.up_bias_P.astype(h_BTD.dtype))
    product = jnp.einsum(
        "btp,pv->btv", hidden_BTP, head.down_PV.astype(h_BTD.dtype), preferred_element_type=jnp.float32
    )
    return product + head.down_bias_V
