"""`lexinvariant demo`: the main job end to end, small enough for two CPU cores."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro

from lexinvariant import presets
from lexinvariant.text import Corpus, MarkovLanguage, prepare

PAIR = ("a big banana", "e cop cekeke")


@dataclass(frozen=True)
class Arguments:
    """Train a lexinvariant model and a standard one, and look at what they do, in about two minutes."""

    out: Path = Path("demo")
    """Where everything is written; a second call uses what is there."""


def main(argv: list[str]) -> int:
    out = tyro.cli(Arguments, args=argv, prog="lexinvariant demo").out
    from lexinvariant.model.api import load
    from lexinvariant.report.curves import demo_figure
    from lexinvariant.training.loop import train

    print("1. A lexinvariant model learns a language of 12 symbols, renamed at random in every sequence.")
    tiny = train(presets.preset("tiny"), out / "tiny", "tiny")
    lexinvariant = load(tiny.model_folder)

    print("\n2. A standard model learns the Python standard library, character by character.")
    corpus = out / "stdlib"
    if not corpus.exists():
        prepare(["stdlib"], corpus)
    config = presets.as_standard(presets.preset("char-tiny")).changed({"data.path": str(corpus)})
    standard = load(train(config, out / "standard", "standard").model_folder)
    print(f"   It was trained on {Corpus.open(corpus).manifest.tokens('train'):,} characters. A sample:\n")
    print("   " + standard.generate("def ", 200, temperature=0.7).replace("\n", "\n   "))

    print(
        "\n3. To the lexinvariant model, texts that differ only in the names of their symbols are the same text."
    )
    for model, kind in ((lexinvariant, "lexinvariant"), (standard, "standard")):
        first, second = model.score(PAIR, draws=8 if kind == "lexinvariant" else 1)
        same = "equal bit for bit" if np.array_equal(first, second) else "different"
        print(
            f"   {kind:>12}: log p({PAIR[0]!r}) = {first.sum():.4f}, log p({PAIR[1]!r}) = {second.sum():.4f}: {same}"
        )
    prompt = MarkovLanguage().vocab.decode(MarkovLanguage().split("test", 48)[np.array([0])].tok_BT[0])
    renamed = prompt.translate(str.maketrans("abcdefghijkl", "★☆●○■□▲△◆◇♠♣"))
    print(f"   It goes on with  {prompt} -> {lexinvariant.generate(prompt, 24)}")
    print(f"   and just so with {renamed} -> {lexinvariant.generate(renamed, 24)}")

    figure = demo_figure(out)
    print(f"\nThe learning curves are in {figure}.")
    return 0
