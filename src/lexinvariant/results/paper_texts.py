"""The four ciphered texts of the paper's section "Uncertainty over Lexical Permutations", word for word.

Source: Lexinvariant Language Models, the figure's four panels; the code stands in the appendix "Code Deciphering Full
Examples". In each one `z` replaces another character throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

SYMBOL = "z"


@dataclass(frozen=True)
class PaperText:
    """A text in which one symbol is to be deciphered."""

    name: str
    text: str
    truth: str
    """What the symbol stands for."""
    temperature: float
    """Of the softmax, in the paper's panel."""
    paper_says: str
    """What the paper reports of its own model."""


BAT = (
    "I saw lots of people in town today, walking and talking around me. I greeted my friend Alice and my classmate "
    "Alex. I saw a guy, Joe, walking outside carrying a zat. Joe's zat was taken off zy wind. Today's wind was strong, "
    "so Joe's zat flew zackward. Joe lost Joe's zat for good. Joe will miss Joe's zat."
)
RAT = (
    "I saw a man in the pazk with a zat. The man was walking with the zat zight beside him. I've nevez seen anything "
    "like that befoze."
)
JAVA = """\
binary_search()z
  if (high >= low)z
    mid = (high + low) / 2;
    if (arr[mid] == x)
      return mid;
    if (arr[mid] > x)z
      high = mid - 1;
      return binary_search();
    } elsez
      low = mid + 1;
      return binary_search();
    }
  } elsez
    return -1;
  }
}
void func2()z"""
# Two lines end in a space in the paper; a string in parts keeps them where editors cut such spaces off.
PYTHON = (
    "binary_search()z\n"
    "  if (high >= low)z\n"
    "    mid = (high + low) // 2\n"
    "    if (arr[mid] == x)z\n"
    "      return mid\n"
    "    if (arr[mid] > x)z\n"
    "      high = mid - 1 \n"
    "      return binary_search() \n"
    "    elsez\n"
    "      low = mid + 1\n"
    "      return binary_search()\n"
    "  elsez\n"
    "      return -1\n"
    "def func2()z"
)

PAPER_TEXTS = (
    PaperText("bat", BAT, "b", 1.0, "b, h, c or m at first, b near the end"),
    PaperText("rat", RAT, "r", 1.0, 'c at first, r after "right"'),
    PaperText("Java", JAVA, "{", 2.0, ": or { at first, { after Java-like syntax"),
    PaperText("Python", PYTHON, ":", 3.0, ": or { at first, : after Python-like syntax"),
)
