"""Solvers of ciphers side by side: the measures against oracles, and what is written and shown."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lexinvariant.decipher.kind_samples import Cipher
from lexinvariant.decipher.language import load_language
from lexinvariant.decipher.samples import Sample
from lexinvariant.decipher.solve import Solver
from lexinvariant.errors import UserError
from lexinvariant.experiments.decipher import (
    Options,
    error_rate,
    interval,
    key_accuracy,
    occurrences_right,
    reliability,
)
from lexinvariant.experiments.registry import find_experiment, read_all_rows
from lexinvariant.report.draw import save
from lexinvariant.results.cipher_kinds import KindSolver, KindVerdicts
from lexinvariant.results.decipher import Batch, Fresh, PublishedCipher, Reliability, SolverErrors
from lexinvariant.results.rows import Row, Rows

TEXT = (
    "When the old keeper of the lighthouse heard the storm coming over the water he climbed the stairs with his lamp "
    "and his book and sat down to wait for the ships that would need him before the morning but none of them came "
    "and so he read about the quiet king and the lazy fox until the wind was still and the sun stood over the sea "
)


def run(options: Options, **rest: Any) -> list[Row]:
    return find_experiment("decipher").run(options, **rest)


def test_measures_count_what_they_say() -> None:
    assert error_rate("a bad", "a bed", "spaced") == 1 / 4
    assert error_rate("a bad", "a bed", "ascii") == 1 / 5
    assert key_accuracy("abca", "xbcx", "unspaced") == 2 / 3
    assert error_rate("abc", "abc", "unspaced") == 0
    low, high = interval([0.0, 1.0] * 50)
    assert low < 0.42 < 0.58 < high
    assert interval([0.3] * 9) == pytest.approx((0.3, 0.3))


def test_reliability_counts_by_bin() -> None:
    row = reliability("spaced", 100, [0.05, 0.93, 0.94, 1.0], [False, True, False, True], [1, 2, 3, 4])
    assert row.symbols == [1, 0, 0, 0, 0, 2, 0, 1]
    assert row.symbols_right == [0, 0, 0, 0, 0, 1, 0, 1]
    assert row.occurrences_right == [0, 0, 0, 0, 0, 2, 0, 4]
    assert row.sure[5] == pytest.approx(1.87)


def test_a_symbol_is_right_if_it_is_wherever_it_stands_with_an_accent_or_without() -> None:
    """In a spelling without accents è and é are the symbol e, which no character of the ciphertext may be."""
    found = Solver(language=load_language("french")).read(["xyz"], top=0)[0]
    symbol_of = {"è": "e", "é": "e", "b": "b"}
    found = replace(found, plaintext="uubu", confidence={"e": 0.9, "b": 0.8}, symbol_of=symbol_of)
    assert occurrences_right(Sample("uvbu", "èéb?"), found) == {"e": [True, False], "b": [True]}


def test_every_solver_reads_the_same_texts_and_the_section_is_drawn_from_it(tmp_path: Path) -> None:
    source = tmp_path / "test.txt"
    source.write_text(TEXT * 3)
    said: list[str] = []
    options = Options(
        data_text=str(source),
        out=tmp_path,
        lengths=(220,),
        settings=("spaced",),
        texts=2,
        peers=("annealer",),
        peer_texts=1,
        batch=2,
        fresh=1,
        annealer_swaps=500,
    )
    rows = run(options, command="the command", log=said.append)
    assert list(read_all_rows(tmp_path)) == rows
    ours, sure, plain, batch, fresh = rows
    assert (
        isinstance(ours, SolverErrors) and isinstance(sure, Reliability) and isinstance(plain, SolverErrors)
    )
    assert isinstance(batch, Batch) and isinstance(fresh, Fresh)
    assert (ours.solver, ours.n, plain.solver, plain.n) == ("lexinvariant", 2, "annealer", 1)
    assert ours.error < 0.02
    assert ours.origin.command == "the command"
    assert ours.origin.data_hash
    assert ours.origin.model_hash
    assert sum(sure.symbols) > 2 * 15
    assert batch.n == 2
    assert 0.2 < fresh.median_seconds < 60
    assert any("annealer" in line for line in said)

    part = find_experiment("decipher").section(Rows(rows))
    assert part is not None
    assert any("220" in cell for row in part.tables[0].rows for cell in row)
    assert "2 texts of 200 symbols" in " ".join(part.paragraphs)
    saved = [save(figure, tmp_path / "figures") for figure in part.figures]
    assert [s.png.name for s in saved] == ["decipher-errors.png", "decipher-reliability.png"]


def test_an_unknown_peer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no solver called 'nobody'"):
        run(Options(data_text="stdlib:prose", out=tmp_path, peers=("nobody",)))


def test_homophones_and_published_ciphers_are_read_beside_the_annealer(tmp_path: Path) -> None:
    letters = "".join(TEXT.lower().split())
    caesar = "".join(chr((ord(c) - 97 + 3) % 26 + 97) for c in letters)
    rows_of_17 = [[text[i : i + 17] for i in range(0, 153, 17)] for text in (caesar, letters[:150] + "xyz")]
    (tmp_path / "old.txt").write_text("\n\n".join("\n".join(lines) for lines in rows_of_17) + "\n")
    (tmp_path / "test.txt").write_text(TEXT * 2)
    options = Options(
        data_text=str(tmp_path / "test.txt"), out=tmp_path, settings=("homophonic",), homophonic_lengths=(330,),
        texts=1, peers=("annealer",), annealer_swaps=20, published=(str(tmp_path / "old.txt"),), published_letters=150,
    )  # fmt: skip
    rows = run(options, command="the command", log=lambda line: None)
    ours, _, plain, *published = rows
    assert isinstance(ours, SolverErrors) and isinstance(plain, SolverErrors)
    assert (ours.setting, ours.length, ours.solver, plain.solver) == (
        "homophonic",
        330,
        "lexinvariant",
        "annealer",
    )
    assert ours.error < 0.05 < plain.error
    assert [row for row in published if isinstance(row, PublishedCipher)] == published
    old = published[0]
    assert isinstance(old, PublishedCipher)
    assert (old.file, old.solver, old.letters, old.right) == ("old.txt", "lexinvariant", 150, 1.0)
    assert old.symbols == len(set(caesar[:153]))

    part = find_experiment("decipher").section(Rows(rows))
    assert part is not None
    solvers, table = part.tables
    assert [row[1] for row in solvers.rows] == ["lexinvariant (ours)", "plain annealer, same n-gram"]
    assert table.rows[0][:5] == ("old.txt", "lexinvariant (ours)", str(old.symbols), "150", "100.0%")


def test_a_file_that_is_no_published_cipher_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "old.txt"
    file.write_text("abc\n\nab\n")
    options = Options(data_text=str(file), out=tmp_path, settings=(), published=(str(file),))
    with pytest.raises(
        UserError, match=r"old\.txt is not a published cipher: give a ciphertext, an empty line"
    ):
        run(options)


def test_verdicts_on_kinds_of_ciphers_are_counted_and_shown(tmp_path: Path) -> None:
    for name, text in (
        ("test", TEXT * 4),
        ("foreign", "und der alte mann ging mit seiner lampe in das haus " * 20),
    ):
        (tmp_path / f"{name}.txt").write_text(text)
    ciphers: tuple[Cipher, ...] = ("caesar", "plain", "random", "other-language", "vigenere")
    options = Options(
        data_text=str(tmp_path / "test.txt"),
        out=tmp_path,
        settings=(),
        peers=("annealer",),
        peer_texts=1,
        kinds=1,
        ciphers=ciphers,
        kind_lengths=(150,),
        foreign=(str(tmp_path / "foreign.txt"),),
    )
    written = run(options, command="the command", log=lambda line: None)
    rows = [row for row in written if isinstance(row, KindVerdicts)]
    assert [row.cipher for row in rows] == list(ciphers)
    caesar, plain, random, _, vigenere = rows
    assert (caesar.read, caesar.named, caesar.unread, caesar.right) == (1, 1, 0, 1.0)
    assert (plain.read, plain.named, plain.certain_right) == (1, 1, 1.0)
    assert (random.read, random.right, random.certain()) == (0, 0.0, (0, 0))
    assert random.certain_right is None
    assert sum(caesar.symbols) == 150
    assert (vigenere.read, vigenere.named, vigenere.right) == (1, 1, 1.0)
    solvers = [row for row in written if isinstance(row, KindSolver)]
    assert [(row.cipher, row.solver, row.n, row.right) for row in solvers] == [
        ("vigenere", "lexinvariant", 1, [1.0]),
        ("vigenere", "plain hill climber", 1, [1.0]),
    ]

    part = find_experiment("decipher").section(Rows([*rows, *solvers]))
    assert part is not None
    table, beside = part.tables
    assert beside.rows[1][:5] == ("vigenere", "plain hill climber", "1", "1", "100.0%")
    assert table.rows[0][:5] == ("caesar", "1", "1", "0", "0")
    assert table.rows[2][9] == "none given"
    assert [save(figure, tmp_path / "figures").png.name for figure in part.figures] == ["decipher-kinds.png"]


def test_what_measures_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("some English text. " * 100)
    for nothing in ({"settings": ()}, {"settings": ("spaced",), "lengths": ()}):
        with pytest.raises(UserError, match="There is nothing to measure: give --settings"):
            run(Options(data_text=str(tmp_path / "text.txt"), out=tmp_path / "rows", peers=(), **nothing))
    assert not (tmp_path / "rows" / "decipher.jsonl").exists()
