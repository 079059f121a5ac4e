"""Hidden states to log-probabilities in PyTorch: the readouts `full` and `seen`, recall and the deciphering head
(model/readout.py, model/recall.py, model/decipher_head.py).

Axes are those of transformer.py; R ranks of symbols, C the recall's width, P that of the head, V the vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lexinvariant.config import ModelConfig
from lexinvariant.torch.transformer import hindsight_states

MASKED = -1e30
MAX_LOG_WEIGHT = 8.0


def after_start(params: nn.Module, h_BTD: torch.Tensor) -> torch.Tensor:
    """The states with a learned one before them: [:, t] predicts the symbol at t, and the last the one to come."""
    start_B1D = params.start_D.to(h_BTD.dtype).expand(h_BTD.shape[0], 1, -1)
    return torch.cat([start_B1D, h_BTD], dim=1)


def logit_scale(config: ModelConfig) -> float:
    return (config.width if config.logit_scale == "width" else config.vocab_size) ** -0.5


def logits(config: ModelConfig, table_RD: torch.Tensor, h_BTD: torch.Tensor) -> torch.Tensor:
    """One logit a row, in float32."""
    return (h_BTD @ table_RD.to(h_BTD.dtype).T).float() * logit_scale(config)


def next_log_probs(
    params: nn.Module,
    config: ModelConfig,
    table_RD: torch.Tensor,
    tok_BS: torch.Tensor,
    h_BSD: torch.Tensor,
    *,
    first: int = 0,
) -> torch.Tensor:
    """logp_BTR: which symbol follows the first `first`, `first` + 1, ..., S symbols."""
    predictor_BTD = after_start(params, h_BSD)[:, first:]
    logits_BTR = logits(config, table_RD, predictor_BTD)
    if config.readout == "full":
        return torch.log_softmax(logits_BTR, dim=2)
    n_read_T = torch.arange(first, h_BSD.shape[1] + 1, device=h_BSD.device)
    before_TS = torch.arange(h_BSD.shape[1], device=h_BSD.device) < n_read_T[:, None]
    onehot_BSR = F.one_hot(tok_BS, len(table_RD)).float()
    seen_BTR = before_TS.float() @ onehot_BSR > 0
    if config.has_recall:
        logits_BTR = logits_BTR + _recall_logits(params.recall, predictor_BTD, h_BSD, onehot_BSR, before_TS)
    n_unseen_BT1 = config.vocab_size - seen_BTR.sum(dim=2, keepdim=True)
    unseen_BT1 = predictor_BTD.float() @ params.unseen_D.float()[:, None] * logit_scale(config)
    unseen_BT1 = unseen_BT1.masked_fill(n_unseen_BT1 <= 0, MASKED)
    seen_logits_BTR = logits_BTR.masked_fill(~seen_BTR, MASKED)
    total_BT1 = torch.logaddexp(torch.logsumexp(seen_logits_BTR, dim=2, keepdim=True), unseen_BT1)
    each_BT1 = unseen_BT1 - torch.log(n_unseen_BT1.clamp(min=1).float())
    return torch.where(seen_BTR, logits_BTR, each_BT1) - total_BT1


def _recall_logits(
    recall: nn.Module,
    predictor_BTD: torch.Tensor,
    h_BSD: torch.Tensor,
    onehot_BSR: torch.Tensor,
    before_TS: torch.Tensor,
) -> torch.Tensor:
    """logits_BTR: each predictor against the weighted mean of what was noted at a symbol's occurrences before it."""
    note_BSC = h_BSD @ recall.note_DC.to(h_BSD.dtype)
    gate_BS = h_BSD.float() @ recall.gate_D.float() / MAX_LOG_WEIGHT
    weight_BSR = torch.exp(MAX_LOG_WEIGHT * torch.tanh(gate_BS))[:, :, None] * onehot_BSR
    query_BTC = predictor_BTD @ recall.ask_DC.to(h_BSD.dtype) * note_BSC.shape[2] ** -0.5
    score_BTS = query_BTC.float() @ note_BSC.float().transpose(1, 2)
    sum_BTR = (score_BTS * before_TS) @ weight_BSR
    total_BTR = before_TS.float() @ weight_BSR
    return torch.where(total_BTR > 0, sum_BTR / total_BTR.where(total_BTR > 0, 1.0), 0.0)


def log_likelihood(
    params: nn.Module,
    config: ModelConfig,
    table_RD: torch.Tensor,
    tok_BT: torch.Tensor,
    h_BTD: torch.Tensor,
) -> torch.Tensor:
    """logp_BT: the log-probability (nats) of every symbol given what stands before it."""
    if config.readout == "seen" and config.lexicon.is_lexinvariant:
        table_RD = table_RD[: tok_BT.shape[1]]  # ranks beyond the length are seen nowhere, and need no row
    logp_BTR = next_log_probs(params, config, table_RD, tok_BT, h_BTD)[:, :-1]
    return logp_BTR.gather(2, tok_BT[:, :, None])[:, :, 0]


def decipher_logits(
    params: nn.Module, config: ModelConfig, h_BTD: torch.Tensor, read_BT: torch.Tensor | None = None
) -> torch.Tensor:
    """logits_BTV over the true identity of the symbol read at each position; with `read_BT` in hindsight of those."""
    if read_BT is not None:
        h_BTD = hindsight_states(params, config, h_BTD, read_BT)
    head = params.decipher
    hidden_BTP = F.gelu(
        h_BTD @ head.up_DP.to(h_BTD.dtype) + head.up_bias_P.to(h_BTD.dtype), approximate="tanh"
    )
    return (hidden_BTP @ head.down_PV.to(h_BTD.dtype)).float() + head.down_bias_V.float()
