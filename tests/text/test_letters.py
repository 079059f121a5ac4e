"""Text folded to letters."""

from pathlib import Path

import pytest

from lexinvariant.errors import UserError
from lexinvariant.text import letters_only, read_documents
from lexinvariant.text.letters import unspaced

TEXT = "  The\tQUICK (brown) fox; 42 naïve é foxes! "


def test_letters_only() -> None:
    assert letters_only(TEXT) == "the quick brown fox na ve foxes"
    assert letters_only("") == ""
    assert unspaced(TEXT) == "thequickbrownfoxnavefoxes"


def test_a_source_can_be_folded(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(TEXT)
    assert [d.text for d in read_documents(f"{file}?fold=letters")] == [letters_only(TEXT)]
    assert [d.text for d in read_documents(f"{file}?fold=unspaced&limit=1")] == [unspaced(TEXT)]
    with pytest.raises(UserError, match="fold=upper: give letters or unspaced"):
        list(read_documents(f"{file}?fold=upper"))
