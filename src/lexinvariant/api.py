"""A loaded model: what most users need, in one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lexinvariant.config import LexiconKind
from lexinvariant.decipher.alphabet import Alphabet, split_symbols
from lexinvariant.errors import UserError
from lexinvariant.model.generate import generate_tokens
from lexinvariant.model.scoring import score_tokens
from lexinvariant.model.weights import BUNDLED, Weights, load_weights
from lexinvariant.text import HuggingFaceVocab

if TYPE_CHECKING:
    from lexinvariant.decipher.language import Language
    from lexinvariant.decipher.solve import Decipherment


class Model(Weights):
    """Parameters, their configuration and their vocabulary, and all that can be asked of them."""

    def score(self, texts: str | Sequence[str], draws: int = 1, seed: int = 0) -> list[np.ndarray]:
        """For each text, log p(token | the tokens before it) in nats, of the mixture over `draws` lexicons.

        A lexinvariant model gives `score(x) == score(pi(x))` bit for bit, for every permutation pi. One that
        reads characters takes any characters at all, up to its vocabulary's number of different ones in a text.
        """
        if isinstance(texts, str):
            texts = [texts]
        tokens = [self._encode(text, self._alphabet(text)) for text in texts]
        return score_tokens(self.params, self.config, tokens, draws=draws, seed=seed)

    def generate(
        self,
        prompt: str = "",
        n_tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: int = 0,
    ) -> str:
        """A continuation of the prompt, sampled under one lexicon."""
        alphabet = self._alphabet(prompt)
        tokens = generate_tokens(
            self.params,
            self.config,
            self._encode(prompt, alphabet),
            n_tokens,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
        )
        return self.vocab.decode(tokens) if alphabet is None else "".join(alphabet[i] for i in tokens)

    def decipher(
        self,
        text: str | Sequence[str],
        cribs: Mapping[str, str] | None = None,
        *,
        crib_text: str | None = None,
        alphabet: Alphabet = "auto",
        unspaced: bool = False,
        top: int = 3,
        language: Language | None = None,
    ) -> Decipherment:
        """The best reading of a ciphertext; `cribs` maps cipher symbols to what they are known to stand for, and
        `crib_text` is the known beginning of the plaintext. English, unless another language is given.
        """
        from lexinvariant.decipher.solve import Solver  # who only scores need not wait for it

        symbols = split_symbols(text) if isinstance(text, str) else text
        return Solver(self, language=language).read(
            [symbols], cribs=cribs, crib_text=crib_text, alphabet=alphabet, unspaced=unspaced, top=top
        )[0]

    def _alphabet(self, text: str) -> str | None:
        """For a lexinvariant model of characters, names for its symbols: the text's own, then others.

        Names mean nothing to such a model, so a text may be written in any.
        """
        if not self.config.lexicon.is_lexinvariant or isinstance(self.vocab, HuggingFaceVocab):
            return None
        used = "".join(dict.fromkeys(text))
        if len(used) > self.config.vocab_size:
            raise UserError(
                f"The text has {len(used)} different characters and the model knows {self.config.vocab_size} symbols: "
                "shorten or simplify it."
            )
        others = self.vocab.decode(range(self.vocab.size)).translate(dict.fromkeys(map(ord, used)))
        # A model may have more symbols than its vocabulary has names: private characters name the rest.
        spare = "".join(map(chr, range(0xE000, 0xE000 + self.config.vocab_size)))
        return (used + others + spare)[: self.config.vocab_size]

    def _encode(self, text: str, alphabet: str | None) -> np.ndarray:
        if alphabet is None:
            return self.vocab.encode(text).astype(np.int64)
        number = {character: i for i, character in enumerate(alphabet)}
        return np.fromiter((number[character] for character in text), np.int64, len(text))

    def with_lexicon(self, kind: LexiconKind) -> Model:
        """The same weights under another lexicon, such as a permuted-table model under fresh Gaussians."""
        if kind != "gaussian" and self.params.embedding.table_VD is None:
            raise UserError(f"This model has no learned table to be {kind}: only 'gaussian' fits it.")
        return replace(self, config=replace(self.config, lexicon=replace(self.config.lexicon, kind=kind)))


def load(place: str | Path = BUNDLED) -> Model:
    """The model that comes with the package, one in a folder that `lexinvariant export` wrote, or one on the Hugging
    Face Hub by its name.
    """
    weights = load_weights(place)
    return Model(weights.config, weights.params, weights.vocab)
