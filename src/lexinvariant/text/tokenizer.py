"""Hugging Face tokenizers: reading them from files and the Hub, and training one's own.

`tokenizers` is imported where it is used, so that everything else in `text` loads at once.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lexinvariant.errors import UserError
from lexinvariant.files import check_can_fill, expand_user, write_remedy
from lexinvariant.locks import staging_folder
from lexinvariant.text.hub import fetch_file
from lexinvariant.text.sources import listed_sources, read_documents
from lexinvariant.text.vocab import TOKENIZER_FILE, Ids, dtype_for, write_vocab_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LARGEST = 10_000_000  # tokens of one that is trained here


class HuggingFaceVocab:
    """A `tokenizers.Tokenizer` without special tokens, truncation, padding or chance: plain text in and out."""

    def __init__(self, tokenizer: "Tokenizer", name: str | None = None) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        if getattr(tokenizer.model, "dropout", None):  # of a BPE: a text would be other tokens each time
            tokenizer.model.dropout = None
        self.tokenizer = tokenizer
        ids = tokenizer.get_vocab(with_added_tokens=True).values()
        # Ids may have gaps, so the count of tokens can be smaller than what a lexicon must hold.
        self.size = max(ids, default=-1) + 1
        self.name = name or f"tokenizer-{hashlib.sha256(tokenizer.to_str().encode()).hexdigest()[:8]}"
        self._dtype = dtype_for(self.size)

    @classmethod
    def from_file(cls, path: Path, name: str | None = None) -> "HuggingFaceVocab":
        from tokenizers import Tokenizer

        try:
            return cls(Tokenizer.from_file(str(path)), name)
        except Exception as error:  # the library raises bare Exception
            raise UserError(
                f"{path} is not a Hugging Face tokenizer file ({_first_line(error)}): "
                "name a tokenizer.json, or 'char128' for characters"
            ) from error

    @classmethod
    def from_hub(cls, name: str) -> "HuggingFaceVocab":
        return cls.from_file(fetch_file(name, TOKENIZER_FILE), name)

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Tokens that stand for no text, such as </s>."""
        added = self.tokenizer.get_added_tokens_decoder()
        return tuple(sorted(i for i, token in added.items() if token.special))

    def fold(self, text: str) -> tuple[str, int]:
        return text, 0

    def encode(self, text: str) -> Ids:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Ids]:
        try:
            encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except (UnicodeEncodeError, TypeError):
            # JSON may hold half a surrogate pair, which has no UTF-8 form and which the library refuses.
            whole = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            encodings = self.tokenizer.encode_batch_fast(whole, add_special_tokens=False)
        return [np.array(encoding.ids, self._dtype) for encoding in encodings]

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        return self.tokenizer.decode(np.asarray(ids, np.int64).tolist(), skip_special_tokens=False)

    def save(self, folder: Path) -> None:
        written = self.tokenizer.to_str().encode()
        write_vocab_file(folder, self, sha256=hashlib.sha256(written).hexdigest())
        # Written from here, a full disk is an OSError; the library would raise a bare Exception.
        (folder / TOKENIZER_FILE).write_bytes(written)


def train_tokenizer(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    size: int = 32_000,
    max_bytes: int = 200_000_000,
    progress: bool = False,
    overwrite: bool = False,
) -> HuggingFaceVocab:
    """Learn a byte-level BPE tokenizer from the first `max_bytes` of `sources` and write it to `out`.

    Byte-level BPE rather than T5's unigram model: it starts from all 256 bytes, so every text comes back
    exactly as it went in (tabs, runs of spaces, any script), and its training takes less memory and always
    gives the same result. `out` is a `.json` file or a folder for a `tokenizer.json`. A small text may yield
    fewer than `size` tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if size < 257:
        raise UserError(f"a byte-level tokenizer needs at least 257 tokens, not {size}: ask for more")
    if size > LARGEST:  # the library makes room for all of them before it has read a word
        raise UserError(f"a tokenizer has at most {LARGEST:,} tokens: ask for fewer")
    if max_bytes < 1:
        raise UserError(f"a tokenizer cannot be trained on {max_bytes} bytes of text: give a number above 0")
    listed, out = listed_sources(sources), expand_user(out)
    path = out if out.suffix == ".json" else out / TOKENIZER_FILE
    if path.exists() and not overwrite:
        raise UserError(f"{path} exists already: choose another place or ask to overwrite it (--overwrite)")
    check_can_fill(path.parent)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=progress
    )
    tokenizer.train_from_iterator(_texts(listed, max_bytes), trainer)
    try:
        with staging_folder(path) as staged:
            written = staged / path.name
            written.write_text(tokenizer.to_str(), encoding="utf-8")
            written.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror}): {write_remedy(error)}") from error
    return HuggingFaceVocab(tokenizer)


def _texts(sources: Iterable[str], max_bytes: int) -> Iterator[str]:
    taken = 0
    for source in sources:
        for document in read_documents(source):
            yield document.text.encode("utf-8", "replace").decode("utf-8")
            taken += len(document.text)
            if taken >= max_bytes:
                return


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
