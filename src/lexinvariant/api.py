"""A loaded model: what most users need, in one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lexinvariant.config import LEXICON_KINDS, LexiconKind
from lexinvariant.decipher.alphabet import Alphabet
from lexinvariant.decipher.notation import Notation
from lexinvariant.errors import UserError
from lexinvariant.model.generate import generate_tokens
from lexinvariant.model.scoring import hidden_states, next_token_log_probs, score_tokens
from lexinvariant.model.weights import BUNDLED, Weights, load_weights
from lexinvariant.reading import Logits, Posterior, ReadsText, checked_text, distinct_symbols, texts_to_score

if TYPE_CHECKING:
    from lexinvariant.decipher.decipherment import Decipherment
    from lexinvariant.decipher.language import Language
    from lexinvariant.decipher.words import WordReading


class Model(ReadsText, Weights):
    """Parameters, their configuration and their vocabulary, and all that can be asked of them.

    A text that is longer than the model's context is read with a warning: positions beyond it were never trained.
    """

    def score(self, texts: str | Iterable[str], draws: int = 1, seed: int = 0) -> list[np.ndarray]:
        """For each text, log p(token | the tokens before it) in nats, of the mixture over `draws` lexicons.

        A lexinvariant model gives `score(x) == score(pi(x))` bit for bit, for every permutation pi. One that
        reads characters takes any characters at all, up to its vocabulary's number of different ones in a text.
        """
        tokens = [self._encode(text, self._alphabet(text)) for text in texts_to_score(texts)]
        self._warn_beyond_context(tokens)
        return score_tokens(self.params, self.config, tokens, draws=draws, seed=seed)

    def logits(self, text: str, *, draws: int = 1, seed: int = 0) -> Logits:
        """The distribution of the next symbol at every position: `score` is its entries at the text's own symbols."""
        alphabet = self._alphabet(checked_text(text))
        tok_T = self._encode(text, alphabet)
        self._warn_beyond_context([tok_T])
        logp = next_token_log_probs(self.params, self.config, tok_T, draws=draws, seed=seed)
        return Logits(logp, self._names(alphabet))

    def hidden_states(self, text: str, *, draw: int = 0, seed: int = 0) -> np.ndarray:
        """(T, D) in float32: the final state at every token, having read it, under one draw of the lexicon.

        `score(text, draws=k, seed=seed)` is over the draws 0 to k-1.
        """
        tok_T = self._encode(checked_text(text), self._alphabet(text))
        self._warn_beyond_context([tok_T])
        return hidden_states(self.params, self.config, tok_T, draw=draw, seed=seed)

    def posterior(self, text: str | Sequence[str], *, draws: int = 1) -> Posterior:
        """What each symbol of the text stands for, by the deciphering head: an average over its occurrences, in
        hindsight of the whole text where the model has that.

        Each symbol by itself: `decipher` searches for a key, in which no two symbols stand for one character. A text
        longer than the context is read in windows, four at most.
        """
        from lexinvariant.decipher.symbol_posterior import symbol_posterior

        return self._posterior(text, partial(symbol_posterior, self, draws=draws))

    def generate(
        self,
        prompt: str = "",
        n_tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        seed: int = 0,
    ) -> str:
        """A continuation of the prompt, sampled under one lexicon. The two should fit the model's context."""
        alphabet, tok_T = self._prompt(prompt, n_tokens, temperature, top_k, seed)
        tokens = generate_tokens(
            self.params,
            self.config,
            tok_T,
            n_tokens,
            temperature=temperature,
            top_k=top_k,
            seed=seed,
        )
        return self._decode(tokens, alphabet)

    def decipher(
        self,
        text: str | Sequence[str],
        cribs: Mapping[str, str] | None = None,
        *,
        crib_text: str | None = None,
        crib_words: Sequence[str] = (),
        alphabet: Alphabet = "auto",
        unspaced: bool = False,
        notation: Notation = "auto",
        top: int = 3,
        language: Language | str | None = None,
    ) -> Decipherment:
        """What a text is, and its best reading as a substitution cipher. `cribs` maps cipher symbols to what they are
        known to stand for, `crib_text` is the known beginning of the plaintext, and `crib_words` stand somewhere in it.
        The language, a `Language` or its name, is found out unless it is given.
        """
        from lexinvariant.decipher.language import load_language
        from lexinvariant.decipher.solve import Solver  # who only scores need not wait for it

        distinct_symbols(text)  # of the right type
        language = load_language(language) if isinstance(language, str) else language
        return Solver(self, language=language).read(
            [text],
            cribs=cribs,
            crib_text=crib_text,
            crib_words=crib_words,
            alphabet=alphabet,
            unspaced=unspaced,
            notation=notation,
            top=top,
        )[0]

    def read_words(self, text: str, *, marks_too: bool = False, draws: int = 1) -> WordReading:
        """What each word of a text stands for whose words were replaced one for one by made-up ones; for a
        lexinvariant model of tokens with a deciphering head.

        Marks and numbers are taken as they are, unless `marks_too` says that they were replaced as well. A text longer
        than the context is read in windows.
        """
        from lexinvariant.decipher.words import read_words

        return read_words(self, checked_text(text), marks_too=marks_too, draws=draws)

    def with_lexicon(self, kind: LexiconKind) -> Model:
        """The same weights under another lexicon, such as a permuted-table model under fresh Gaussians."""
        lexicon = replace(self.config.lexicon, kind=kind)
        if lexicon.has_table and self.params.embedding.table_VD is None:
            fitting = [name for name, facts in LEXICON_KINDS.items() if not facts.has_table]
            raise UserError(
                f"This model has no learned table to be {kind}: what fits it is {', '.join(fitting)}."
            )
        return replace(self, config=replace(self.config, lexicon=lexicon))


def load(place: str | Path = BUNDLED) -> Model:
    """The model that comes with the package, one in a folder that `lexinvariant export` wrote, or one on the Hugging
    Face Hub by its name.
    """
    weights = load_weights(place)
    return Model(weights.config, weights.params, weights.vocab)
