"""Text that was encoded for machines, which hides nothing: Base64, bytes in hexadecimal or binary digits, and the
numbers of characters. It is turned into its characters, which may be a cipher.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Literal

Encoding = Literal["base64", "hex", "binary", "codes"]
LEAST_CHARACTERS = 12
"""So many bytes are text by chance once in 100,000 times, as about 0.4 of them are."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]+={0,2}\s*")
_HEX = re.compile(r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,]*)+")
_BINARY = re.compile(r"(?:[01]{8}\s*)+")
_CODES = re.compile(r"\s*\d{1,3}(?:[\s,;.\-]+\d{1,3})*\s*", re.ASCII)


def decode(text: str) -> tuple[Encoding, str] | None:
    """How a text is encoded, and its characters; None where it is no text of such an encoding."""
    decoders: dict[Encoding, Callable[[str], bytes | None]] = {
        "binary": _from_binary,
        "hex": _from_hex,
        "codes": _from_codes,
        "base64": _from_base64,
    }
    for encoding, decoder in decoders.items():
        if (data := decoder(text)) is not None and (plain := _as_text(data)) is not None:
            return encoding, plain
    return None


def _as_text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return None
    is_text = len(text) >= LEAST_CHARACTERS and all(c.isprintable() or c in "\t\r\n" for c in text)
    return text if is_text else None


def _from_binary(text: str) -> bytes | None:
    if not _BINARY.fullmatch(text.strip()):
        return None
    digits = "".join(text.split())
    return bytes(int(digits[i : i + 8], 2) for i in range(0, len(digits), 8))


def _from_hex(text: str) -> bytes | None:
    # Digits alone may be letters in pairs (07 23 11), and so may a few letters alone (ADFGX).
    if not _HEX.fullmatch(text.strip()) or not re.search("[0-9]", text) or not re.search("[a-fA-F]", text):
        return None
    return bytes.fromhex(re.sub(r"0x|\\x|[\s:,]", "", text))


def _from_codes(text: str) -> bytes | None:
    if not _CODES.fullmatch(text):
        return None
    codes = [int(number) for number in re.findall(r"\d+", text)]
    # Numbers of symbols may happen to lie in this range, but are then not mostly those of small letters and the space.
    usual = sum(code == 32 or 97 <= code <= 122 for code in codes)
    return bytes(codes) if usual >= 0.6 * len(codes) and max(codes) < 128 else None


def _from_base64(text: str) -> bytes | None:
    if not _BASE64.fullmatch(text.strip()):
        return None
    lines = text.split()
    if len(set(map(len, lines[:-1]))) > 1 or len(lines[-1]) > len(
        lines[0]
    ):  # words, and no lines of one length
        return None
    characters = "".join(lines).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(characters + "=" * (-len(characters) % 4), validate=True)
    except binascii.Error:
        return None
