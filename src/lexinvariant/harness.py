"""Our models in EleutherAI's lm-evaluation-harness, whose whole library of tasks then runs on them.

    python -m lexinvariant.harness run --model lexinvariant --model_args pretrained=models/mine --tasks lambada_openai

is its own command line, `lm_eval`, with our models known to it; in Python, importing this module is enough.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

try:
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
    from lm_eval.models.utils import normalize_gen_kwargs
except ImportError as error:
    missing = "lexinvariant.harness needs lm-evaluation-harness: `pip install 'lexinvariant[harness]'`."
    if __name__ == "__main__":
        sys.exit(f"lexinvariant: {missing}")
    raise ImportError(missing) from error
from tqdm import tqdm

from lexinvariant.api import load
from lexinvariant.errors import UserError, nearest
from lexinvariant.model.generate import generate_tokens
from lexinvariant.model.greedy import greedy_tokens
from lexinvariant.model.scoring import score_and_compare
from lexinvariant.text import HuggingFaceVocab

DEFAULT_NEW_TOKENS = 256
_FIRST_ROUND = (
    32  # tokens that are generated before stop strings are looked for; twice as many each time after
)
_AT_ONCE = 8  # prompts that are continued together, at least: a step of one costs as much
_PER_CALL = 64  # requests between two steps of the progress bar
_GREEDY_OPTIONS = {"until", "max_gen_toks", "do_sample", "temperature"}

Item = TypeVar("Item")


class Piece(NamedTuple):
    """Tokens to read, of which the last `n_scored` count."""

    tokens: np.ndarray
    n_scored: int


class Prompt(NamedTuple):
    """A prompt that is to be continued."""

    request: int
    tokens: np.ndarray
    alphabet: str | None


@register_model("lexinvariant")
class LexinvariantLM(LM):
    """A model's folder, `bundled`, or a name on the Hub as a model of the harness.

    `draws` lexicons are averaged over, where the model draws them; `batch_size` is of sequences as long as the context.
    """

    def __init__(
        self,
        pretrained: str = "bundled",
        draws: int = 1,
        seed: int = 0,
        dtype: str = "float32",
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        device: str | None = None,
        **unknown: Any,
    ) -> None:
        super().__init__()
        if unknown:
            known = ["pretrained", "draws", "seed", "dtype", "batch_size"]
            name = next(iter(unknown))
            raise UserError(
                f"There is no model argument {name!r}: did you mean {nearest(name, known)!r}? (There are "
                f"{', '.join(known)}.)"
            )
        if dtype not in ("float32", "bfloat16"):
            raise UserError(f"There is no dtype {dtype!r}: give float32 or bfloat16.")
        if device is not None:
            warnings.warn(
                "jax chooses the device itself: set JAX_PLATFORMS=cpu or cuda instead.", stacklevel=2
            )
        if not (batch_size == "auto" or (str(batch_size).isdigit() and int(batch_size) > 0)):
            raise UserError(f"A batch_size of {batch_size!r} means nothing: give a number from 1, or auto.")
        self.model = load(pretrained)
        self.draws, self.seed, self.dtype = draws, seed, dtype
        self.batch_size = 1 if batch_size == "auto" else int(batch_size)

    @property
    def max_length(self) -> int:
        return self.model.config.context

    @property
    def tokenizer_name(self) -> str:
        return self.model.vocab.name

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The continuation's log-probability after its context, and whether it is the likeliest one."""
        pieces = [self._cut(self._pair(*request.args)) for request in requests]
        found = [
            (float(logp_T.sum()), bool(likeliest_T.all()))
            for logp_T, likeliest_T in self._scored(pieces, disable_tqdm)
        ]
        for request, answer in zip(requests, found, strict=True):
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
        return found

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """The whole text's log-probability; what is longer than the context is read in windows, each token counted
        once, with at least one token before it.
        """
        pieces, owner = [], []
        for number, request in enumerate(requests):
            (text,) = request.args
            for piece in self._windows(self._tokens(text)):
                pieces.append(piece)
                owner.append(number)
        total = np.zeros(len(requests))
        for number, (logp_T, _) in zip(owner, self._scored(pieces, disable_tqdm), strict=True):
            total[number] += logp_T.sum()
        for request, answer in zip(requests, total.tolist(), strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, answer)
        return total.tolist()

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Continuations up to a stop string, or to the number of tokens that the task allows."""
        texts = [""] * len(requests)
        alike = defaultdict(list)
        for number, request in enumerate(requests):
            options = normalize_gen_kwargs(request.args[1], min(DEFAULT_NEW_TOKENS, self.max_length // 2))
            alike[repr(sorted(options.items()))].append((number, options))
        with tqdm(total=len(requests), disable=disable_tqdm, desc="Generating") as bar:
            for members in alike.values():
                options = members[0][1]
                n_tokens = self._check_options(options)
                prompts = [self._prompt(number, requests[number].args[0], n_tokens) for number, _ in members]
                for number, text in self._continued(prompts, n_tokens, options):
                    texts[number] = text
                    self.cache_hook.add_partial("generate_until", requests[number].args, text)
                    bar.update(1)
        return texts

    def _tokens(self, text: str) -> np.ndarray:
        return self.model._encode(text, self.model._alphabet(text))

    def _pair(self, context: str, continuation: str) -> Piece:
        # A tokenizer joins a blank to the word after it, so blanks at the end of the context go with the continuation.
        start = context.rstrip() if isinstance(self.model.vocab, HuggingFaceVocab) else context
        whole = self._tokens(context + continuation)
        n_context = len(self._tokens(start)) if start else 0
        if not continuation:
            return Piece(whole, 0)
        # A token may reach over the border; then it counts with the continuation.
        return Piece(whole, len(whole) - min(n_context, max(len(whole) - 1, 0)))

    def _cut(self, piece: Piece) -> Piece:
        """Cut from the left what the context does not hold."""
        if piece.n_scored > self.max_length:
            warnings.warn(
                f"A continuation has {piece.n_scored} tokens and the model reads {self.max_length} at a time: only its "
                "end is scored.",
                stacklevel=2,
            )
        return Piece(piece.tokens[-self.max_length :], min(piece.n_scored, self.max_length))

    def _windows(self, tok_T: np.ndarray) -> Iterator[Piece]:
        done = 0
        while done < len(tok_T):
            end = min(len(tok_T), done + self.max_length - (done > 0))
            yield Piece(tok_T[max(0, end - self.max_length) : end], end - done)
            done = end

    def _scored(self, pieces: Sequence[Piece], disable_tqdm: bool) -> list[tuple[np.ndarray, np.ndarray]]:
        """(logp, whether it was the likeliest) of the tokens of each piece that count."""
        found: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros(0), np.ones(0, bool))] * len(pieces)
        # The longest first: texts of one length share a batch, and what does not fit into memory shows at once.
        order = sorted(
            (i for i, piece in enumerate(pieces) if piece.n_scored), key=lambda i: -len(pieces[i].tokens)
        )
        with tqdm(total=len(order), disable=disable_tqdm, desc="Scoring") as bar:
            for part in _parts(order, _PER_CALL * self.batch_size):
                scored = score_and_compare(
                    self.model.params,
                    self.model.config,
                    [pieces[i].tokens for i in part],
                    draws=self.draws,
                    seed=self.seed,
                    dtype=self.dtype,
                    tokens_per_batch=self.batch_size * self.max_length,
                )
                for i, (logp_T, likeliest_T) in zip(part, scored, strict=True):
                    found[i] = logp_T[-pieces[i].n_scored :], likeliest_T[-pieces[i].n_scored :]
                bar.update(len(part))
        return found

    def _check_options(self, options: dict[str, Any]) -> int:
        """How many tokens to generate."""
        known = _GREEDY_OPTIONS | ({"top_k"} if options["do_sample"] else set())
        others = sorted(set(options) - known)
        if others and options["do_sample"]:
            warnings.warn(f"Sampling here goes without {', '.join(others)}.", stacklevel=3)
        n_tokens = options["max_gen_toks"]
        if n_tokens >= self.max_length:
            warnings.warn(
                f"A task asks for {n_tokens} new tokens and the model reads {self.max_length} at a time: it gets "
                f"{self.max_length - 1}.",
                stacklevel=3,
            )
        return min(n_tokens, self.max_length - 1)

    def _prompt(self, number: int, text: str, n_tokens: int) -> Prompt:
        alphabet = self.model._alphabet(text)
        tok_T = self.model._encode(text, alphabet)
        return Prompt(number, tok_T[-(self.max_length - n_tokens) :], alphabet)

    def _continued(
        self, prompts: list[Prompt], n_tokens: int, options: dict[str, Any]
    ) -> Iterator[tuple[int, str]]:
        """(request, continuation), as they are finished."""
        until = [stop for stop in options["until"] if stop]
        written = {prompt.request: np.empty(0, np.int64) for prompt in prompts}
        round_size = _FIRST_ROUND if until else n_tokens
        while prompts:
            n_done = len(written[prompts[0].request])
            n_new = min(round_size, n_tokens - n_done)
            before = [np.concatenate([prompt.tokens, written[prompt.request]]) for prompt in prompts]
            unfinished = []
            for prompt, new_N in zip(
                prompts, self._next_tokens(prompts, before, n_new, options), strict=True
            ):
                written[prompt.request] = np.concatenate([written[prompt.request], new_N])
                text = self.model._decode(written[prompt.request], prompt.alphabet)
                end = min((text.find(stop) for stop in until if stop in text), default=None)
                if end is None and n_done + n_new < n_tokens:
                    unfinished.append(prompt)
                else:
                    yield prompt.request, text[:end]
            prompts, round_size = unfinished, 2 * round_size

    def _next_tokens(
        self, prompts: list[Prompt], before: list[np.ndarray], n_new: int, options: dict[str, Any]
    ) -> Sequence[np.ndarray]:
        params, config = self.model.params, self.model.config
        if not options["do_sample"]:
            return list(
                greedy_tokens(
                    params,
                    config,
                    before,
                    n_new,
                    address_S=np.array([prompt.request for prompt in prompts]),
                    seed=self.seed,
                    draws=self.draws,
                    batch_size=max(_AT_ONCE, self.batch_size),
                    dtype=self.dtype,
                )
            )
        top_k = options.get("top_k")
        return [
            generate_tokens(
                params,
                config,
                tok_T,
                n_new,
                temperature=options["temperature"],
                top_k=None if not top_k or top_k < 1 else min(int(top_k), config.vocab_size),
                seed=int(
                    np.random.SeedSequence([self.seed, prompt.request, len(tok_T)]).generate_state(1)[0]
                ),
            )
            for prompt, tok_T in zip(prompts, before, strict=True)
        ]


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def main() -> None:
    """The harness's own command line; what the user can put right is told in one sentence."""
    from lm_eval.__main__ import cli_evaluate

    try:
        cli_evaluate()
    except UserError as error:
        sys.exit(f"lexinvariant: {error}")


if __name__ == "__main__":
    main()
