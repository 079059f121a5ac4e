"""Kinds of text. A document's source is written `tag:name`; what stands before the first colon is its tag.

A tag is chosen by the beginning of a source, in whole words: `code` chooses code-c and code-rust, `log:loghub` the
documents log:loghub/... alone. Text whose words were made symbols (`word_symbols.py`) is words:TAG:NAME; it has the tag
`words` and is chosen by the tag of its text too.
"""

from collections.abc import Iterable, Iterator, Sequence

from lexinvariant.errors import UserError
from lexinvariant.text.formats import Document

WORDS = "words"


def tag_of(source: str) -> str:
    return source.partition(":")[0]


def text_of(source: str) -> str:
    """The source of the text that a document was made from: its own, unless its words were made symbols."""
    return source.removeprefix(f"{WORDS}:")


def has_tag(source: str, tag: str) -> bool:
    """Whether a source, or that of the text it was made from, begins with the tag, in whole words."""
    return any(
        name.startswith(tag) and not name[len(tag) : len(tag) + 1].isalnum()
        for name in (source, text_of(source))
    )


class TagFilter:
    """Lets documents with some tags through; remembers what occurred, so that a misspelt tag does not go unnoticed."""

    def __init__(self, wanted: Sequence[str] = (), excluded: Sequence[str] = ()) -> None:
        if "" in (*wanted, *excluded):
            raise UserError("a tag has no name: give tags such as wiki, code or log:loghub")
        self._wanted, self._excluded = tuple(wanted), tuple(excluded)
        self._unused = {*wanted, *excluded}
        self._seen: set[str] = set()
        self._has_passed = False

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        return filter(self._passes, documents) if self._wanted or self._excluded else iter(documents)

    def _passes(self, document: Document) -> bool:
        source = document.source
        self._seen.add(tag_of(source))
        self._unused -= {tag for tag in self._unused if has_tag(source, tag)}
        wanted = not self._wanted or any(has_tag(source, tag) for tag in self._wanted)
        passes = wanted and not any(has_tag(source, tag) for tag in self._excluded)
        self._has_passed |= passes
        return passes

    def check_all_used(self) -> None:
        """To be called when everything has been read."""
        if self._unused:
            raise UserError(
                f"no document has the tag {min(self._unused)!r}: the tags of these sources are "
                f"{', '.join(sorted(self._seen))}; leave it out or name one of these"
            )
        if self._seen and not self._has_passed:
            raise UserError(
                f"the tags leave no document: those of these sources are {', '.join(sorted(self._seen))}; keep or "
                "leave out others"
            )


def parse_weights(written: str) -> dict[str, float]:
    """`code=2,maths=1.5` as a table."""
    weights: dict[str, float] = {}
    for part in written.split(","):
        tag, equals, number = part.strip().partition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if not (tag and equals and 0.0 <= weight <= 1000.0):
            raise UserError(
                f"the weight {part.strip()!r} is not TAG=NUMBER with a number from 0 to 1000: write weights such as "
                "code=2,maths=1.5"
            )
        if weights.setdefault(tag, weight) != weight:
            raise UserError(
                f"the tag {tag!r} has the weights {weights[tag]:g} and {weight:g}: give one of them"
            )
    return weights


def weigh(tags: Iterable[str], weights: dict[str, float], where: str) -> dict[str, float]:
    """The weight of every tag that occurs: by the longest name that chooses it, and 1 without any."""
    tags = list(tags)
    for name in weights:
        if not any(has_tag(tag, name) for tag in tags):
            raise UserError(
                f"there is a weight for {name!r}, but the tags of {where} are {', '.join(tags)}: "
                "leave it out or name one of these"
            )
    weighed = {}
    for tag in tags:
        chosen_by = [name for name in weights if has_tag(tag, name)]
        weighed[tag] = weights[max(chosen_by, key=len)] if chosen_by else 1.0
    if not any(weighed.values()):
        raise UserError(f"all tags of {where} have the weight 0: leave at least one to train on")
    return weighed
