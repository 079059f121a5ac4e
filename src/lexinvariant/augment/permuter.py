"""B_p of the paper's appendix, for anyone's batches: some tokens replaced by a random permutation of the vocabulary.

    B_p(x_i, pi) = pi(x_i) with probability p, and x_i otherwise

with one permutation pi a sequence. A model that is trained on such sequences learns that some symbols mean what the
context says they mean. The sequences may be NumPy arrays, PyTorch tensors or JAX arrays, and the numbers are the same.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from lexinvariant.augment.shuffle import Array, Stream, happens, hashed, like, namespace, shuffle
from lexinvariant.checks import check_seed, whole_number
from lexinvariant.errors import UserError

# Hugging Face's and PyTorch's mark of a label that is not to be predicted.
IGNORED_LABEL = -100

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class LinearAnneal:
    """p stays as it is until step `begin`, and then goes down in a straight line to 0 at step `end`."""

    p: float
    begin: int
    end: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability(self.p))
        for name in ("begin", "end"):
            object.__setattr__(self, name, counted(getattr(self, name), name))
        if not self.begin < self.end:
            raise UserError(
                f"Annealing needs 0 <= begin < end, and begin is {self.begin} and end is {self.end}: give the steps "
                "between which p goes down to 0."
            )

    def __call__(self, step: int) -> float:
        left = (self.end - step) / (self.end - self.begin)
        if isinstance(left, float):
            return self.p * min(max(left, 0.0), 1.0)
        return self.p * namespace(left).clip(left, 0.0, 1.0)  # a step that is traced by jax.jit


@dataclass(frozen=True)
class TokenPermuter:
    """Replaces a share p of the tokens of each sequence by their images under a random permutation of its own.

    Nothing is drawn in sequence: what happens to a row is a function of (seed, step, row) and of the row alone.
    """

    vocab_size: int
    p: float | Schedule = 0.2
    """The share of tokens that move: a number, or a function of the step such as `LinearAnneal`."""
    unit: Literal["position", "type"] = "position"
    """What is chosen with probability p: each position of a sequence, or each token type of a sequence as a whole."""
    special_ids: Sequence[int] = ()
    """Ids that never move and that nothing moves to."""
    permute_labels: bool = True
    """What a collator does with the labels of a batch: replace them alike, or leave the original tokens to be
    predicted."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not callable(self.p):
            object.__setattr__(self, "p", probability(self.p))
        if self.unit not in ("position", "type"):
            raise UserError(f'unit is "position" or "type", and not {self.unit!r}.')
        object.__setattr__(self, "vocab_size", whole_number(self.vocab_size, "vocab_size", least=1))
        if self.vocab_size >= 2**31:
            raise UserError(f"vocab_size is {self.vocab_size}: give a number of at most 2^31 - 1.")
        check_seed(self.seed)
        special = sorted_ids(self.special_ids)
        if special and not 0 <= special[0] <= special[-1] < self.vocab_size:
            outside = special[0] if special[0] < 0 else special[-1]
            raise UserError(
                f"The special id {outside} is not in the vocabulary of {self.vocab_size} ids: give a vocab_size that "
                "holds all ids."
            )
        if len(special) == self.vocab_size:
            raise UserError("All ids of the vocabulary are special, so no token could move: leave some out.")
        object.__setattr__(self, "special_ids", tuple(special))

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, **options: Any) -> Self:
        """For the vocabulary and the special ids of a Hugging Face tokenizer; options are the fields of the class."""
        n_ids, special_ids = tokenizer_ids(tokenizer)
        vocab_size = options.pop("vocab_size", n_ids)
        if vocab_size < n_ids:
            raise UserError(
                f"The tokenizer has ids up to {n_ids - 1}, which do not fit a vocabulary of {vocab_size}: leave "
                "vocab_size out."
            )
        # A model's table may have more rows than there are tokens: those stand for nothing, and nothing moves there.
        special_ids = (*special_ids, *range(n_ids, vocab_size), *sorted_ids(options.pop("special_ids", ())))
        return cls(vocab_size, special_ids=special_ids, **options)

    def __call__(self, tok_BT: Array, *, step: int, first_row: int = 0) -> Array:
        """The same sequences with a share of their tokens replaced.

        `first_row` is the number of the first sequence in a batch that is spread over processes. Labels that belong to
        the same positions (as in Transformers, which shifts them later) come out alike when called with the same step;
        labels that were shifted already do not: replace tokens first and shift then. Labels of -100 stay.
        """
        ids_BT = _as_ids(tok_BT, self.vocab_size)
        step = counted(step, "step")
        first_row = counted(first_row, "first_row", most=2**31 - max(len(ids_BT), 1))
        row_B1 = like(ids_BT, np.arange(len(ids_BT), dtype=np.int32)[:, None]) + first_row
        return self._permuted(ids_BT, step, step, row_B1)

    def by_content(self, tok_BT: Array, *labels_BT: Array, epoch: int, step: int = 0) -> tuple[Array, ...]:
        """(tok_BT, *labels_BT): as a call, with each row's randomness named by its tokens and the epoch.

        The same sequence moves alike in whatever batch, process or worker it turns up, and anew in every epoch; the
        step is for a scheduled p alone. Special ids do not count, so that padding at the end changes nothing.
        """
        step, epoch = counted(step, "step"), counted(epoch, "epoch")
        arrays = [_as_ids(array_BT, self.vocab_size) for array_BT in (tok_BT, *labels_BT)]
        name_B2 = self._content_names(arrays[0], epoch)
        return tuple(
            self._permuted(ids_BT, step, like(ids_BT, name_B2[:, :1]), like(ids_BT, name_B2[:, 1:]))
            for ids_BT in arrays
        )

    def _permuted(self, tok_BT: Array, step: int, *address: int | Array) -> Array:
        """The tokens with those replaced that the address's random numbers choose."""
        p = self._p_at(step)
        # NumPy's functions take nothing that jax.jit traces, so beside it a batch of NumPy becomes one of JAX.
        if traced := [number for number in (p, *address) if _is_traced(number)]:
            tok_BT = namespace(traced[0]).asarray(tok_BT)
        xp = namespace(tok_BT)
        address = (self.seed, self.seed >> 32, *address)
        id_BT = xp.asarray(tok_BT, dtype=xp.int32)
        # Ordinary ids are numbered without the special ones, permuted, and numbered back.
        rank_BT, ordinary_BT = id_BT, (id_BT >= 0) & (id_BT < self.vocab_size)
        for start, end in self._special_ranges:
            ordinary_BT = ordinary_BT & ((id_BT < start) | (id_BT >= end))
            rank_BT = xp.where(id_BT >= end, rank_BT - (end - start), rank_BT)
        image_BT = shuffle(rank_BT, self.vocab_size - len(self.special_ids), *address)
        for start, end in self._special_ranges:
            image_BT = xp.where(image_BT >= start, image_BT + (end - start), image_BT)
        position_1T = like(id_BT, np.arange(id_BT.shape[1], dtype=np.int32)[None, :])
        unit_BT = id_BT if self.unit == "type" else position_1T
        moves_BT = ordinary_BT & happens(hashed(unit_BT, Stream.CHOICE, *address), p)
        return xp.where(moves_BT, xp.asarray(image_BT, dtype=tok_BT.dtype), tok_BT)

    def _p_at(self, step: int) -> float:
        if not callable(self.p):
            return self.p
        p = self.p(step)
        return p if _is_traced(p) else probability(p, f" at step {step}")

    @cached_property
    def _special_ranges(self) -> tuple[tuple[int, int], ...]:
        """The special ids as runs of neighbours, (first, last + 1) each: most vocabularies have one or two."""
        runs: list[tuple[int, int]] = []
        for i in self.special_ids:
            if runs and runs[-1][1] == i:
                runs[-1] = (runs[-1][0], i + 1)
            else:
                runs.append((i, i + 1))
        return tuple(runs)

    def _content_names(self, tok_BT: Array, epoch: int) -> NDArray[np.int32]:
        """name_B2: 64 bits a row, a hash of the epoch and of the tokens that can move."""
        if _is_traced(tok_BT) or _is_traced(epoch):
            raise UserError(
                "by_content needs numbers, which jax.jit does not know yet: call it outside of what is compiled."
            )
        host_BT = np.asarray(tok_BT.cpu() if hasattr(tok_BT, "cpu") else tok_BT, "<i4")
        counts_BT = (host_BT >= 0) & ~np.isin(host_BT, self.special_ids)
        digests = [
            hashlib.blake2b(
                row_T[counts_T].tobytes(), digest_size=8, salt=epoch.to_bytes(8, "little")
            ).digest()
            for row_T, counts_T in zip(host_BT, counts_BT, strict=True)
        ]
        return np.frombuffer(b"".join(digests), "<i4").reshape(-1, 2)


def probability(p: object, where: str = "") -> float:
    """The value as a number of Python, once it is sure that it is a probability."""
    number = _plain(p)
    if not isinstance(number, (int, float)) or not 0 <= number <= 1:  # NaN is refused too
        raise UserError(f"p is a probability between 0 and 1, and not {number!r}{where}.")
    return number


def sorted_ids(special_ids: Any) -> list[int]:
    """Special ids as integers of Python, each once; whether they are in a vocabulary is for the caller to check."""
    if isinstance(special_ids, (str, bytes)) or not isinstance(_plain(special_ids), Iterable):
        raise UserError(
            f"special_ids is {special_ids!r}: give a list of ids, which is empty where there are none."
        )
    ids = [_plain(i) for i in special_ids]
    if odd := [i for i in ids if not isinstance(i, int)]:
        raise UserError(
            f"Special ids are integers, and not {odd[0]!r}: give ids and not tokens, and leave out those that the "
            "tokenizer has none for."
        )
    return sorted(set(ids))


def tokenizer_ids(tokenizer: Any) -> tuple[int, tuple[int, ...]]:
    """(vocab_size, special_ids) of a tokenizer of Hugging Face `transformers` or `tokenizers`.

    An id below the largest that stands for no token counts as special: a model has never seen its row.
    """
    added = getattr(tokenizer, "added_tokens_decoder", None)
    if added is None and hasattr(tokenizer, "get_added_tokens_decoder"):
        added = tokenizer.get_added_tokens_decoder()
    if added is None or not hasattr(tokenizer, "get_vocab"):
        raise UserError(
            f"{type(tokenizer).__name__} is not a tokenizer of Hugging Face: load one, with "
            "AutoTokenizer.from_pretrained of transformers or Tokenizer.from_file of tokenizers."
        )
    ids = set(tokenizer.get_vocab().values())
    special = set(getattr(tokenizer, "all_special_ids", ()))
    special |= {i for i, token in added.items() if token.special}
    vocab_size = max(ids | special) + 1
    return vocab_size, tuple(sorted(special | (set(range(vocab_size)) - ids)))


def _as_ids(tok_BT: Array, vocab_size: int) -> Array:
    """The tokens as an array (a list of lists is one), if they are ids of the vocabulary or labels to be ignored."""
    try:
        ids_BT = tok_BT if hasattr(tok_BT, "dtype") else np.asarray(tok_BT)
    except ValueError:
        raise UserError("The sequences of a batch differ in length: pad them first.") from None
    if "int" not in str(ids_BT.dtype):
        raise UserError(
            f"Token ids are integers, and not {ids_BT.dtype}: give the ids and not embeddings or text."
        )
    # Any id may become any other, and one that is too large for the type would wrap around without a word.
    if (largest := namespace(ids_BT).iinfo(ids_BT.dtype).max) < vocab_size - 1:
        raise UserError(
            f"The batch is of the type {ids_BT.dtype}, which ends at {largest}, and the vocabulary at "
            f"{vocab_size - 1}: give the ids in a wider type, such as int32."
        )
    if len(ids_BT.shape) != 2:
        raise UserError(
            f"Token ids have the shape (batch, time), and not {tuple(ids_BT.shape)}: a single sequence is ids[None, :]."
        )
    if 0 in ids_BT.shape or _is_traced(largest := ids_BT.max()):
        return ids_BT  # jax.jit traces what is computed of any array, and not only of its arguments
    if int(largest) >= vocab_size:
        raise UserError(
            f"The batch has the id {int(largest)}, and the vocabulary ends at {vocab_size - 1}: give the vocab_size of "
            "the tokenizer that made the batch."
        )
    if int(ids_BT.min()) < 0:
        negative = ids_BT[ids_BT < 0]
        if bool((negative != IGNORED_LABEL).any()):
            raise UserError(
                f"The batch has an id of {int(negative.min())}: ids start at 0, and ignored labels are -100."
            )
    return ids_BT


def counted(value: Any, name: str, most: int = 2**63 - 1) -> int:
    """The number of a step, an epoch or a row as an integer of Python, unless jax.jit traces it."""
    if _is_traced(value):
        if value.shape != () or "int" not in str(value.dtype):
            raise UserError(
                f"{name} is an array of {value.dtype} of the shape {value.shape}: give a whole number."
            )
        return value.astype(np.int32)  # of 64 bits it would change all the hashes
    number = whole_number(_plain(value), name, least=0)
    if number > most:
        raise UserError(f"{name} is {number}: give a number of at most {most}.")
    return number


def _plain(value: Any) -> Any:
    """A number of NumPy, PyTorch or JAX as one of Python: optax's schedules, for one, return JAX arrays."""
    return value.item() if getattr(value, "shape", None) == () and not _is_traced(value) else value


def _is_traced(array: Array) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)
