"""The search for keys: costs, constraints, and keys that are found again."""

from dataclasses import replace

import numpy as np
import pytest

from lexinvariant.decipher import search
from lexinvariant.decipher.alphabet import WORD_BREAK
from lexinvariant.decipher.language import Effort, load_language
from lexinvariant.decipher.ngram import NGram
from lexinvariant.decipher.search import Candidates, SearchProblem

SPACED = load_language().letters + " "
PLAIN = (
    "the knowledge of english that the search has is three letters long so the text must be long enough for it "
    "to be read without doubt and this one is about two hundred letters and a few more to be quite safe here"
)


@pytest.fixture(scope="module")
def short() -> NGram:
    return load_language().ngram("spaced-short")


def problem_of(table: NGram, plain: str, order: list[int]) -> tuple[SearchProblem, np.ndarray]:
    """The text with its letters numbered in some order, and what the numbers stand for."""
    letters = sorted(set(plain) - {" "})
    truth = [SPACED.index(letters[i]) for i in order]
    number = {SPACED[v]: s for s, v in enumerate(truth)}
    row = np.array([number.get(character, WORD_BREAK) for character in plain])
    return SearchProblem(table, [row], len(truth), np.arange(26), {}), np.array(truth, np.int32)


def shuffled(seed: int) -> list[int]:
    return np.random.default_rng(seed).permutation(len(set(PLAIN) - {" "})).tolist()


def test_costs_are_those_of_the_plaintext(short: NGram) -> None:
    problem, truth = problem_of(short, PLAIN, shuffled(0))
    assert search.costs(problem, truth[None])[0] == pytest.approx(short.nats(PLAIN))


def test_pieces_are_scored_apart(short: NGram) -> None:
    problem, truth = problem_of(short, PLAIN, shuffled(0))
    (row,) = problem.pieces
    half = next(i for i in range(90, len(row)) if row[i] == WORD_BREAK)
    apart = replace(problem, pieces=[row[:half], row[half + 1 :]])
    wanted = short.nats(PLAIN[:half]) + short.nats(PLAIN[half + 1 :])
    assert search.costs(apart, truth[None])[0] == pytest.approx(wanted)


def found_by(problem: SearchProblem, seed: int = 0) -> Candidates:
    rng = np.random.default_rng(seed)
    effort = Effort(n_keys=128, n_swaps=2500, start_inverse_temperature=0.2)
    return search.anneal(problem, search.keys_by_frequency(problem, effort.n_keys, 3.0, rng), effort, rng)[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_key_is_found_whatever_the_symbols_are_called(short: NGram, seed: int) -> None:
    problem, truth = problem_of(short, PLAIN, shuffled(seed))
    found = found_by(problem)
    assert found.cost_N[0] <= search.costs(problem, truth[None])[0] + 1e-9
    count_S = np.bincount(problem.pieces[0][problem.pieces[0] >= 0])
    assert count_S[found.key_NS[0] != truth].sum() <= 4  # a trigram may take rare letters for one another


def test_found_keys_are_one_to_one_different_and_cost_what_is_said(short: NGram) -> None:
    problem, _ = problem_of(short, PLAIN[:40], shuffled(0)[:0] or list(range(len(set(PLAIN[:40]) - {" "}))))
    found = found_by(problem)
    assert all(len(set(key)) == len(key) for key in found.key_NS.tolist())
    assert len({tuple(key) for key in found.key_NS.tolist()}) == len(found.key_NS) > 10
    np.testing.assert_allclose(search.costs(problem, found.key_NS), found.cost_N)
    assert (np.diff(found.cost_N) >= 0).all()


def test_a_search_ends_when_no_key_takes_any_swap(short: NGram) -> None:
    class Counting(np.random.Generator):
        n_swaps = 0

        def standard_exponential(self, *arguments: object) -> np.ndarray:  # type: ignore[override]
            self.n_swaps += 1
            return super().standard_exponential(*arguments)  # type: ignore[call-overload, no-any-return]

    problem, _ = problem_of(short, " ".join([PLAIN] * 8), shuffled(0))  # a long text leaves no doubt
    problem = replace(problem, repeats_count=True)
    rng = Counting(np.random.PCG64(0))
    effort = Effort(n_keys=8, n_swaps=20_000, start_inverse_temperature=0.5)
    cold = search.keys_by_frequency(problem, effort.n_keys, 3.0, rng)
    found, _ = search.anneal(problem, cold, effort, rng)
    assert rng.n_swaps < effort.n_swaps / 4
    assert search.one_swap_away(problem, found.key_NS[0]).cost_N[0] == found.cost_N[0]  # no swap betters it


def test_pinned_symbols_stay(short: NGram) -> None:
    problem, truth = problem_of(short, PLAIN, shuffled(0))
    wrong = {0: int((truth[0] + 1) % 26), 3: int(truth[3])}
    found = found_by(replace(problem, pinned=wrong))
    assert (found.key_NS[:, 0] == wrong[0]).all()
    assert (found.key_NS[:, 3] == wrong[3]).all()
    assert all(len(set(key)) == len(key) for key in found.key_NS.tolist())


def test_all_pinned_is_the_one_key(short: NGram) -> None:
    problem, truth = problem_of(short, PLAIN, shuffled(0))
    found = found_by(replace(problem, pinned=dict(enumerate(truth.tolist()))))
    assert found.key_NS.tolist() == [truth.tolist()]


def test_neighbours_are_all_keys_one_swap_away(short: NGram) -> None:
    problem, truth = problem_of(short, "a bad cab", [0, 1, 2, 3])
    near = search.one_swap_away(problem, truth)
    assert len(near.key_NS) == 1 + 4 * 3 // 2 + 4 * 22
    np.testing.assert_allclose(near.cost_N, search.costs(problem, near.key_NS))
    pinned = search.one_swap_away(replace(problem, pinned={0: int(truth[0])}), truth)
    assert len(pinned.key_NS) == 1 + 3 * 2 // 2 + 3 * 22
    assert (pinned.key_NS[:, 0] == truth[0]).all()


def test_other_evidence_decides_where_the_n_gram_cannot(short: NGram) -> None:
    problem, _ = problem_of(short, "a", [0])
    prior_SV = np.full((1, short.size), 30.0)
    prior_SV[0, SPACED.index("q")] = 0.0
    assert found_by(replace(problem, prior_SV=prior_SV)).key_NS[0, 0] == SPACED.index("q")


def test_first_keys_follow_what_is_known(short: NGram) -> None:
    problem, truth = problem_of(short, PLAIN, shuffled(0))
    logp_SV = np.full((len(truth), short.size), -20.0)
    logp_SV[np.arange(len(truth)), truth] = 0.0
    first_SR = search.keys_by_posterior(problem, logp_SV, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(first_SR[: len(truth), 0], truth)
    assert all(len(set(key)) == len(key) == 26 for key in first_SR.T.tolist())
