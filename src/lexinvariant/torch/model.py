"""Our models as plain PyTorch: what a researcher without jax needs of `lexinvariant.load`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from lexinvariant.config import ModelConfig
from lexinvariant.decipher.votes import Floats, mean_by_symbol, read_in_windows
from lexinvariant.errors import UserError
from lexinvariant.model.folder import BUNDLED, find_model, read_description, read_vocab
from lexinvariant.model.padding import check_tokens, mixture, mixture_of_next, n_draws
from lexinvariant.model.ranks import symbols_by_rank, to_ranks
from lexinvariant.model.tensor_file import read_tensors
from lexinvariant.reading import Logits, Posterior, ReadsText, checked_text, texts_to_score
from lexinvariant.settings import from_dict
from lexinvariant.text import Vocab
from lexinvariant.torch.lexicon import draw_table, embed, first_occurrence
from lexinvariant.torch.parameters import add_parameters, initialise, parameter_shapes
from lexinvariant.torch.readout import decipher_logits, log_likelihood, next_log_probs
from lexinvariant.torch.transformer import KeyValues, trunk


class Network(nn.Module):
    """A model's parameters, and from symbols and the table of their rows to final states."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        add_parameters(self, config)
        for name, value in self.named_parameters():
            initialise(config, name, value)

    def forward(
        self, tok_BT: torch.Tensor, table_RD: torch.Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """h_BTD, the final state at every token, having read it.

        The k-th distinct symbol of a sequence has row k of the table; in a standard model, token k. Without a table,
        the first draw of the lexicon, or a standard model's own table.
        """
        table_RD = draw_table(self, self.config) if table_RD is None else table_RD
        return trunk(self, self.config, embed(self, self.config, self.ranks(tok_BT), table_RD, dtype=dtype))

    def ranks(self, tok_BT: torch.Tensor) -> torch.Tensor:
        """Symbols by the order in which they come; as they are, in a standard model."""
        return first_occurrence(tok_BT) if self.config.lexicon.is_lexinvariant else tok_BT


@dataclass(frozen=True, repr=False, eq=False)
class Model(ReadsText):
    """What `lexinvariant.Model` can be asked, computed by PyTorch; draws of lexicons are its own.

    In place of `draws`, a `table` (V, D) may be given: row k is that of a text's k-th distinct symbol.
    """

    config: ModelConfig
    network: Network
    vocab: Vocab
    dtype: torch.dtype = torch.float32
    """Of the arithmetic."""

    def __repr__(self) -> str:
        n = sum(value.numel() for value in self.network.parameters())
        return (
            f"{type(self).__module__}.Model({self.config.lexicon.kind} lexicon, {self.config.n_layers} layers x "
            f"{self.config.width}, {n:,} parameters, {self.vocab.name} vocabulary of {self.config.vocab_size}, "
            f"context {self.config.context}, {self.dtype} on {self.device})"
        )

    @property
    def device(self) -> torch.device:
        return self.network.final_norm_D.device

    @torch.inference_mode()
    def score(
        self,
        texts: str | Iterable[str],
        draws: int = 1,
        seed: int = 0,
        *,
        table: torch.Tensor | None = None,
    ) -> list[np.ndarray]:
        """For each text, log p(token | the tokens before it) in nats, of the mixture over `draws` lexicons.

        A lexinvariant model gives `score(x) == score(pi(x))` bit for bit, for every permutation pi.
        """
        tokens = [self._encode(text, self._alphabet(text)) for text in texts_to_score(texts)]
        self._warn_beyond_context(tokens, stacklevel=4)  # inference_mode is a caller too
        for i, tok_T in enumerate(tokens):
            check_tokens(self.config, tok_T, f"Text {i}")
        tables = list(self._tables(draws, seed, table))
        # One by one: in a batch, the last bits of a product would depend on a text's place in it.
        return [
            mixture(np.stack([self._log_likelihood(tok_T, table_RD) for table_RD in tables]))
            for tok_T in tokens
        ]

    @torch.inference_mode()
    def logits(
        self, text: str, *, draws: int = 1, seed: int = 0, table: torch.Tensor | None = None
    ) -> Logits:
        """The distribution of the next symbol at every position: `score` is its entries at the text's own symbols."""
        alphabet, tok_T = self._one_text(text)
        rank_T = to_ranks(self.config, tok_T)
        rank_1T = self._tensor(rank_T[None])
        logp_KSV = np.stack(
            [
                next_log_probs(self.network, self.config, table_RD, rank_1T, self._states(rank_1T, table_RD))
                .double()[0]
                .cpu()
                for table_RD in self._tables(draws, seed, table)
            ]
        )
        logp_SV = np.empty(logp_KSV.shape[1:])
        logp_SV[:, symbols_by_rank(self.config, tok_T)] = mixture_of_next(logp_KSV, rank_T)
        return Logits(logp_SV, self._names(alphabet))

    @torch.inference_mode()
    def hidden_states(
        self, text: str, *, draw: int = 0, seed: int = 0, table: torch.Tensor | None = None
    ) -> np.ndarray:
        """(T, D) in float32: the final state at every token, having read it, under one draw of the lexicon."""
        _, tok_T = self._one_text(text)
        table = draw_table(self.network, self.config, seed, draw) if table is None else self._checked(table)
        return self.network(self._tensor(tok_T[None]), table, self.dtype).float()[0].cpu().numpy()

    @torch.inference_mode()
    def posterior(
        self, text: str | Sequence[str], *, draws: int = 1, table: torch.Tensor | None = None
    ) -> Posterior:
        """What each symbol of the text stands for, by the deciphering head: an average over its occurrences, in
        hindsight of the whole text where the model has that. A text longer than the context is read in windows.
        """
        return self._posterior(
            text, lambda *symbols: self.symbol_posterior(*symbols, draws=draws, table=table)
        )

    @torch.inference_mode()
    def symbol_posterior(
        self,
        symbol_T: np.ndarray,
        n_symbols: int,
        characters: str,
        draws: int = 1,
        table: torch.Tensor | None = None,
    ) -> Floats:
        """logp_SC: which character each symbol is, of a text of symbols that are numbers."""

        def votes() -> Iterator[tuple[np.ndarray, torch.Tensor]]:
            for window in read_in_windows(self.config, symbol_T):
                rank_1T = self.network.ranks(self._tensor(window.symbol_T[None]))
                read_1T = torch.arange(rank_1T.shape[1], device=self.device)[None] < window.n_read
                for table_RD in self._tables(draws, 0, table):
                    h_1TD = self._states(rank_1T, table_RD)
                    logits_TV = decipher_logits(self.network, self.config, h_1TD, read_1T)[0]
                    logp_NV = torch.log_softmax(logits_TV, dim=1)[window.counted]
                    yield window.symbol_T[window.counted], logp_NV.cpu()

        return mean_by_symbol(self, votes(), n_symbols, characters)

    @torch.inference_mode()
    def generate(
        self,
        prompt: str = "",
        n_tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: int = 0,
        table: torch.Tensor | None = None,
    ) -> str:
        """A continuation of the prompt, sampled under one lexicon."""
        alphabet, tok_T = self._prompt(prompt, n_tokens, temperature, top_k, seed, stacklevel=4)
        table = draw_table(self.network, self.config, seed) if table is None else self._checked(table)
        generator = torch.Generator().manual_seed(seed)
        rank_1S = self._tensor(to_ranks(self.config, tok_T)[None])
        h_1SD = torch.empty((1, 0, self.config.width), dtype=self.dtype, device=self.device)
        cache = KeyValues()
        for _ in range(n_tokens):
            n_new = rank_1S.shape[1] - h_1SD.shape[1]
            if n_new:
                x_1TD = embed(self.network, self.config, rank_1S, table, dtype=self.dtype, n_new=n_new)
                h_1SD = torch.cat([h_1SD, trunk(self.network, self.config, x_1TD, cache=cache)], dim=1)
            n = rank_1S.shape[1]
            logp_R = next_log_probs(self.network, self.config, table, rank_1S, h_1SD, first=n)[0, 0].cpu()
            if top_k is not None:
                logp_R[logp_R < logp_R.topk(top_k).values[-1]] = -torch.inf
            rank_1 = torch.multinomial(torch.softmax(logp_R / temperature, dim=0), 1, generator=generator)
            rank_1S = torch.cat([rank_1S, rank_1[None].to(self.device)], dim=1)
        symbol_V = symbols_by_rank(self.config, tok_T)
        if self.config.lexicon.is_lexinvariant:  # what an unused rank stands for is a fair draw
            n_used = len(np.unique(tok_T))
            order = torch.randperm(self.config.vocab_size - n_used, generator=generator).numpy()
            symbol_V[n_used:] = symbol_V[n_used:][order]
        written = symbol_V[rank_1S[0, len(tok_T) :].cpu().numpy()]
        return self._decode(written, alphabet)

    def _one_text(self, text: str) -> tuple[str | None, np.ndarray]:
        alphabet = self._alphabet(checked_text(text))
        tok_T = self._encode(text, alphabet)
        check_tokens(self.config, tok_T, "The text")
        self._warn_beyond_context([tok_T], stacklevel=5)
        return alphabet, tok_T

    def _tables(self, draws: int, seed: int, table: torch.Tensor | None) -> Iterator[torch.Tensor]:
        if table is not None:
            yield self._checked(table)
            return
        for draw in range(n_draws(self.config, draws)):
            yield draw_table(self.network, self.config, seed, draw)

    def _checked(self, table: torch.Tensor) -> torch.Tensor:
        expected = (self.config.vocab_size, self.config.width)
        if tuple(table.shape) != expected:
            raise UserError(
                f"The table has the shape {tuple(table.shape)} and this model's is {expected}: give a row for every "
                "rank."
            )
        return table.to(self.device)

    def _log_likelihood(self, tok_T: np.ndarray, table_RD: torch.Tensor) -> np.ndarray:
        rank_1T = self.network.ranks(self._tensor(tok_T[None]))
        h_1TD = self._states(rank_1T, table_RD)
        return log_likelihood(self.network, self.config, table_RD, rank_1T, h_1TD)[0].cpu().numpy()

    def _states(self, rank_BT: torch.Tensor, table_RD: torch.Tensor) -> torch.Tensor:
        return trunk(
            self.network, self.config, embed(self.network, self.config, rank_BT, table_RD, dtype=self.dtype)
        )

    def _tensor(self, tok: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.asarray(tok, np.int64)).to(self.device)


def load(
    place: str | Path = BUNDLED,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Model:
    """The model that comes with the package, one in a folder that `lexinvariant export` wrote, or one on the Hugging
    Face Hub by its name; weights in fewer bits become float32.
    """
    folder = find_model(place)
    config = from_dict(ModelConfig, read_description(folder)["model"])
    shapes = parameter_shapes(config)
    read = read_tensors(folder, sum(map(math.prod, shapes.values())))
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in read.items()}
    # Before the network is made: a configuration may ask for more than fits into memory.
    if {name: tuple(value.shape) for name, value in tensors.items()} != shapes:
        raise UserError(f"{folder}/model.safetensors does not fit its config.json: export it again.")
    network = Network(config)
    network.load_state_dict(tensors)
    return Model(config, network.eval().to(device), read_vocab(folder, config), dtype)
