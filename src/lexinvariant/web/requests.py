"""What may be asked, as types: a request that does not fit them is answered with one sentence about what is wrong."""

import json
import secrets
import unicodedata
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from lexinvariant.decipher.alphabet import Alphabet
from lexinvariant.decipher.cipher import LOWERCASE, PRINTABLE, encipher_letters, random_cipher
from lexinvariant.decipher.language import AUTO
from lexinvariant.decipher.notation import Notation
from lexinvariant.decipher.word_cipher import encipher_words
from lexinvariant.errors import UserError, nearest
from lexinvariant.files import parse_json
from lexinvariant.text.letters import letters_only

Into = Literal["letters", "ascii", "shapes", "words"]
SHAPES = "★☆●○■□▲△▼▽◆◇♠♤♣♧♥♡♦♢☀☁☂☎☯♪"
MAX_ALTERNATIVES = 20
MAX_WORDS, MAX_WORD = 10, 40  # cribs by word, and characters of one
MAX_SEED = 2**53  # beyond it JavaScript's numbers have gaps
MAX_QUOTED = 40  # characters of what is wrong, as it is quoted


class RequestError(Exception):
    """A request that cannot be answered: the status and the sentence that say so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def _one_of(choices: Any) -> Meta:
    return Meta(description=f"one of {', '.join(map(repr, get_args(choices)))}")


# A description completes the sentence "'FIELD' must be ...".
Text = Annotated[str, Meta(description="a string")]
Flag = Annotated[bool, Meta(description="true or false")]
Cribs = Annotated[
    dict[Annotated[str, Meta(min_length=1)], Annotated[str, Meta(min_length=1, max_length=1)]],
    Meta(description='an object that maps each symbol to one character, such as {"X": "e"}'),
]
Words = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=MAX_WORD)]],
    Meta(
        max_length=MAX_WORDS, description=f"a list of up to {MAX_WORDS} words of 1 to {MAX_WORD} characters"
    ),
]
Top = Annotated[
    int, Meta(ge=0, le=MAX_ALTERNATIVES, description=f"a whole number from 0 to {MAX_ALTERNATIVES}")
]
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED, description=f"a whole number from 0 to {MAX_SEED}")]


class CipherRequest(msgspec.Struct, frozen=True):
    """A ciphertext and what is known about it; the fields mean the same as in `lexinvariant decipher`."""

    text: Text
    cribs: Cribs = {}
    crib_text: Text = ""
    alphabet: Annotated[Alphabet, _one_of(Alphabet)] = "auto"
    unspaced: Flag = False
    notation: Annotated[Notation, _one_of(Notation)] = "auto"
    language: Annotated[
        str,
        Meta(pattern="^[a-z]*$", description="'auto' or the name of a language that comes with the package"),
    ] = AUTO

    def __hash__(self) -> int:
        return hash((self.text, *sorted(self.cribs.items())))


class DecipherRequest(CipherRequest, frozen=True):
    """Asks for the verdict and the best reading."""

    crib_words: Words = []
    top: Top = 3


class TraceRequest(CipherRequest, frozen=True):
    """Asks for what was known of the key after every symbol; for the language, `auto` means English here, and `folded`
    its spelling in fewer letters.
    """

    folded: Flag = False


class WordsRequest(msgspec.Struct, frozen=True):
    """Asks what the made-up words of a text stand for; the fields mean the same as in `lexinvariant semantic`."""

    text: Text
    marks_too: Flag = False
    top: Annotated[
        int, Meta(ge=1, le=MAX_ALTERNATIVES, description=f"a whole number from 1 to {MAX_ALTERNATIVES}")
    ] = 5


class EncipherRequest(msgspec.Struct, frozen=True):
    """A text to be enciphered with a random key, or with the key of a given seed."""

    text: Text
    into: Annotated[Into, _one_of(Into)] = "letters"
    seed: Seed = msgspec.field(default_factory=lambda: secrets.randbelow(MAX_SEED))

    def answer(self) -> dict[str, Any]:
        """The ciphertext, and the key from each cipher symbol to what it stands for."""
        if self.into == "words":
            enciphered = encipher_words(self.text, self.seed)
            return {"ciphertext": enciphered.ciphertext, "key": enciphered.key, "seed": self.seed}
        # An accent written as a character of its own would be kept, and tell which letter stands under it.
        plaintext = unicodedata.normalize("NFC", self.text)
        if self.into == "letters":
            written = encipher_letters(self.seed, plaintext)
        elif self.into == "ascii":
            others = sorted(c for c in set(plaintext) - set(PRINTABLE) if c.isprintable())
            cipher = random_cipher(self.seed, alphabet=PRINTABLE + "".join(others))
            written = dict(zip(cipher.alphabet, cipher.written, strict=True))
        else:
            # Signs have no capitals, and beside them a full stop would be one sign more.
            plaintext = letters_only(self.text)
            cipher = random_cipher(self.seed)
            written = {p: SHAPES[LOWERCASE.index(c)] for p, c in zip(LOWERCASE, cipher.written, strict=True)}
        key: dict[str, str] = {}
        for plain, secret in written.items():
            if plain in plaintext:
                key.setdefault(secret, plain)
        ciphertext = "".join(written.get(character, character) for character in plaintext)
        return {"ciphertext": ciphertext, "key": key, "seed": self.seed}


Question = CipherRequest | WordsRequest
"""What the worker is asked."""
Request = TypeVar("Request", bound=msgspec.Struct)


def parse(body: bytes, kind: type[Request]) -> Request:
    """The request that a body in JSON makes."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    values = {}
    for name, value in _json_object(body).items():
        if name not in fields:
            name = name[:MAX_QUOTED]
            raise RequestError(422, f"There is no field {name!r}: did you mean {nearest(name, fields)!r}?")
        try:
            values[name] = msgspec.convert(value, fields[name])
        except msgspec.ValidationError as error:
            *_, meta = get_args(fields[name])
            raise RequestError(422, f"{name!r} must be {meta.description}.") from error
    if "text" not in values:
        raise RequestError(422, "The field 'text' is missing: give the text to be read.")
    return kind(**values)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = parse_json(body.decode("utf-8"), "The body", "")
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(400, f"The body is not UTF-8 (byte {error.start}): send JSON in UTF-8.") from error
    except UnicodeEncodeError as error:  # an escape such as "\ud800" alone
        raise RequestError(422, "A string holds half of a surrogate pair: send whole characters.") from error
    except UserError as error:
        raise RequestError(400, 'The body is not JSON: send an object such as {"text": "..."}.') from error
    if not isinstance(value, dict):
        raise RequestError(400, 'The body is not a JSON object: send one such as {"text": "..."}.')
    return value
