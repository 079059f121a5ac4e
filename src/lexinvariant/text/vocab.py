"""Vocabularies: text to token ids and back."""

import codecs
import difflib
import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lexinvariant.errors import UserError, likely
from lexinvariant.files import expand_user, read_json_object

VOCAB_FILE = "vocab.json"
TOKENIZER_FILE = "tokenizer.json"
# Short names of tokenizers on the Hub; any other Hub name works as it is.
READY_TOKENIZERS = {"t5": "google-t5/t5-base", "t5-base": "google-t5/t5-base"}

Ids = NDArray[np.unsignedinteger[Any]]


class Vocab(Protocol):
    """A reversible map from text to ids below `size`."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def fold(self, text: str) -> tuple[str, int]:
        """The text as the vocabulary can write it, and how many characters had to be dropped."""
        ...

    def encode(self, text: str) -> Ids: ...

    def encode_batch(self, texts: Sequence[str]) -> list[Ids]: ...

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str: ...

    def save(self, folder: Path) -> None:
        """Write what `load_vocab(folder)` needs."""
        ...


def dtype_for(size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds every id below `size`, so that no id can ever wrap."""
    return np.dtype(np.min_scalar_type(max(size - 1, 0)))


def _pairs(words: str) -> dict[str, str]:
    listed = words.split()
    return dict(zip(listed[::2], listed[1::2], strict=True))


# What NFKD does not take apart, or takes apart wrongly ("not equal" without its stroke is "equal").
_FOLDED = {
    **dict.fromkeys("‘’‚‛′‵‹›ʼʻ´ˊˋ", "'"),
    **dict.fromkeys("“”„‟″‶«»", '"'),
    **dict.fromkeys("‐‑‒–−⁃", "-"),
    **dict.fromkeys("—―", "--"),
    **dict.fromkeys("\u2028\u2029\u0085", "\n"),
    **dict.fromkeys("•‣∙", "*"),
    **dict.fromkeys("·․‧", "."),
    **dict.fromkeys("⁄∕÷", "/"),
    **dict.fromkeys("∼≈˜", "~"),
    # Marks without a shape of their own: leaving them out loses nothing.
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\ufe0e\ufe0f", ""),
    **_pairs("× x  ≠ !=  ≤ <=  ≥ >=  → ->  ← <-  ⇒ =>  … ...  € EUR  £ GBP  ¥ JPY  © (c)  ® (r)  ° deg"),
    **_pairs("ß ss  æ ae  œ oe  ø o  ł l  đ d  ð d  þ th  ı i  ħ h  ŋ n"),
    **_pairs("ẞ SS  Æ AE  Œ OE  Ø O  Ł L  Đ D  Ð D  Þ Th  Ħ H  Ŋ N"),
}
_DROPPED = b"\xff"  # stands for a dropped character until it is counted; no ASCII text contains it


def _fold_character(character: str) -> bytes:
    if character in _FOLDED:
        return _FOLDED[character].encode("ascii")
    if unicodedata.combining(character):
        return b""
    parts = unicodedata.normalize("NFKD", character)
    kept = "".join(_FOLDED.get(part, part) for part in parts if not unicodedata.combining(part))
    return kept.encode("ascii") if kept and kept.isascii() else _DROPPED


class _FoldTable(dict[str, bytes]):
    """Every character is looked up in Unicode's tables once."""

    def __missing__(self, character: str) -> bytes:
        folded = self[character] = _fold_character(character)
        return folded


_TABLE = _FoldTable()


def _fold_run(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    run = error.object[error.start : error.end]
    return b"".join(map(_TABLE.__getitem__, run)), error.end


# The ASCII encoder runs over plain text at memory speed and asks only about the runs it cannot write.
codecs.register_error("lexinvariant.fold", _fold_run)


class CharVocab:
    """The 128 ASCII characters; an id is the character's code."""

    name = "char128"
    size = 128

    def _fold_bytes(self, text: str) -> tuple[bytes, int]:
        if text.isascii():
            return text.encode("ascii"), 0
        folded = text.encode("ascii", "lexinvariant.fold")
        dropped = folded.count(_DROPPED)
        return (folded.translate(None, _DROPPED) if dropped else folded), dropped

    def fold(self, text: str) -> tuple[str, int]:
        """Curly quotes, dashes, accents, ligatures and odd spaces become ASCII; the rest is dropped."""
        if text.isascii():
            return text, 0
        folded, dropped = self._fold_bytes(text)
        return folded.decode("ascii"), dropped

    def encode(self, text: str) -> Ids:
        return np.frombuffer(self._fold_bytes(text)[0], np.uint8)

    def encode_batch(self, texts: Sequence[str]) -> list[Ids]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        ids = np.asarray(ids, np.int64)
        _check_ids(ids, self.size)
        return ids.astype(np.uint8).tobytes().decode("ascii")

    def save(self, folder: Path) -> None:
        write_vocab_file(folder, self)


class LetterVocab:
    """The first `size` letters of the alphabet: what made-up languages are written in."""

    def __init__(self, size: int) -> None:
        if not 1 <= size <= 26:
            raise UserError(
                f"a letter vocabulary has 1 to 26 letters, not {size}: choose a number in that range"
            )
        self.name = f"letters{size}"
        self.size = size

    def fold(self, text: str) -> tuple[str, int]:
        kept = "".join(letter for letter in text if 0 <= ord(letter) - ord("a") < self.size)
        return kept, len(text) - len(kept)

    def encode(self, text: str) -> Ids:
        return np.frombuffer(self.fold(text)[0].encode("ascii"), np.uint8) - np.uint8(ord("a"))

    def encode_batch(self, texts: Sequence[str]) -> list[Ids]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        ids = np.asarray(ids, np.int64)
        _check_ids(ids, self.size)
        return (ids + ord("a")).astype(np.uint8).tobytes().decode("ascii")

    def save(self, folder: Path) -> None:
        write_vocab_file(folder, self)


def _check_ids(ids: NDArray[Any], size: int) -> None:
    if ids.size and not 0 <= ids.min() <= ids.max() < size:
        raise ValueError(f"token ids must lie in [0, {size})")


def write_vocab_file(folder: Path, vocab: Vocab, **more: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    described = json.dumps({"name": vocab.name, "size": vocab.size, **more}) + "\n"
    (folder / VOCAB_FILE).write_text(described, encoding="utf-8")


def _built_in(name: str) -> Vocab | None:
    if name == CharVocab.name:
        return CharVocab()
    letters = re.fullmatch(r"letters(\d{1,2})", name)
    return LetterVocab(int(letters[1])) if letters else None


def load_vocab(spec: str | Path) -> Vocab:
    """`char128`, a tokenizer.json, a folder with one (or that `save` wrote), or a Hub tokenizer's name."""
    from lexinvariant.text.tokenizer import HuggingFaceVocab

    if built_in := _built_in(str(spec)):
        return built_in
    path = expand_user(spec)
    if path.is_dir():
        return _load_folder(path)
    if path.is_file():
        return HuggingFaceVocab.from_file(path)
    if isinstance(spec, Path) or _looks_local(spec):
        raise UserError(f"there is no tokenizer file or folder at {path}{nearest_file(path)}")
    if difflib.get_close_matches(spec, [CharVocab.name], cutoff=0.75):
        raise UserError(f"there is no vocabulary {spec!r}: did you mean {CharVocab.name!r}?")
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", spec):
        raise UserError(
            f"{spec!r} is not a vocabulary: give {CharVocab.name!r}, the path of a tokenizer.json or a Hub name "
            "such as 'google-t5/t5-base'"
        )
    return HuggingFaceVocab.from_hub(READY_TOKENIZERS.get(spec, spec))


def _load_folder(folder: Path) -> Vocab:
    from lexinvariant.text.tokenizer import HuggingFaceVocab

    name = size = expected = None
    if (folder / VOCAB_FILE).is_file():
        remedy = "restore it or prepare the folder again"
        described = read_json_object(folder / VOCAB_FILE, remedy)
        name, size, expected = map(described.get, ("name", "size", "sha256"))
        if not isinstance(name, str):
            raise UserError(f"{folder / VOCAB_FILE} is damaged, it has no name: {remedy}")
        if built_in := _built_in(name):
            return built_in
    if not (folder / TOKENIZER_FILE).is_file():
        raise UserError(f"the folder {folder} holds no {TOKENIZER_FILE}: name a folder or file that does")
    vocab = HuggingFaceVocab.from_file(folder / TOKENIZER_FILE, name)
    if expected not in (None, hashlib.sha256((folder / TOKENIZER_FILE).read_bytes()).hexdigest()):
        # One wrong bit is another token, and no error: a standard model would read another text in silence.
        raise UserError(
            f"{folder / TOKENIZER_FILE} is not what was written there, by its hash in {VOCAB_FILE}: restore it, or "
            "write the folder again"
        )
    if size not in (None, vocab.size):
        raise UserError(
            f"{folder / TOKENIZER_FILE} has {vocab.size} tokens and {VOCAB_FILE} beside it says {size}: it belongs to "
            "something else, so restore the one that was there"
        )
    return vocab


def _looks_local(spec: str) -> bool:
    return spec.startswith((".", "/", "~")) or spec.endswith(".json") or spec.count("/") > 1 or "\\" in spec


def nearest_file(path: Path) -> str:
    """The end of a "not found" sentence: a likely meant neighbour, or a plain request to check the path."""
    folder = path.parent
    if path.is_symlink():
        return f": it is a link to {path.readlink()}, which does not exist, so repair the link"
    if path.exists():
        return ": it is neither a file nor a folder, so check the path"
    if not folder.is_dir():
        return f": the folder {folder} does not exist either, so check the path"
    close = likely(path.name, (entry.name for entry in folder.iterdir()))
    return f": did you mean {folder / close}?" if close else ": check the path"
