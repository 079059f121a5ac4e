"""Texts that are one click away: messages of our own, and the paper's examples."""

from typing import Any

import numpy as np

from lexinvariant.decipher.cipher import LOWERCASE, random_cipher
from lexinvariant.decipher.classical import affine, columnar, homophonic, polyalphabetic
from lexinvariant.decipher.language import load_language
from lexinvariant.results.paper_texts import PAPER_TEXTS, SYMBOL
from lexinvariant.text.letters import letters_only, unspaced
from lexinvariant.web.requests import EncipherRequest

MESSAGE = (
    "Meet me by the old stone bridge when the clock in the tower strikes nine. Bring the map, the lantern and a little "
    "bread, and tell nobody where you are going. If the gate is locked, follow the river until you see three white "
    "birches; the path behind them leads to the garden. Burn this letter once you have read it."
)

NOTE = (
    "The keeper of the lighthouse has gone to the mainland and will not return before the storm is over. Row out at "
    "dusk, when the tide is low, and land on the northern side, where the rocks hide a boat from the village. The "
    "chest is under the stairs."
)

STORY = (
    "The old man and the boy lived in a house on the hill, and from the window of the house they could see the sea. In "
    "the morning the boy went down to the water and looked for wood, and in the evening he came back to the house with "
    "all the wood that he had found. The old man made a fire of it, and they sat by the fire and talked of the day.\n"
    "One day the boy found a box in the sand. It was a small box, and there was no key to it. He took the box to the "
    "house and put it on the table. What is in the box? said the boy. I do not know, said the old man, but it has come "
    "to us from the sea, and what comes from the sea is not ours. We will keep it in the house, and if they come for "
    "it we will give it back to them.\n"
    "So the box was in the house for a year, and no one came for it. In the night the boy looked at the box and "
    "thought of what was in it. There was a letter in it, he thought, or a map of the land on the other side of the "
    "sea. But he did not open it, for the old man had said that it was not theirs, and the boy did as the old man said."
)

GERMAN = (
    "Komm morgen früh zur alten Mühle am Fluss, bevor die Händler ihre Stände öffnen. Der Müller weiß nichts von uns, "
    "also grüße ihn nur und geh weiter bis zur Brücke. Unter dem dritten Pfeiler liegt der Schlüssel in einem Glas, "
    "und wer ihn findet, für den wird das Tor zum Garten heute Nacht nicht verschlossen sein."
)

PAPER_TITLES = {
    "bat": ("Joe's zat", "z is b here; h, c and m also fit for a while."),
    "rat": ("A zat in the pazk", "z is r here; it looks like c until “zight”."),
    "Java": ("Java or Python?", "z is { here; only the syntax tells it from a colon."),
    "Python": ("Python or Java?", "z is : here; only the syntax tells it from a brace."),
}


def examples() -> list[dict[str, Any]]:
    """Each with a title, a sentence, the text, its language, how it is enciphered, and the symbol to look at."""
    letters, shapes = (EncipherRequest(MESSAGE, into, seed=7).answer() for into in ("letters", "shapes"))
    together = EncipherRequest(unspaced(NOTE), "letters", seed=8).answer()
    in_order = {letter: str(number) for number, letter in enumerate(LOWERCASE, start=1)}
    numbered = " / ".join("-".join(map(in_order.__getitem__, word)) for word in letters_only(NOTE).split())
    english, german = load_language(), load_language("german")
    homophones, _ = homophonic(
        unspaced(MESSAGE), english.letter_frequencies.tolist(), 40, np.random.default_rng(7)
    )
    in_german = random_cipher(9, alphabet=german.letters).encipher(german.letters_only(GERMAN))
    ours = [
        _example(
            "message",
            "A secret letter",
            "Every letter replaced by another.",
            letters["ciphertext"],
            key=letters["key"],
        ),
        _example(
            "shapes", "The same in shapes", "Any symbols will do.", shapes["ciphertext"], key=shapes["key"]
        ),
        _example(
            "together",
            "Without spaces",
            "Nothing shows where words end.",
            together["ciphertext"],
            key=together["key"],
            unspaced=True,
        ),
        _example(
            "caesar",
            "Caesar's way",
            "Every letter shifted by the same amount.",
            affine(letters_only(MESSAGE), 1, 3),
        ),
        _example("numbers", "In numbers", "A number for each letter.", numbered),
        _example(
            "vigenere",
            "Vigenere's way",
            "Several alphabets in turn, set by a key word.",
            polyalphabetic(letters_only(MESSAGE), [11, 0, 13, 19, 4, 17, 13], "vigenere"),
        ),
        _example(
            "columns",
            "In columns",
            "The same letters, in another order.",
            columnar(unspaced(NOTE), [3, 0, 5, 2, 6, 1, 4]),
        ),
        _example(
            "homophones",
            "With homophones",
            "Common letters have several numbers.",
            " ".join(str(10 + symbol) for symbol in homophones),
        ),
        _example(
            "german",
            "In German",
            "The language is worked out too.",
            in_german,
            language="german",
        ),
    ]
    paper = [
        _example(
            paper.name.lower(),
            *PAPER_TITLES[paper.name],
            paper.text,
            alphabet="ascii",
            focus=SYMBOL,
            group="paper",
        )
        for paper in PAPER_TEXTS
    ]
    return ours + paper


def word_example() -> dict[str, Any]:
    """For a server whose model names words."""
    made_up = EncipherRequest(STORY, "words", seed=7).answer()
    return _example(
        "words",
        "A tale in made-up words",
        "Every word replaced by a made-up one.",
        made_up["ciphertext"],
        key=made_up["key"],
        group="words",
    )


def _example(name: str, title: str, about: str, text: str, **rest: Any) -> dict[str, Any]:
    usual = {
        "alphabet": "auto",
        "language": "english",
        "unspaced": False,
        "focus": None,
        "group": "ours",
        "key": None,
    }
    return {"name": name, "title": title, "about": about, "text": text, **usual, **rest}
