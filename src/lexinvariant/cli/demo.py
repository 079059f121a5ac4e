"""`lexinvariant demo`: the main job end to end, small enough for two CPU cores."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from lexinvariant import presets
from lexinvariant.cli import decipher
from lexinvariant.cli.terminal import plain_console
from lexinvariant.config import TrainConfig
from lexinvariant.files import check_can_fill
from lexinvariant.text import Corpus, Manifest, MarkovLanguage, prepare

CIPHERTEXT = (
    "Z rtacotr ay rth dhj jd j ijln jqi hqixhdd laji rtjr uh tji rjnhq uzrtacr jdnzqo uthlh zr "
    "uacxi xhji, jqi rth uzqi ujd acl aqxe oczih rtlacot rth waxi qzotr."
)
SAMPLE = ("def ", 120)  # a prompt and how many characters follow: within the standard model's context
PAIR = ("a big banana", "e cop cekeke")
# Of the standard library, of which the bundled model has read nothing: a few files would say little.
HELD_OUT = 0.15


@dataclass(frozen=True)
class Arguments:
    """Decipher a text with the bundled model, train a small lexinvariant and a small standard model, and run the
    paper's measurements on the bundled one: about two minutes on two cores.

    example: lexinvariant demo --out demo
    """

    out: Path = Path("demo")
    """Where everything is written; a second call reuses what is there."""


def told_of_training(config: TrainConfig, manifest: Manifest) -> str:
    read = config.steps * config.tokens_per_step
    return f"It was trained on {read:,} of its {manifest.tokens('train'):,} characters."


def main(argv: list[str]) -> int:
    out = tyro.cli(Arguments, args=argv, prog="lexinvariant demo").out
    check_can_fill(out)
    from lexinvariant.api import load
    from lexinvariant.decipher.solve import Solver
    from lexinvariant.experiments.registry import Pair
    from lexinvariant.experiments.reproduce import run_all
    from lexinvariant.report.curves import demo_figure
    from lexinvariant.report.page import write_report
    from lexinvariant.training.loop import train

    print(f"1. A substitution cipher, read:\n\n{CIPHERTEXT}\n")
    found = Solver().read([CIPHERTEXT], top=0)[0]
    decipher.show(found, plain_console())

    print("\n2. A lexinvariant model learns a language of 12 symbols, renamed at random in every sequence.")
    tiny = load(train(presets.preset("tiny"), out / "tiny", "tiny").model_folder)

    print("\n3. A standard model learns the Python standard library, character by character.")
    corpus = out / "stdlib"
    if not corpus.exists():
        prepare(["stdlib"], corpus, test_fraction=HELD_OUT)
    short = {"data.path": str(corpus), "steps": 200}
    config = presets.as_standard(presets.preset("char-tiny")).changed(short)
    standard = load(train(config, out / "standard", "standard").model_folder)
    print(f"   {told_of_training(config, Corpus.open(corpus).manifest)} A sample:\n")
    sample = SAMPLE[0] + standard.generate(*SAMPLE, temperature=0.7)
    print("   " + sample.replace("\n", "\n   "))

    print(
        "\n4. To a lexinvariant model, texts that differ only in the names of their symbols are the same text."
    )
    for model, kind in ((tiny, "lexinvariant"), (standard, "standard")):
        first, second = model.score(PAIR, draws=8 if kind == "lexinvariant" else 1)
        same = "equal bit for bit" if np.array_equal(first, second) else "different"
        print(
            f"   {kind:>12}: log p({PAIR[0]!r}) = {first.sum():.4f}, log p({PAIR[1]!r}) = {second.sum():.4f}: {same}"
        )
    prompt = MarkovLanguage().vocab.decode(MarkovLanguage().split("test", 48)[np.array([0])].tok_BT[0])
    renamed = prompt.translate(str.maketrans("abcdefghijkl", "★☆●○■□▲△◆◇♠♣"))
    print(f"   It continues     {prompt} -> {tiny.generate(prompt, 24)}")
    print(f"   and likewise     {renamed} -> {tiny.generate(renamed, 24)}")
    print("   (A symbol that has not occurred before has no name of its own, and gets any free one.)")

    print(
        "\n5. The paper's experiments on the bundled model, with Python's own source as text, at small sizes."
    )
    report = out / "report"
    pair = Pair(model="bundled", data=str(corpus), out=report, quick=True)
    run_all(pair, lambda line: print(f"   {line}", flush=True))

    print(f"\nThe learning curves are in {demo_figure(out)}.")
    print(f"The report is {write_report(report)}: open it in a browser.")
    return 0
