"""Real text as a language."""

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import zstandard

from lexinvariant.errors import UserError
from lexinvariant.text import letters_only
from lexinvariant.theory import fit_ngram
from lexinvariant.theory.english import LETTERS_AND_SPACE, encode, most_frequent, read_text, stdlib_text


def test_encode_drops_what_is_not_in_the_alphabet() -> None:
    assert encode("abcab", "ba").tolist() == [1, 0, 1, 0]
    assert most_frequent("aabbbc", 2) == "ba"
    with pytest.raises(UserError, match="only 3 different"):
        most_frequent("aabbbc", 4)


def test_ngram_is_normalised_positive_and_close_to_the_counts() -> None:
    symbols = encode(letters_only(stdlib_text())[:60_000], LETTERS_AND_SPACE)
    language = fit_ngram(symbols, 27, 3)
    for table in language.table_CV:
        np.testing.assert_allclose(table.sum(axis=1), 1)
        assert table.min() > 0
    t, h, e = (LETTERS_AND_SPACE.index(c) for c in "the")
    follows = symbols[2:][(symbols[:-2] == t) & (symbols[1:-1] == h)]
    assert language.table_CV[2][t * 27 + h, e] == pytest.approx(np.mean(follows == e), abs=0.02)
    # A context never seen falls back on the shorter one.
    q, x = LETTERS_AND_SPACE.index("q"), LETTERS_AND_SPACE.index("x")
    assert not ((symbols[:-1] == x) & (symbols[1:] == q)).any()
    shorter = language.table_CV[1][q]
    np.testing.assert_allclose(language.table_CV[2][x * 27 + q], shorter)


def test_higher_order_predicts_held_out_text_better() -> None:
    symbols = encode(letters_only(stdlib_text()), LETTERS_AND_SPACE)
    fit, held = symbols[:250_000], symbols[250_000:255_000]
    loss = []
    for order in (1, 2, 3, 4):
        rows = fit_ngram(fit, 27, order).predictions(held)
        loss.append(-np.log(rows[np.arange(len(held)), held]).mean())
    assert loss == sorted(loss, reverse=True)
    assert loss[0] - loss[3] > 0.5


def test_reads_text_and_json_lines_plain_and_compressed(tmp_path: Path) -> None:
    plain = tmp_path / "a.txt"
    plain.write_text("one\ntwo")
    assert read_text(plain).split() == ["one", "two"]
    packed = tmp_path / "b.jsonl.xz"
    with lzma.open(packed, "wt") as file:
        file.writelines(json.dumps({"text": f"document {i}"}) + "\n" for i in range(9))
    assert read_text(packed).count("document") == 9
    assert read_text(packed, most=15).count("document") == 2
    for name, compress in (("d.txt.gz", gzip.compress), ("d.txt.zst", zstandard.compress)):
        (tmp_path / name).write_bytes(compress(b"one two"))
        assert read_text(tmp_path / name) == "one two"
    with pytest.raises(UserError, match="no source at"):
        read_text(tmp_path / "none.txt")
    (tmp_path / "c.jsonl").write_text('{"other": 1}\n')
    with pytest.raises(UserError, match="no text in the field 'text'"):
        read_text(tmp_path / "c.jsonl")


def test_bad_fits() -> None:
    with pytest.raises(UserError, match="too large"):
        fit_ngram(np.zeros(100, dtype=np.int64), 27, 6)
    with pytest.raises(UserError, match="shorter"):
        fit_ngram(np.zeros(1, dtype=np.int64), 2, 3)
    with pytest.raises(UserError, match="at least 1"):
        fit_ngram(np.zeros(5, dtype=np.int64), 2, 0)
