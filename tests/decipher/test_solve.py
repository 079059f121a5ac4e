"""The solver's promises: any key, any symbols, cribs kept, honest numbers, and clear words about bad input."""

import json
import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lexinvariant.api import Model
from lexinvariant.config import LexiconConfig
from lexinvariant.decipher import calibration, search, solve
from lexinvariant.decipher.alphabet import Alphabet, Puzzle, make_puzzle
from lexinvariant.decipher.cipher import PRINTABLE, random_cipher
from lexinvariant.decipher.decipherment import Decipherment
from lexinvariant.decipher.judge import rank_by_judge
from lexinvariant.decipher.judge_lm import JudgeLM
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.probe import hindsight_namer
from lexinvariant.decipher.samples import draw_samples, plain_documents
from lexinvariant.decipher.search import Candidates, SearchProblem
from lexinvariant.decipher.solve import Solver
from lexinvariant.decipher.symbol_posterior import symbol_posterior
from lexinvariant.decipher.votes import windows
from lexinvariant.errors import UserError
from lexinvariant.interruption import InterruptedWorkError, interruptible
from lexinvariant.model.transformer import forward
from lexinvariant.rng import Stream, key_at, keys_for_rows
from lexinvariant.text import CharVocab
from tests.tiny_models import TINY, random_params

PLAIN = (
    "When the old keeper of the lighthouse heard the storm coming over the water, he climbed the stairs with his lamp "
    "and his book, and sat down to wait for the ships that would need him before the morning; none of them came."
)
EMOJI = [chr(0x1F600 + i) for i in range(26)]
ENGLISH = load_language()
LOWER = ENGLISH.letters


def tiny(lexicon: str = "permuted", decipher_head: bool = True, hindsight_layers: int = 0) -> Model:
    config = replace(
        TINY,
        context=64,
        lexicon=LexiconConfig(kind=lexicon),  # type: ignore[arg-type]
        decipher_head=decipher_head,
        decipher_hidden=16,
        hindsight_layers=hindsight_layers,
    )
    return Model(config, random_params(config, scale=0.2), CharVocab())


def written(text: str, seed: int) -> str:
    """Enciphered, capitals as capitals."""
    key = random_cipher(seed)
    return text.translate(
        str.maketrans(key.alphabet + key.alphabet.upper(), key.written + key.written.upper())
    )


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(tiny(), use_judge=False)


@pytest.fixture(scope="module")
def reading(solver: Solver) -> Decipherment:
    return solver.read([written(PLAIN, 1)])[0]


def test_a_text_is_read_whatever_its_key(solver: Solver, reading: Decipherment) -> None:
    assert reading.plaintext == PLAIN
    texts = [PLAIN, written(PLAIN, 2), written(PLAIN, 3)]
    batch = solver.read(texts)
    assert [r.plaintext for r in batch] == [PLAIN] * 3
    assert all(symbol == plain for symbol, plain in batch[0].key.items())
    alone = [solver.read([text])[0] for text in texts[1:]]
    for together, by_itself in zip(batch[1:], alone, strict=True):
        assert together.to_json() | {"seconds": 0} == by_itself.to_json() | {"seconds": 0}


def test_many_texts_are_dealt_out_to_processes(solver: Solver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "MIN_TEXTS_FOR_WORKERS", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    texts = [written(PLAIN, 1), "ab", written(PLAIN, 2), written(PLAIN, 3)]
    batch = solver.read(texts, top=1)
    assert [r.plaintext for r in batch if len(r.plaintext) > 2] == [PLAIN] * 3
    assert len(batch[1].plaintext) == 2
    alone = solver.read(texts[2:3], top=1)[0]
    assert batch[2].to_json() | {"seconds": 0} == alone.to_json() | {"seconds": 0}


def test_workers_run_nothing_that_lies_in_the_current_folder(
    solver: Solver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for module in ("numpy", "pickle", "lexinvariant"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(solve, "MIN_TEXTS_FOR_WORKERS", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    readings = solver.read([written(PLAIN, 1), written(PLAIN, 2)])
    assert [reading.plaintext for reading in readings] == [PLAIN] * 2
    assert not (tmp_path / "was-run").exists()
    assert capfd.readouterr().err == "", "a worker that cannot start says so"


def test_letters_are_read_without_jax() -> None:
    code = (
        "import sys; from lexinvariant import Solver; from lexinvariant.decipher.language import _NGRAMS\n"
        "solver = Solver(); assert not _NGRAMS._ngrams\n"
        f"print(solver.read([{written(PLAIN, 1)!r}, 'a short text of the judge'])[0].plaintext); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    plaintext, loaded = run.stdout.splitlines()
    assert plaintext == PLAIN
    assert "lexinvariant.decipher.judge_lm" in loaded.split()
    assert not {"jax", "jaxlib", "optax"} & set(loaded.split())


@pytest.mark.parametrize("alphabet", ["letters", "ascii"])
def test_a_reading_that_nobody_waits_for_is_given_up(solver: Solver, alphabet: Alphabet) -> None:
    given_up = threading.Event()
    given_up.set()
    with interruptible(given_up), pytest.raises(InterruptedWorkError):
        solver.read(["Myyv my qw vgy chk avcdy qpxkfy"], alphabet=alphabet)


def test_emoji_numbers_and_tokens_are_read_as_letters_are(solver: Solver, reading: Decipherment) -> None:
    letters = "".join(c for c in PLAIN.lower() if c in LOWER + " ")
    drawn = dict(zip(LOWER, EMOJI, strict=True)) | {" ": " "}
    read = solver.read(["".join(drawn[c] for c in letters)])[0]
    assert read.plaintext == letters
    assert set(read.key) <= set(EMOJI)
    tokens = [str(10 + LOWER.index(c)) for c in letters.replace(" ", "")]
    assert solver.read([tokens], unspaced=True)[0].plaintext == letters.replace(" ", "")


def test_a_space_among_the_glyphs_is_found(solver: Solver) -> None:
    letters = "".join(c for c in PLAIN.lower() if c in LOWER + " ")
    tokens = [str(1 + (LOWER + " ").index(c)) for c in letters]
    read = solver.read([tokens])[0]
    assert read.key["27"] == " "
    assert read.plaintext == letters


def test_what_a_reading_tells(reading: Decipherment) -> None:
    assert (
        set(reading.key) == set(reading.confidence) == {c.lower() for c in written(PLAIN, 1) if c.isalpha()}
    )
    assert len(set(reading.key.values())) == len(reading.key)
    assert all(0 <= p <= 1 for p in reading.confidence.values())
    assert np.mean(list(reading.confidence.values())) > 0.9
    p = [other.probability for other in reading.alternatives]
    assert p == sorted(p, reverse=True)
    assert all(0 <= value <= 1 for value in p)
    assert all(other.plaintext != reading.plaintext for other in reading.alternatives)
    told = json.loads(json.dumps(reading.to_json()))
    own = {
        "verdict",
        "right",
        "plaintext",
        "spaced",
        "key",
        "confidence",
        "alternatives",
        "notation",
        "seconds",
        "letter_confidence",
        "alphabet",
        "folded",
    }
    assert set(told) == own
    assert told["letter_confidence"] == []
    assert told["verdict"]["status"] == "read"
    assert set(told["alternatives"][0]) == {"plaintext", "key", "probability"}
    assert reading.seconds > 0


def test_top_is_how_many_others_there_are(solver: Solver) -> None:
    assert [len(solver.read(["xyzzy"], top=top)[0].alternatives) for top in (0, 2)] == [0, 2]


def test_cribs_are_kept_even_when_they_are_wrong(solver: Solver, reading: Decipherment) -> None:
    cipher = written(PLAIN, 1)
    symbol = next(s for s, plain in reading.key.items() if plain == "e")
    read = solver.read([cipher], cribs={symbol.upper(): "Q"})[0]
    assert (read.key[symbol], read.confidence[symbol]) == ("q", 1.0)
    assert list(read.key.values()).count("q") == 1
    begun = solver.read([cipher], crib_text="When the old")[0]
    assert begun.plaintext == PLAIN
    assert begun.confidence[cipher[0].lower()] == 1.0


@pytest.mark.parametrize(
    ("cribs", "crib_text", "why"),
    [
        ({"a": "x", "b": "x"}, None, "cannot both stand for x"),
        ({"a": "x", "A": "y"}, None, "cannot be both x and y"),
        ({"a": "xy"}, None, "one letter"),
        ({"a": "7"}, None, "one letter"),
        ({"7": "a"}, None, "not a cipher symbol"),
        ({}, "it  is", "does not fit"),
        ({}, "tt is", "cannot both|cannot be both"),
    ],
)
def test_cribs_that_cannot_be(solver: Solver, cribs: dict[str, str], crib_text: str | None, why: str) -> None:
    with pytest.raises(UserError, match=why):
        solver.read(["ab ab cab"], cribs=cribs, crib_text=crib_text)


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("", {}, "nothing to decipher"),
        (" \n ", {}, "nothing to decipher"),
        ([], {}, "nothing to decipher"),
        ("".join(chr(0x4E00 + i) for i in range(129)), {}, "129 different symbols"),
        ("".join(chr(0x4E00 + i) for i in range(120)), {"alphabet": "ascii"}, "120 different symbols"),
    ],
)
def test_texts_that_cannot_be_read(solver: Solver, text: str, options: dict, why: str) -> None:
    with pytest.raises(UserError, match=why):
        solver.read([text], **options)


@pytest.mark.parametrize("text", ["x", "7", "🙂", "aaaa", "abcdefghijklmnopqrstuvwxyz", ["42"]])
def test_texts_that_say_little_are_read_without_certainty(solver: Solver, text: str) -> None:
    read = solver.read([text])[0]
    assert len(read.plaintext) == len(text)
    assert all(0 < p < 0.95 for p in read.confidence.values())


def test_groups_of_five_are_no_words(solver: Solver) -> None:
    letters = "".join(c for c in written(PLAIN, 4).lower() if c in LOWER)
    groups = " ".join(letters[i : i + 5] for i in range(0, len(letters), 5))
    assert not make_puzzle(groups, ENGLISH).spaced
    read = solver.read([groups])[0]
    assert read.plaintext.replace(" ", "") == "".join(c for c in PLAIN.lower() if c in LOWER)
    assert read.spaced is not None
    assert read.spaced.startswith("when the old keeper of the ")


def test_a_long_text_is_sampled(solver: Solver) -> None:
    draw = random.Random(0)
    words = PLAIN.lower().replace(",", "").replace(".", "").replace(";", "").split()
    long = " ".join(draw.choice(words) for _ in range(60_000)) + " vex quiz jack"
    read = solver.read([written(long, 5)])[0]
    wrong = sum(a != b for a, b in zip(long, read.plaintext, strict=True))
    assert wrong < 20  # letters that occur once in all of it may be taken for one another
    assert read.seconds < 20


def test_which_symbols_are_enciphered_is_seen() -> None:
    kind = lambda text: make_puzzle(text, ENGLISH).kind  # noqa: E731
    assert kind(written(PLAIN, 1)) == kind(written(PLAIN, 1).upper()) == "letters"
    assert kind(written(PLAIN.replace(" ", ""), 1)) == "letters"
    printable = random_cipher(0, alphabet=PRINTABLE)
    assert kind(printable.encipher(PLAIN + " In 1837 (May 20-26) it cost $5!")) == "ascii"
    assert kind("53++!305))6*;4826)4+.)4+);806*") == "glyphs"


def test_everything_enciphered_is_named_by_the_model(solver: Solver) -> None:
    read = solver.read(["q#Q# 7x#q"], alphabet="ascii", cribs={"#": " "})[0]
    assert read.plaintext[1] == read.plaintext[3] == " "
    assert len(set(read.key.values())) == len(read.key) == 6
    with pytest.raises(UserError, match="cannot name symbols"):
        Solver(tiny("learned", decipher_head=False)).read(["abc abc"], alphabet="ascii")


def test_without_a_model_everything_enciphered_is_still_read() -> None:
    alone = Solver(language=replace(ENGLISH, model=None))
    assert alone.model is None
    read = alone.read([random_cipher(0, alphabet=PRINTABLE).encipher(PLAIN)])[0]
    assert sum(a == b for a, b in zip(PLAIN, read.plaintext, strict=True)) > len(PLAIN) / 2


def test_a_loaded_model_deciphers() -> None:
    cipher = written(PLAIN, 1)
    assert tiny().decipher(cipher, cribs={cipher[0]: "w"}).plaintext == PLAIN


def test_the_head_is_asked_about_second_copies_only() -> None:
    model = tiny()
    symbol_T = np.array([0, 1, 2, 0, 1, 0])
    logp_SC = symbol_posterior(model, symbol_T, 3, "".join(map(chr, range(128))))
    assert logp_SC.shape == (3, 128)
    assert (np.exp(logp_SC).sum(axis=1) <= 1 + 1e-5).all()  # a mean of logs is below the log of the mean
    assert [(w.start, w.stop) for w in windows(100, 40)] == [(0, 40), (30, 70), (60, 100)]
    assert windows(30, 40) == [slice(0, 30)]


def test_a_model_with_hindsight_reads_a_text_once() -> None:
    """The mean, over a symbol's occurrences, of what the head says once all of the text is read."""
    model = tiny(hindsight_layers=1)
    symbol_T = np.array([0, 1, 2, 0, 1, 0, 2, 3])
    key_B = keys_for_rows(key_at(0, Stream.EVAL, 0), jnp.zeros(1, jnp.int32))
    read = jax.jit(forward, static_argnums=1)
    reading = read(model.params, model.config, jnp.asarray(symbol_T)[None], key_B)
    logp_TV = jax.nn.log_softmax(hindsight_namer(model).logits(reading.h_BTD)[0], axis=1)
    expected_SV = [logp_TV[symbol_T == symbol].mean(axis=0) for symbol in range(4)]
    ours_SC = symbol_posterior(model, symbol_T, 4, "".join(map(chr, range(128))))
    np.testing.assert_allclose(ours_SC, expected_SV, rtol=1e-4, atol=1e-5)


def problem_of(cipher: str) -> tuple[Puzzle, SearchProblem]:
    puzzle = make_puzzle(cipher, ENGLISH)
    return puzzle, SearchProblem(
        ENGLISH.ngram("spaced-short"), [puzzle.words], len(puzzle.symbols), np.arange(26), {}
    )


def costed(problem: SearchProblem, key_NS: np.ndarray) -> Candidates:
    return search.unique_candidates(problem, key_NS.T, search.costs(problem, key_NS))


def test_the_judge_overrules_the_n_gram() -> None:
    """A judge that knows the truth finds it in the neighbourhood, though the n-gram prefers another key."""

    class Knowing(JudgeLM):
        def __init__(self) -> None:
            pass

        def nats(self, texts: Sequence[str]) -> np.ndarray:
            return np.array(
                [10.0 * sum(a != b for a, b in zip(text, "a bad cob", strict=True)) for text in texts]
            )

    puzzle, problem = problem_of("u zux yez")
    start = costed(problem, np.array([[8, 19, 7, 0, 4]], np.int32))
    best = rank_by_judge(Knowing(), ENGLISH, problem, start)
    read = puzzle.plaintext({s: LOWER[v] for s, v in zip(puzzle.symbols, best.key_NS[0], strict=True)})
    assert sum(a != b for a, b in zip(read, "a bad cob", strict=True)) <= 2


def test_the_judge_is_not_asked_about_what_the_n_gram_rules_out() -> None:
    class Listening(JudgeLM):
        def __init__(self) -> None:
            self.heard: list[str] = []

        def nats(self, texts: Sequence[str]) -> np.ndarray:
            self.heard += texts
            return np.zeros(len(texts))

    puzzle, problem = problem_of("the quick brown fox jumps over the lazy dog")
    right = np.array([LOWER.index(symbol) for symbol in puzzle.symbols], np.int32)
    start = costed(problem, np.stack([right, np.roll(right, 1), np.roll(right, 2)]))
    judge = Listening()
    rank_by_judge(judge, ENGLISH, problem, start)
    assert len(judge.heard) == len(set(judge.heard)) > 3
    assert max(map(problem.ngram.nats, judge.heard)) <= start.cost_N[0] + ENGLISH.judging.max_ngram_excess


def test_calibration_finds_what_shares_are_worth() -> None:
    rng = np.random.default_rng(0)
    share_N = rng.uniform(0.01, 0.99, 4000)
    truth_N = 1 / (1 + np.exp(-0.5 * np.log(share_N / (1 - share_N)) + 0.3))
    slope, shift, loss = calibration.fit(share_N, (rng.random(4000) < truth_N).astype(float))
    assert (slope, shift) == pytest.approx((0.5, -0.3), abs=0.1)
    assert 0.5 < loss < np.log(2)
    sure = ENGLISH.calibrations.spaced.probability(np.array([0.0, 0.5, 0.9, 1.0]))
    assert (np.diff(sure) > 0).all()
    assert 0 < sure[0] < sure[-1] < 1


def test_samples_are_whole_words_of_exactly_the_length(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "text.txt").write_text((PLAIN + "\n\n") * 10)
    for setting in ("spaced", "unspaced", "ascii"):
        documents = plain_documents(str(tmp_path / "text.txt"), setting, ENGLISH)  # type: ignore[arg-type]
        draw = partial(draw_samples, documents, setting, ENGLISH, 40, 5)
        samples = draw(seed=1)
        assert samples == draw(seed=1) != draw(seed=2)
        for sample in samples:
            assert len(sample.plain) == len(sample.cipher) == 40
            assert sample.plain in documents[0]
            if setting != "unspaced":
                assert f" {sample.plain} " in f" {documents[0]} "
        assert (" " in samples[0].plain) == (setting != "unspaced")
    with pytest.raises(UserError, match="No text is as long"):
        draw_samples(["short"], "spaced", ENGLISH, 40, 5, 0)
