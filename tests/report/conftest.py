"""Rows to make pages of: two corpora of the convergence experiment, one of them with a twin."""

from pathlib import Path

import pytest

from tests.results.test_convergence import write


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    write(folder, "prose", 3.3)
    write(folder, "code <&> more", 2.2, baseline=False)
    return folder
