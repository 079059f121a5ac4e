"""The paper's other regulariser, for models of Transformers: random embeddings for some token types of each sequence.

As in the lexicon `mixed` of this package's own models, every sequence has a table of its own: the learned rows, but for
a Bernoulli choice of token types a Gaussian row each, scaled to the norm of the row it stands for. The table is used at
both ends, to embed and to read out.

A table for every sequence would be large, and none is made. Gaussian rows are drawn once a batch, and each sequence
reads them from an offset of its own: whatever the offset, the rows of a sequence are independent Gaussians. The readout
computes its logits as always, and then again for the chosen types alone, one sequence after another; the backward pass
makes their rows anew. That is exact, costs a share p of a readout, and holds the rows of one sequence at a time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lexinvariant.augment.permuter import probability, sorted_ids
from lexinvariant.errors import UserError

# The attribute of a model's input embedding that says whose hooks it has.
_IN_USE = "_lexinvariant_randomised"


class DrawnTables(NamedTuple):
    """What makes the tables of a batch's sequences."""

    chosen_BV: Tensor  # which types have a random row
    offset_B: Tensor
    unit_VD: Tensor  # Gaussian rows, scaled to norm 1

    def directions(self, sequence: Tensor | int, type_: Tensor) -> Tensor:
        """The random rows of these token types in their sequences, of norm 1."""
        return self.unit_VD[(type_ + self.offset_B[sequence]) % len(self.unit_VD)]


def randomise_embeddings(
    model: nn.Module, p: float = 0.2, *, special_ids: Sequence[int] = (), outputs: bool = True
) -> "RandomisedEmbeddings":
    """Give a share p of the token types of each sequence random embeddings while `model` is in training mode.

    The model is changed by hooks, until `remove()`, the end of a `with` block, or another call, whose hooks take the
    place of these. Random numbers are PyTorch's, as those of dropout. Types of `special_ids` keep their embeddings.
    `outputs` also reads the types out with the random rows: those of the input where the embeddings are tied, else the
    same directions with the norms of the output's rows.
    """
    return RandomisedEmbeddings(model, p, special_ids=special_ids, outputs=outputs)


class RandomisedEmbeddings:
    """The hooks of `randomise_embeddings`; `p` may be set at any time, say from a schedule."""

    def __init__(
        self, model: nn.Module, p: float = 0.2, *, special_ids: Sequence[int] = (), outputs: bool = True
    ) -> None:
        self.p = probability(p)
        self._drawn: DrawnTables | None = None
        self._was_read_out = False
        self._embedding, readout = _both_ends(model, outputs)
        vocab_size = len(self._embedding.weight)
        ids = sorted_ids(special_ids)
        if outside := [i for i in ids if not 0 <= i < vocab_size]:
            raise UserError(
                f"The special id {outside[0]} does not fit the model, which has {vocab_size} embeddings: use the "
                "tokenizer of this model."
            )
        self._ordinary_V = torch.ones(vocab_size, dtype=torch.bool)
        self._ordinary_V[ids] = False
        if not self._ordinary_V.any():
            raise UserError(
                "All ids of the vocabulary are special, so no embedding could be random: leave some out."
            )
        if earlier := getattr(self._embedding, _IN_USE, None):  # a cell of a notebook that is run again
            earlier.remove()
        setattr(self._embedding, _IN_USE, self)
        self._hooks = [self._embedding.register_forward_hook(self._embed)]
        if readout is not None:
            self._hooks.append(model.register_forward_pre_hook(self._begin))
            self._hooks.append(readout.register_forward_hook(self._read_out))

    def remove(self) -> None:
        """Leave the model as it was."""
        for hook in self._hooks:
            hook.remove()
        if getattr(self._embedding, _IN_USE, None) is self:
            delattr(self._embedding, _IN_USE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def draw(self, n_sequences: int) -> DrawnTables:
        """Draw the tables of a batch from PyTorch's generator."""
        weight_VD = self._embedding.weight
        vocab_size, device = len(weight_VD), weight_VD.device
        self._ordinary_V = self._ordinary_V.to(device)
        chosen_BV = torch.rand(n_sequences, vocab_size, device=device) < self.p
        offset_B = torch.randint(vocab_size, (n_sequences,), device=device)
        row_VD = torch.randn(weight_VD.shape, device=device)
        return DrawnTables(chosen_BV & self._ordinary_V, offset_B, nn.functional.normalize(row_VD, dim=1))

    def _begin(self, *_: object) -> None:
        """Forget the tables of the pass before: one that is given inputs_embeds may embed no tokens of its own.

        Not at the readout, which a pass may call several times, and the backward pass again. Tables that were not read
        out yet are of this pass: PEFT's prompts, for one, embed the tokens and then call the model.
        """
        if self._was_read_out:
            self._drawn = None

    def _embed(self, embedding: nn.Module, args: tuple[Tensor, ...], x_BTD: Tensor) -> Tensor:
        self._drawn, self._was_read_out = None, False
        self.p = probability(self.p)  # a schedule may have returned an array
        if not embedding.training or self.p == 0:
            return x_BTD
        tok_BT = args[0]
        if tok_BT.ndim != 2:
            raise UserError(f"Token ids have the shape (batch, time), and not {tuple(tok_BT.shape)}.")
        self._drawn = self.draw(len(tok_BT))
        row_B1 = torch.arange(len(tok_BT), device=tok_BT.device)[:, None]
        # The norm is that of what the model embeds with: some models scale the rows of their table.
        norm_BT1 = x_BTD.detach().norm(dim=2, keepdim=True)
        random_BTD = self._drawn.directions(row_B1, tok_BT).to(x_BTD.dtype) * norm_BT1
        return torch.where(self._drawn.chosen_BV[row_B1, tok_BT][:, :, None], random_BTD, x_BTD)

    def _read_out(self, readout: nn.Module, args: tuple[Tensor, ...], logits_BTV: Tensor) -> Tensor:
        if self._drawn is None or not readout.training:
            return logits_BTV
        if logits_BTV.ndim != 3 or len(logits_BTV) != len(self._drawn.offset_B):
            raise UserError(
                f"Logits of the shape {tuple(logits_BTV.shape)} are not (batch, time, vocabulary) of the "
                f"{len(self._drawn.offset_B)} sequences that were embedded: use outputs=False."
            )
        self._was_read_out = True
        norm_V, bias_V = readout.weight.detach().norm(dim=1), getattr(readout, "bias", None)
        random_BTV: Tensor = _RandomColumns.apply(logits_BTV, args[0], bias_V, norm_V, self._drawn)
        return random_BTV


class _RandomColumns(torch.autograd.Function):
    """Logits with the columns of each sequence's chosen types computed anew, from its random rows.

    The rows are constants: gradients pass to the states and to the bias, and of the learned table only to other rows.
    """

    @staticmethod
    def forward(
        ctx: Any, logits_BTV: Tensor, h_BTD: Tensor, bias_V: Tensor | None, norm_V: Tensor, drawn: DrawnTables
    ) -> Tensor:
        ctx.drawn, ctx.norm_V, ctx.h_dtype = drawn, norm_V, h_BTD.dtype
        for b, type_C in enumerate(_types_of(drawn)):
            row_CD = _rows(drawn, norm_V, b, type_C, logits_BTV.dtype)
            column_TC = h_BTD[b].to(row_CD.dtype) @ row_CD.T
            if bias_V is not None:
                column_TC += bias_V[type_C]
            logits_BTV[b, :, type_C] = column_TC
        ctx.mark_dirty(logits_BTV)  # in place: logits are the largest array of a step
        return logits_BTV

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BTV: Tensor) -> tuple[Tensor | None, ...]:
        grad_logits_BTV = grad_BTV.clone()
        grad_bias_V = torch.zeros_like(ctx.norm_V) if ctx.needs_input_grad[2] else None
        grad_h = []
        for b, type_C in enumerate(_types_of(ctx.drawn)):
            column_TC = grad_BTV[b, :, type_C]
            grad_h.append(column_TC @ _rows(ctx.drawn, ctx.norm_V, b, type_C, column_TC.dtype))
            grad_logits_BTV[b, :, type_C] = 0
            if grad_bias_V is not None:
                grad_bias_V[type_C] += column_TC.sum(0)
        return grad_logits_BTV, torch.stack(grad_h).to(ctx.h_dtype), grad_bias_V, None, None


def _types_of(drawn: DrawnTables) -> tuple[Tensor, ...]:
    """The chosen types of each sequence."""
    counts = drawn.chosen_BV.sum(dim=1).tolist()
    return drawn.chosen_BV.nonzero()[:, 1].split(counts)


def _rows(drawn: DrawnTables, norm_V: Tensor, sequence: int, type_C: Tensor, dtype: torch.dtype) -> Tensor:
    return (drawn.directions(sequence, type_C) * norm_V[type_C, None]).to(dtype)


def _both_ends(model: nn.Module, outputs: bool) -> tuple[nn.Module, nn.Module | None]:
    """The model's input embedding and, if it is wanted, its readout."""
    if not hasattr(model, "get_input_embeddings"):
        raise UserError(
            f"{type(model).__name__} is not a Transformers model, as it has no get_input_embeddings: permute tokens "
            "with TokenPermuter."
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise UserError(
            "An encoder-decoder model embeds twice, and the random rows would not agree: permute tokens with "
            "TokenPermuter."
        )
    embedding = model.get_input_embeddings()
    if not outputs:
        return embedding, None
    readout = model.get_output_embeddings()
    if readout is None:
        raise UserError(f"{type(model).__name__} has no output embeddings: use outputs=False.")
    if readout.weight.shape != embedding.weight.shape:
        raise UserError(
            f"The output embeddings have the shape {tuple(readout.weight.shape)} and the input embeddings "
            f"{tuple(embedding.weight.shape)}, so they cannot share random rows: use outputs=False."
        )
    return embedding, readout
