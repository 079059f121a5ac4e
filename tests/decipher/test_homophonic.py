"""Homophonic ciphers: the costs of many-to-one keys, the search among them, and what the solver says of a text."""

from dataclasses import replace

import numpy as np
import pytest

from lexinvariant.decipher import classical, homophonic, search
from lexinvariant.decipher.alphabet import WORD_BREAK, check_cribs, make_puzzle
from lexinvariant.decipher.features import is_unordered
from lexinvariant.decipher.homophonic import KeyCosts, anneal, find_keys, improve
from lexinvariant.decipher.language import Effort, Stages, load_language
from lexinvariant.decipher.ngram import SCALE
from lexinvariant.decipher.search import SearchProblem
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError

ENGLISH = load_language()
FREQUENCY = ENGLISH.letter_frequencies
PLAIN = (
    "the harbour was quiet when the pilot came down to the quay and looked for the boat that should have been tied "
    "there since the evening before but only a length of wet rope hung from the ring and the water moved slowly "
    "under the boards as if something large had passed below them he called twice then sat down on an empty box "
    "and waited for the sun to rise over the far hills and show him where it had gone"
)
LETTERS = PLAIN.replace(" ", "")
QUICK = Stages(Effort(48, 6000, 0.4), Effort(24, 2000, 0.4))
SIGNS = "".join(map(chr, [*range(48, 91), *range(97, 123)]))


@pytest.fixture(scope="module")
def enciphered() -> list[int]:
    return classical.homophonic(LETTERS, FREQUENCY.tolist(), 42, np.random.default_rng(3))[0]


def small_problem(n_symbols: int = 30, n: int = 80) -> SearchProblem:
    rng = np.random.default_rng(0)
    row = np.concatenate([np.arange(n_symbols), rng.integers(0, n_symbols, n - n_symbols)])
    row[n // 2] = WORD_BREAK
    return SearchProblem(ENGLISH.ngram("spaced-short"), [row, row[:20]], n_symbols, np.arange(26), {4: 7})


def random_keys(problem: SearchProblem, n: int) -> np.ndarray:
    key_SR = np.random.default_rng(1).integers(0, 26, (problem.n_symbols, n)).astype(np.int32)
    key_SR[4] = 7
    return key_SR


def test_a_change_of_one_symbol_costs_what_the_whole_key_costs_more() -> None:
    problem = small_problem()
    costs = KeyCosts(problem, FREQUENCY)
    key_S = random_keys(problem, 1)[:, 0]
    near = costs.one_change_away(key_S)
    assert len(near.key_NS) == 1 + 29 * 25
    np.testing.assert_array_equal(costs.totals(near.key_NS.T) / SCALE, near.cost_N)
    assert (near.key_NS[:, 4] == 7).all()


def test_costs_kept_up_to_date_while_annealing_are_those_of_the_keys() -> None:
    problem = small_problem()
    costs = KeyCosts(problem, FREQUENCY)
    first_SR = random_keys(problem, 16)
    found, last_SR = anneal(costs, first_SR, Effort(16, 400, 0.2), np.random.default_rng(2))
    np.testing.assert_array_equal(costs.totals(found.key_NS.T) / SCALE, found.cost_N)
    assert costs.totals(last_SR).mean() < costs.totals(first_SR).mean() - 20 * SCALE
    assert (found.key_NS[:, 4] == 7).all()


def test_symbols_beside_the_ngram_cost_their_letters_and_the_choice_among_homophones() -> None:
    """Over all sequences of the symbols of one letter, the probabilities of the choices sum to 1."""
    row = np.array([0, 1, 1, 2])
    costs = KeyCosts(
        SearchProblem(ENGLISH.ngram("unspaced-short"), [row], 27, np.arange(26), {}), np.full(26, 1 / 26)
    )
    evenness, width = homophonic.EVENNESS, len(row) + 1
    together = costs.choice_U[2 * width + 3] / SCALE  # two symbols, three occurrences
    arrangements = {(3, 0): 1, (2, 1): 3, (1, 2): 3, (0, 3): 1}
    rising = {
        0: 1.0,
        1: evenness,
        2: evenness * (evenness + 1),
        3: evenness * (evenness + 1) * (evenness + 2),
    }
    total = sum(ways * rising[a] * rising[b] * np.exp(-together) for (a, b), ways in arrangements.items())
    assert total == pytest.approx(1, abs=0.05)
    assert costs.letter_V.tolist() == [round(SCALE * np.log(26))] * 26


def test_the_search_finds_the_key_and_improves_one_found_on_less(enciphered: list[int]) -> None:
    names = list(dict.fromkeys(enciphered))
    row = np.array([names.index(symbol) for symbol in enciphered])
    problem = SearchProblem(ENGLISH.ngram("unspaced"), [row], len(names), np.arange(26), {})
    found = find_keys(problem, ENGLISH.ngram("unspaced-short"), QUICK)
    right = np.array([ENGLISH.letters[v] for v in found.key_NS[0]])[row] == list(LETTERS)
    assert right.mean() > 0.98
    spoiled = found.key_NS[:1].copy()
    spoiled[0, :4] = 25
    again = improve(problem, ENGLISH.ngram("unspaced-short"), spoiled)
    np.testing.assert_array_equal(again.key_NS[0], found.key_NS[0])
    assert search.costs(problem, again.key_NS[:1])[0] < search.costs(problem, spoiled)[0]


def test_the_solver_reads_signs_in_lines_and_says_what_it_read(
    enciphered: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homophonic, "FIRST", QUICK)
    signs = "".join(SIGNS[symbol] for symbol in enciphered)
    text = "\n".join(signs[i : i + 17] for i in range(0, len(signs), 17))
    found = Solver(language=ENGLISH).read([text])[0]
    assert (found.verdict.status, found.verdict.kind) == ("read", "homophonic")
    assert found.verdict.parameters == {"symbols": len(set(signs))}
    assert (
        f"A homophonic cipher: {len(set(signs))} symbols for the letters of English" in found.verdict.sentence
    )
    assert found.right > 0.95
    plain = "".join(found.plaintext.split())
    assert np.mean([a == b for a, b in zip(plain, LETTERS, strict=True)]) > 0.98
    assert found.spaced is not None
    assert found.spaced.startswith("the harbour was quiet when the pilot came down to the quay")
    wrong = [sign for sign, a, b in zip(signs, plain, LETTERS, strict=True) if a != b]
    assert all(found.confidence[sign] < 0.9 for sign in wrong)


def test_random_symbols_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homophonic, "FIRST", QUICK)
    symbols = np.random.default_rng(0).integers(10, 60, 150)
    found = Solver(language=ENGLISH).read([" ".join(map(str, symbols))], alphabet="letters")[0]
    assert found.verdict.status == "unread"
    assert max(found.confidence.values()) < 0.5


def test_many_numbers_in_no_order_are_searched_in_no_other_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def quick_nats(problem: SearchProblem) -> float:
        raise AssertionError("nothing is to be found in any language")

    monkeypatch.setattr(homophonic, "FIRST", Stages(Effort(8, 100, 0.4), Effort(8, 100, 0.4)))
    monkeypatch.setattr(homophonic, "quick_nats", quick_nats)
    monkeypatch.setattr("lexinvariant.decipher.solve.bundled_languages", lambda: ["english", "german"])
    numbers = np.random.default_rng(0).integers(10, 50, 1200)
    found = Solver().read([" ".join(map(str, numbers))])[0]
    assert (found.notation, found.verdict.status, found.verdict.kind) == ("numbers", "unread", "random")
    assert "Pairs of neighbours repeat no more than by chance, as in no language." in found.verdict.reasons


def test_homophones_leave_the_order_of_a_language_and_a_shuffle_does_not(enciphered: list[int]) -> None:
    rng = np.random.default_rng(0)
    longer, _ = classical.homophonic(LETTERS * 5, FREQUENCY.tolist(), 60, rng)
    assert not is_unordered(np.array(longer))
    assert is_unordered(rng.permutation(longer))
    assert not is_unordered(rng.permutation(enciphered))  # too short to tell


def test_even_symbols_are_homophones_and_uneven_ones_characters(enciphered: list[int]) -> None:
    homophones = make_puzzle(" ".join(map(str, enciphered)), ENGLISH)
    assert (homophones.kind, homophones.is_homophonic) == ("glyphs", True)
    everything = (
        'I said: "No!" (And he, in 1869, did not reply; \'tis so.) We left - Mr. K. & I - by the 7:40 train?'
    )
    characters = make_puzzle([chr(0x4E00 + ord(c)) for c in everything * 2], ENGLISH)
    assert (characters.kind, characters.is_homophonic) == ("ascii", False)
    few = make_puzzle([str(v) for v in range(26)], ENGLISH)
    assert (few.kind, few.is_homophonic) == ("glyphs", False)


def test_cribs_may_give_a_letter_several_symbols(enciphered: list[int]) -> None:
    puzzle = make_puzzle(" ".join(map(str, enciphered)), ENGLISH)
    known = check_cribs(puzzle, {}, LETTERS[:20])
    assert len(known) > len(set(known.values()))
    with pytest.raises(UserError, match="symbol by symbol"):
        Solver(language=replace(ENGLISH)).read([" ".join(map(str, enciphered))], crib_words=["zeppelin"])
