"""What may be asked, checked field by field: an answer to a wrong question is one sentence about what is wrong."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lexinvariant.decipher.alphabet import Alphabet, split_symbols
from lexinvariant.decipher.cipher import LOWERCASE, PRINTABLE, random_cipher
from lexinvariant.errors import nearest
from lexinvariant.text.letters import letters_only

Into = Literal["letters", "ascii", "shapes"]
SHAPES = "★☆●○■□▲△▼▽◆◇♠♤♣♧♥♡♦♢☀☁☂☎☯♪"
MOST_ALTERNATIVES = 20
LONGEST_NAME = 40  # of what is wrong, as it is quoted


class RequestError(Exception):
    """A request that cannot be answered: the status and the sentence that say so."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Question:
    """A text to be read; the fields mean what `lexinvariant decipher` means by them."""

    text: str
    cribs: tuple[tuple[str, str], ...] = ()
    crib_text: str | None = None
    alphabet: Alphabet = "auto"
    unspaced: bool = False
    tokens: bool = False

    @property
    def symbols(self) -> str | list[str]:
        return split_symbols(self.text, self.tokens)


@dataclass(frozen=True)
class Decipher(Question):
    """Asks for the best reading."""

    top: int = 3


@dataclass(frozen=True)
class TraceRequest(Question):
    """Asks for what was known of the key after every symbol."""


@dataclass(frozen=True)
class Encipher:
    """A text to be enciphered with a random key, or with the one that a seed names."""

    text: str
    into: Into = "letters"
    seed: int = 0

    def answer(self) -> dict[str, Any]:
        """The ciphertext, and the key from each cipher symbol to what it stands for."""
        cipher = random_cipher(self.seed, alphabet=PRINTABLE if self.into == "ascii" else LOWERCASE)
        written = dict(zip(cipher.alphabet, cipher.written, strict=True))
        plaintext = self.text
        if self.into == "letters":
            written |= {plain.upper(): secret.upper() for plain, secret in written.items()}
        elif self.into == "shapes":
            # Signs have no capitals, and beside them a full stop would be one sign more.
            plaintext = letters_only(self.text)
            written = {plain: SHAPES[LOWERCASE.index(secret)] for plain, secret in written.items()}
        return {
            "ciphertext": "".join(written.get(character, character) for character in plaintext),
            "key": {secret: plain for plain, secret in written.items() if plain in plaintext},
            "seed": self.seed,
        }


def parse_json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestError(400, f"The body is not UTF-8 (byte {error.start}): send JSON in UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise RequestError(400, 'The body is not JSON: send an object such as {"text": "..."}.') from error
    if not isinstance(value, dict):
        raise RequestError(400, 'The body is not a JSON object: send one such as {"text": "..."}.')
    return value


def checked(body: Mapping[str, Any], known: Mapping[str, Callable[[str, Any], Any]]) -> dict[str, Any]:
    """The fields, each through its check; `text` must be there."""
    for name in body:
        if name not in known:
            name = name[:LONGEST_NAME]
            raise RequestError(422, f"There is no field {name!r}: did you mean {nearest(name, known)!r}?")
    if "text" not in body:
        raise RequestError(422, "The field 'text' is missing: give the text to be read.")
    return {name: known[name](name, value) for name, value in body.items()}


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise RequestError(422, f"{name!r} must be a string.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RequestError(422, f"{name!r} holds half of a surrogate pair: send whole characters.") from error
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RequestError(422, f"{name!r} must be true or false.")
    return value


def cribs(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(plain, str) for plain in value.values()):
        raise RequestError(
            422, f'{name!r} must be an object from cipher symbols to characters, such as {{"X": "e"}}.'
        )
    for symbol, plain in value.items():
        if text(name, symbol) == "" or len(text(name, plain)) != 1:
            raise RequestError(
                422,
                f"{name!r} must map each symbol to one character, not {symbol[:LONGEST_NAME]!r} to "
                f"{plain[:LONGEST_NAME]!r}.",
            )
    return tuple(sorted(value.items()))


def whole_number(low: int, high: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise RequestError(422, f"{name!r} must be a whole number from {low} to {high}.")
        return value

    return check


def one_of(choices: Any) -> Callable[[str, Any], str]:
    names = get_args(choices)

    def check(name: str, value: Any) -> str:
        if value not in names:
            raise RequestError(422, f"{name!r} must be one of {', '.join(map(repr, names))}.")
        return value

    return check


_READING = {
    "text": text,
    "cribs": cribs,
    "crib_text": text,
    "alphabet": one_of(Alphabet),
    "unspaced": flag,
    "tokens": flag,
}


def decipher_request(body: Mapping[str, Any]) -> Decipher:
    return Decipher(**checked(body, {**_READING, "top": whole_number(0, MOST_ALTERNATIVES)}))


def trace_request(body: Mapping[str, Any]) -> TraceRequest:
    return TraceRequest(**checked(body, _READING))


def encipher_request(body: Mapping[str, Any], fresh_seed: int) -> Encipher:
    known = {"text": text, "into": one_of(Into), "seed": whole_number(0, 2**53)}
    return Encipher(**{"seed": fresh_seed, **checked(body, known)})
