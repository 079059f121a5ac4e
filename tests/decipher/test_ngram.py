"""The character n-gram: probabilities, bytes on disk, and what it has never seen."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from lexinvariant.decipher import ngram
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.ngram import SCALE, NGram
from lexinvariant.errors import UserError

TEXT = "abracadabra cadabra abra " * 40
ALPHABET = "abcdr "


@pytest.fixture(scope="module")
def table() -> NGram:
    return ngram.assemble(
        ALPHABET, ngram.backoff_levels(ngram.count_ngrams([TEXT], ALPHABET, 3), len(ALPHABET))
    )


def test_every_context_has_probabilities_that_sum_to_one(table: NGram) -> None:
    p_CV = np.exp(-table.cost_G.reshape(-1, table.size).astype(float) / SCALE)
    assert np.abs(p_CV.sum(axis=1) - 1).max() < 0.12  # costs are rounded to sixteenths of a nat


def test_what_was_seen_costs_less_than_what_was_not(table: NGram) -> None:
    assert table.nats("abracadabra") < table.nats("abracadrbaa") < table.nats("ddddrrrrccc")


def test_n_grams_that_are_too_rare_to_be_stored_do_not_make_the_others_more_likely() -> None:
    """After "ab" comes "c" 9 times of 100, else one of 91 other symbols once: it does not follow every time."""
    alphabet = "abc" + "".join(map(chr, range(200, 291)))
    texts = ["abc"] * 9 + ["ab" + symbol for symbol in alphabet[3:]]
    counts = ngram.count_ngrams(["".join(texts)], alphabet, 3)

    def probability(least: int) -> float:
        table = ngram.assemble(alphabet, ngram.backoff_levels(counts, len(alphabet), least, step=1))
        return float(np.exp(-float(table.cost_G.reshape(-1, table.size)[1, 2]) / SCALE))

    assert probability(1) == pytest.approx(0.09, abs=0.02)
    assert probability(5) == pytest.approx(0.09, abs=0.02)


def test_the_cost_of_a_text_is_the_sum_over_its_padded_n_grams(table: NGram) -> None:
    padded = "  abra "
    number = [ALPHABET.index(character) for character in padded]
    wanted = sum(
        int(table.cost_G[(number[i] * 6 + number[i + 1]) * 6 + number[i + 2]]) for i in range(len(padded) - 2)
    )
    assert table.nats("abra") == wanted / SCALE


def test_counts_do_not_depend_on_how_the_text_is_cut() -> None:
    whole = ngram.count_ngrams([TEXT], ALPHABET, 1)
    parts = ngram.count_ngrams([TEXT[:333], TEXT[333:]], ALPHABET, 1, chunk=10)
    np.testing.assert_array_equal(whole[0].count_N, parts[0].count_N)
    assert whole[0].code_N.tolist() == parts[0].code_N.tolist() == list(range(len(ALPHABET)))
    assert whole[0].count_N.tolist() == [TEXT.count(character) for character in ALPHABET]


def test_a_saved_table_is_read_back_and_has_the_same_bytes_each_time(tmp_path: Path, table: NGram) -> None:
    parts = ngram.backoff_levels(ngram.count_ngrams([TEXT], ALPHABET, 3), len(ALPHABET))
    for name in ("one.xz", "two.xz"):
        ngram.save(tmp_path / name, ALPHABET, parts)
    assert (tmp_path / "one.xz").read_bytes() == (tmp_path / "two.xz").read_bytes()
    again = ngram.read(tmp_path / "one.xz")
    assert (again.alphabet, again.order) == (ALPHABET, 3)
    np.testing.assert_array_equal(again.cost_G, table.cost_G)


def test_a_damaged_or_missing_table_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "bad.xz").write_bytes(b"nonsense")
    for name in ("bad.xz", "none.xz"):
        with pytest.raises(UserError, match="missing or damaged"):
            ngram.read(tmp_path / name)


@pytest.mark.parametrize(
    "header", [b"[" * 100_000, b"[]", b'{"alphabet": "ab", "order": "x"}', b'{"alphabet": "ab", "order": 1}']
)
def test_a_table_that_does_not_fit_its_header_is_said_to_be_so(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "bad.xz").write_bytes(lzma.compress(header + b"\n" + bytes(20)))
    with pytest.raises(UserError, match="missing or damaged"):
        ngram.read(tmp_path / "bad.xz")


def test_a_table_is_unpacked_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram, "LARGEST_TABLE", 1000)
    ngram.save(
        tmp_path / "a.xz",
        ALPHABET,
        ngram.backoff_levels(ngram.count_ngrams([TEXT], ALPHABET, 2), len(ALPHABET)),
    )
    ngram.read(tmp_path / "a.xz")
    monkeypatch.setattr(ngram, "LARGEST_TABLE", 50)
    with pytest.raises(UserError, match="missing or damaged"):
        ngram.read(tmp_path / "a.xz")


def test_too_little_text_is_an_error() -> None:
    with pytest.raises(UserError, match="shorter than 3"):
        ngram.count_ngrams(["ab"], ALPHABET, 3)


def test_the_long_run_shares_are_those_of_the_text(table: NGram) -> None:
    share = np.array([TEXT.count(character) for character in ALPHABET]) / len(TEXT)
    np.testing.assert_allclose(table.stationary_distribution(), share, atol=0.03)


def test_any_script_is_counted_and_what_is_not_of_the_alphabet_is_left_out() -> None:
    counts = ngram.count_ngrams(["αβ-α\U0001f600β", "é"], "αβ", 2)
    assert counts[0].count_N.tolist() == [2, 2]
    assert (counts[1].code_N.tolist(), counts[1].count_N.tolist()) == ([1, 2], [2, 1])


def test_the_bundled_tables_know_english_and_fit_the_package() -> None:
    language = load_language()
    assert sum(path.stat().st_size for path in language.folder.glob("*.xz")) < 3.3e6
    english = "it was the best of times it was the worst of times"
    for name, text in (("spaced-short", english), ("unspaced-short", english.replace(" ", ""))):
        table = language.ngram(name)  # type: ignore[arg-type]
        assert table.nats(text) / len(text) < 2.2 < 3 < table.nats(text[::-1]) / len(text)
