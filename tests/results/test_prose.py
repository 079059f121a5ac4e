"""The words of sections."""

from pathlib import Path

import jinja2
import pytest

from lexinvariant.results import prose
from lexinvariant.results.prose import Prose, listed

TEXT = """
{% block paragraphs %}
one
two {{ n | number(".1%") }}

{% if no %}
no
{% endif %}

last
{% endblock %}
{% block caption %}
what <{{ it }}>
is
{% endblock %}
"""


def test_blocks_are_filled_in_and_what_is_missing_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.md").write_text(TEXT)
    environment = prose._environment().overlay(loader=jinja2.FileSystemLoader(tmp_path))
    monkeypatch.setattr(prose, "_environment", lambda: environment)
    words = Prose("some")
    assert words.paragraphs(n=0.125, no=False) == ["one two 12.5%", "last"]
    assert words.paragraphs(n=1, no=True) == ["one two 100.0%", "no", "last"]
    assert words("caption", it="it") == "what <it> is"
    with pytest.raises(jinja2.UndefinedError, match="'it' is undefined"):
        words("caption")


def test_values_are_listed_once_and_in_order() -> None:
    assert listed([3, 1, 3]) == "1 or 3"
    assert listed(("b", "a"), " and ") == "a and b"
