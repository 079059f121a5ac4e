"""Text that was encoded for machines, which hides nothing: Base64, bytes in hexadecimal or binary digits, and the
numbers of characters. It is turned into its characters, which may be a cipher.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Literal

from lexinvariant.errors import UserError

Encoding = Literal["base64", "hex", "binary", "codes"]
LEAST_CHARACTERS = 12
"""So many bytes are text by chance once in 100,000 times, as about 0.4 of them are."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")
_HEX = re.compile(r"(?:(?:0x|\\x|%)?[0-9a-fA-F]{2}[\s:,]*)+")
_BINARY = re.compile(r"(?:[01]{8}\s*)+")
_CODES = re.compile(r"\d{1,7}(?:[\s,;.\-]+\d{1,7})*", re.ASCII)


def detect_encoding(text: str) -> Encoding | None:
    """How a text is encoded, where that is plain to see."""
    for encoding in _DECODERS:
        plain = _decoded(text, encoding)
        if plain is not None and len(plain) >= LEAST_CHARACTERS and _is_plain_to_see(text, encoding, plain):
            return encoding
    return None


def decode(text: str, encoding: Encoding) -> str:
    """The characters of a text that is so encoded."""
    plain = _decoded(text, encoding)
    if plain is None:
        raise UserError(
            f"The text is not encoded in the notation {encoding}: give another one, or auto to detect it."
        )
    return plain


def _is_plain_to_see(text: str, encoding: Encoding, plain: str) -> bool:
    match encoding:
        case "hex":  # digits alone may be letters in pairs (07 23 11), and so may a few letters alone (ADFGX)
            return bool(re.search("[0-9]", text) and re.search("[a-fA-F]", text))
        case (
            "codes"
        ):  # those of symbols may lie in this range, but are then not mostly those of small letters
            return plain.isascii() and sum(c == " " or c.islower() for c in plain) >= 0.6 * len(plain)
        case "base64":  # words, unless they are lines of one length
            lines = text.split()
            return len(set(map(len, lines[:-1]))) <= 1 and len(lines[-1]) <= len(lines[0])
        case "binary":
            return True


def _decoded(text: str, encoding: Encoding) -> str | None:
    try:
        plain = _DECODERS[encoding](text.strip())
    except (ValueError, OverflowError):  # no bytes, or none of UTF-8
        return None
    plain = plain.strip() if plain else ""
    return plain if plain and not any(map(_is_no_text, set(plain))) else None


def _is_no_text(character: str) -> bool:
    """Whether it is a control character, or none at all; joiners and marks that are not seen are text."""
    return unicodedata.category(character) in ("Cc", "Cn", "Co", "Cs") and character not in "\t\r\n"


def _from_binary(text: str) -> str | None:
    if not _BINARY.fullmatch(text):
        return None
    digits = "".join(text.split())
    return bytes(int(digits[i : i + 8], 2) for i in range(0, len(digits), 8)).decode()


def _from_hex(text: str) -> str | None:
    return bytes.fromhex(re.sub(r"0x|[\\x%\s:,]", "", text)).decode() if _HEX.fullmatch(text) else None


def _from_codes(text: str) -> str | None:
    return "".join(chr(int(n)) for n in re.findall(r"\d+", text)) if _CODES.fullmatch(text) else None


def _from_base64(text: str) -> str | None:
    joined = "".join(text.split())
    if not _BASE64.fullmatch(joined):
        return None
    characters = joined.replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(characters + "=" * (-len(characters) % 4), validate=True).decode()


_DECODERS: Mapping[Encoding, Callable[[str], str | None]] = {
    "binary": _from_binary,
    "hex": _from_hex,
    "codes": _from_codes,
    "base64": _from_base64,
}
