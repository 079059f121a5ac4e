"""The trunk of model/transformer.py in PyTorch: x_BTD -> h_BTD, and layers of hindsight on top of that.

`params` is a module that holds the parameters by their names (parameters.py), which end in their axes. Axes: B batch,
T time (S the time attended to), D width, N heads, K head dimension, E all heads' together, F hidden width, W buckets.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from lexinvariant.config import ModelConfig
from lexinvariant.model.position import distance_buckets

Layer = dict[str, torch.Tensor]


class KeyValues:
    """What was read, layer by layer; the `Cache` of transformers can be used in its place."""

    def __init__(self) -> None:
        self._of_layer: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def get_seq_length(self) -> int:
        return self._of_layer[0][0].shape[2] if self._of_layer else 0

    def update(
        self, k_BNTK: torch.Tensor, v_BNTK: torch.Tensor, layer: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """All keys and values of a layer, with these at their end."""
        if layer in self._of_layer:
            k_BNSK, v_BNSK = self._of_layer[layer]
            k_BNTK, v_BNTK = torch.cat([k_BNSK, k_BNTK], dim=2), torch.cat([v_BNSK, v_BNTK], dim=2)
        self._of_layer[layer] = k_BNTK, v_BNTK
        return k_BNTK, v_BNTK


def rms_norm(x: torch.Tensor, scale_D: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(x.float(), x.shape[-1:], scale_D.float(), eps).to(x.dtype)


def unit_norm(x_BNTK: torch.Tensor, eps: float) -> torch.Tensor:
    x32 = x_BNTK.float()
    return x32 * torch.rsqrt(torch.sum(x32 * x32, dim=-1, keepdim=True) + eps)


def smear(k_BNSK: torch.Tensor, smear_N: torch.Tensor, read_BS: torch.Tensor | None) -> torch.Tensor:
    """Mix into each key the key before it, where that was read."""
    m_N11 = torch.sigmoid(smear_N.float())[:, None, None]
    k32 = k_BNSK.float()
    before = k32 if read_BS is None else k32 * read_BS[:, None, :, None]
    before = F.pad(before[:, :, :-1], (0, 0, 1, 0))
    return ((1 - m_N11) * k32 + m_N11 * before).to(k_BNSK.dtype)


def rotate(x_BNTK: torch.Tensor, position_T: torch.Tensor) -> torch.Tensor:
    """Rotary positions: pairs of a head's numbers turned by angles that grow with the position."""
    half = x_BNTK.shape[3] // 2
    speed = 10_000.0 ** -(torch.arange(half, dtype=torch.float32, device=x_BNTK.device) / half)
    angle_TK = position_T[:, None].float() * speed
    a, b = x_BNTK.float().chunk(2, dim=3)
    cos, sin = angle_TK.cos(), angle_TK.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=3).to(x_BNTK.dtype)


def position_bias(layer: Layer, config: ModelConfig, name: str, distance_TS: torch.Tensor) -> torch.Tensor:
    """bias_NTS, of no meaning where a distance is negative."""
    table_WN = layer[name].float()
    if config.normalize_qk and config.bias_before_scale:
        table_WN = table_WN * layer["qk_scale_N"].float()
    length = int(distance_TS.max()) + 1
    bucket_T = torch.from_numpy(distance_buckets(length, len(table_WN), config.position_max_distance))
    return table_WN[bucket_T.to(table_WN.device)].T[:, distance_TS.clamp(min=0)]


def block(
    layer: Layer,
    number: int,
    config: ModelConfig,
    x_BTD: torch.Tensor,
    *,
    read_BS: torch.Tensor | None = None,
    cache: Any = None,
    both_ways: bool = False,
) -> torch.Tensor:
    """Pre-norm attention and MLP, each added to the residual stream.

    Attention is causal, or over what comes later too; in both cases over positions of `read_BS` alone, where it is
    given. With a cache, x comes after what the cache has read.
    """
    batch, length, _ = x_BTD.shape
    n_BTD = rms_norm(x_BTD, layer["attention_norm_D"], config.norm_eps)

    def heads(name: str) -> torch.Tensor:
        projected = n_BTD @ layer[name].to(x_BTD.dtype)
        return projected.view(batch, length, config.n_heads, config.head_dim).transpose(1, 2)

    q_BNTK, k_BNTK, v_BNTK = heads("query_DE"), heads("key_DE"), heads("value_DE")
    if config.normalize_qk:
        q_BNTK = unit_norm(q_BNTK, config.norm_eps) * layer["qk_scale_N"].float()[:, None, None]
        k_BNTK = unit_norm(k_BNTK, config.norm_eps)
        q_BNTK, k_BNTK = q_BNTK.to(x_BTD.dtype), k_BNTK.to(x_BTD.dtype)
    else:
        q_BNTK = q_BNTK * config.head_dim**-0.5
    # A cache keeps keys as they are before they are smeared, since the next one is smeared with the last.
    k_BNSK, v_BNSK = (k_BNTK, v_BNTK) if cache is None else cache.update(k_BNTK, v_BNTK, number)
    if config.smeared_keys:
        k_BNSK = smear(k_BNSK, layer["smear_N"], read_BS)

    position_S = torch.arange(k_BNSK.shape[2], device=x_BTD.device)
    distance_TS = position_S[-length:, None] - position_S
    if config.positions == "rotary":
        q_BNTK, k_BNSK = rotate(q_BNTK, position_S[-length:]), rotate(k_BNSK, position_S)
        bias = torch.zeros_like(distance_TS, dtype=torch.float32)[None]
    else:
        bias = position_bias(layer, config, "position_WN", distance_TS)[None]
    if both_ways and config.positions == "bias":
        bias = torch.where(distance_TS < 0, position_bias(layer, config, "future_WN", -distance_TS), bias)
    allowed = torch.ones_like(distance_TS, dtype=torch.bool) if both_ways else distance_TS >= 0
    if read_BS is not None:
        allowed = allowed & read_BS[:, None, None, :]
    bias = bias.to(x_BTD.dtype).masked_fill(~allowed, torch.finfo(x_BTD.dtype).min)
    mixed_BNTK = F.scaled_dot_product_attention(q_BNTK, k_BNSK, v_BNSK, attn_mask=bias, scale=1.0)
    mixed_BTE = mixed_BNTK.transpose(1, 2).reshape(x_BTD.shape)
    x_BTD = x_BTD + mixed_BTE @ layer["out_ED"].to(x_BTD.dtype)
    n_BTD = rms_norm(x_BTD, layer["mlp_norm_D"], config.norm_eps)
    hidden_BTF = torch.relu(n_BTD @ layer["up_DF"].to(x_BTD.dtype))
    return x_BTD + hidden_BTF @ layer["down_FD"].to(x_BTD.dtype)


def unstack(stack: nn.Module) -> list[Layer]:
    """The layers one by one, as views whose gradients are stacked again."""
    names, stacked = zip(*stack.named_parameters(recurse=False), strict=True)
    one_by_one = zip(*(value.unbind() for value in stacked), strict=True)
    return [dict(zip(names, values, strict=True)) for values in one_by_one]


def trunk(
    params: nn.Module,
    config: ModelConfig,
    x_BTD: torch.Tensor,
    *,
    read_BS: torch.Tensor | None = None,
    cache: Any = None,
    states: list[torch.Tensor] | None = None,
) -> torch.Tensor:
    """h_BTD: the final state at every position. `read_BS` is of the cache's positions too.

    What each layer gives is added to `states`, where that is asked for.
    """
    for number, layer in enumerate(unstack(params.layers)):
        x_BTD = block(layer, number, config, x_BTD, read_BS=read_BS, cache=cache)
        if states is not None:
            states.append(x_BTD)
    return rms_norm(x_BTD, params.final_norm_D, config.norm_eps)


def hindsight_states(
    params: nn.Module, config: ModelConfig, h_BTD: torch.Tensor, read_BT: torch.Tensor
) -> torch.Tensor:
    """The states when all positions of `read_BT` have been read; as they were, if the model has no hindsight."""
    if config.has_hindsight:
        for number, layer in enumerate(unstack(params.hindsight)):
            h_BTD = block(layer, number, config, h_BTD, read_BS=read_BT, both_ways=True)
    return h_BTD
