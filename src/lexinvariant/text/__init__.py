"""Words in: vocabularies, sources, prepared corpora and batches. Nothing here imports jax."""

from pathlib import Path

from lexinvariant.remote import local_copy
from lexinvariant.text.batch import SPLITS, Batch, Data, Split
from lexinvariant.text.corpus import Corpus, Pieces
from lexinvariant.text.letters import letters_only
from lexinvariant.text.manifest import Manifest, Shard
from lexinvariant.text.mixture import ChosenPieces, WeightedPieces
from lexinvariant.text.prepare import prepare
from lexinvariant.text.sources import Document, read_documents
from lexinvariant.text.tags import parse_weights
from lexinvariant.text.tokenizer import HuggingFaceVocab, train_tokenizer
from lexinvariant.text.toy import MarkovLanguage
from lexinvariant.text.vocab import CharVocab, LetterVocab, Vocab, load_vocab

__all__ = [
    "SPLITS",
    "Batch",
    "CharVocab",
    "ChosenPieces",
    "Corpus",
    "Data",
    "Document",
    "HuggingFaceVocab",
    "LetterVocab",
    "Manifest",
    "MarkovLanguage",
    "Pieces",
    "Shard",
    "Split",
    "Vocab",
    "WeightedPieces",
    "letters_only",
    "load_vocab",
    "open_data",
    "parse_weights",
    "prepare",
    "read_documents",
    "train_tokenizer",
]


def open_data(spec: str | Path) -> Corpus | MarkovLanguage:
    """`markov12`, the built-in toy language, or a folder that `prepare` wrote, also on an object store: checked when it
    is first used.
    """
    if str(spec) == MarkovLanguage.name:
        return MarkovLanguage()
    corpus = Corpus.open(local_copy(spec))
    corpus.verify_once()
    return corpus
