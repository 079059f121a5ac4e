"""Lexicons in PyTorch (model/lexicon.py, model/embedding.py): a table that is drawn, and symbols numbered as they come.

Here a lexicon is one table_RD, whose row k is the k-th distinct symbol's (of a standard model: token k's). Draws come
from a `torch.Generator`, so that they are other ones than those of jax; a table can be given in their place.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lexinvariant.checks import seed_of_32_bits
from lexinvariant.config import ModelConfig
from lexinvariant.torch.parameters import OCCURRENCE_BUCKETS


def first_position(tok_BT: torch.Tensor) -> torch.Tensor:
    """The position at which each position's symbol occurs for the first time."""
    return (tok_BT[:, :, None] == tok_BT[:, None, :]).int().argmax(dim=2)


def first_occurrence(tok_BT: torch.Tensor) -> torch.Tensor:
    """Number the symbols of each sequence 0, 1, 2, ... in the order in which they first occur."""
    first_BT = first_position(tok_BT)
    is_new_BT = first_BT == torch.arange(tok_BT.shape[1], device=tok_BT.device)
    return (torch.cumsum(is_new_BT, dim=1) - 1).gather(1, first_BT)


def draw_table(params: nn.Module, config: ModelConfig, seed: int = 0, draw: int = 0) -> torch.Tensor:
    """table_VD of the lexicon at this address: a draw's rows, or a standard model's own."""
    kind = config.lexicon.at_evaluation.kind
    if kind == "learned":
        return params.embedding.table_VD
    address = np.random.SeedSequence([seed_of_32_bits(seed), draw]).generate_state(1)[0]
    generator = torch.Generator().manual_seed(int(address))  # on the CPU: the same draws on every device
    device = params.final_norm_D.device
    if kind == "gaussian":
        return torch.randn(config.vocab_size, config.width, generator=generator).to(device)
    rows_R = torch.randperm(config.vocab_size, generator=generator)
    return params.embedding.table_VD[rows_R.to(device)]


def embed(
    params: nn.Module,
    config: ModelConfig,
    tok_BS: torch.Tensor,
    table_RD: torch.Tensor,
    *,
    dtype: torch.dtype,
    n_new: int | None = None,
) -> torch.Tensor:
    """x_BTD: what the layers read at the last `n_new` positions, or at all of them."""
    n_new = tok_BS.shape[1] if n_new is None else n_new
    tok_BT = tok_BS[:, tok_BS.shape[1] - n_new :]
    embedding = params.embedding
    x_BTD = table_RD[tok_BT].float() * embedding.scale.float() + embedding.bias.float()
    if config.count_occurrences:
        statistic_BTQ = occurrence_statistics(tok_BS)[:, tok_BS.shape[1] - n_new :]
        onehot_BTQG = F.one_hot(logarithmic_bucket(statistic_BTQ), OCCURRENCE_BUCKETS).float()
        x_BTD = x_BTD + torch.einsum("btqg,qgd->btd", onehot_BTQG, embedding.occurrence_QGD.float())
    return x_BTD.to(dtype)


def occurrence_statistics(tok_BT: torch.Tensor) -> torch.Tensor:
    """statistic_BTQ, whole numbers: of the symbol at each position and those before it alone (model/embedding.py)."""
    position_T = torch.arange(tok_BT.shape[1], device=tok_BT.device)
    same_BTS = (tok_BT[:, :, None] == tok_BT[:, None, :]) & (position_T < position_T[:, None])
    times_BT = same_BTS.sum(dim=2)
    last_BT = torch.where(same_BTS, position_T, -1).amax(dim=2)
    gap_BT = torch.where(last_BT < 0, 0, position_T - last_BT)
    times_BTS = F.one_hot(first_position(tok_BT), len(position_T)).cumsum(dim=1)
    more_frequent_BT = (times_BTS > times_BT[:, :, None] + 1).sum(dim=2)
    distinct_BT = (times_BTS > 0).sum(dim=2)
    pair_BT = F.pad((same_BTS[:, 1:, 1:] & same_BTS[:, :-1, :-1]).sum(dim=2), (1, 0))
    return torch.stack([times_BT, gap_BT, more_frequent_BT, pair_BT, distinct_BT], dim=2)


def logarithmic_bucket(n: torch.Tensor) -> torch.Tensor:
    edges_G = torch.tensor([0, *(2**k for k in range(OCCURRENCE_BUCKETS - 2))], device=n.device)
    return (n[..., None] > edges_G).sum(dim=-1)
