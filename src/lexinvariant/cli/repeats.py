"""Options that take a list, given twice: of the first list nothing would be left."""

from collections import Counter
from collections.abc import Sequence

from lexinvariant.errors import UserError


def check_given_once(argv: Sequence[str], *options: str) -> None:
    count = Counter(word.partition("=")[0].replace("_", "-") for word in argv)
    for option in options:
        if count[option] > 1:
            raise UserError(
                f"{option} is given {count[option]} times: give all of its values after one of them."
            )
