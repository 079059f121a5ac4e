"""The server against requests that its own description allows, and against those that it does not: schemathesis makes
both, and checks that every answer is one that the description promises.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import given, settings
from schemathesis.checks import positive_data_acceptance
from schemathesis.generation import GenerationMode

from lexinvariant.web.app import Limits
from lexinvariant.web.openapi import OPERATIONS, Operation, openapi
from tests.fuzz.conftest import MORE
from tests.web.conftest import serve

fuzz = settings.get_profile("fuzz")
LONGEST_ANSWER = 60.0  # seconds after which we call it hanging
DESCRIBED = schemathesis.openapi.from_dict(openapi())


@pytest.fixture(scope="module")
def url(tiny_model: Path, word_model: Path) -> Iterator[str]:
    with serve(tiny_model, Limits(), word_model=word_model) as site:
        yield site.url


# Nothing can be wrong with a question that has no fields.
CASES = [(op, mode) for op in OPERATIONS for mode in GenerationMode if op.request or mode.value == "positive"]


@pytest.mark.parametrize(("operation", "mode"), CASES, ids=[f"{op.path}-{mode.value}" for op, mode in CASES])
def test_answers_are_as_described(url: str, operation: Operation, mode: GenerationMode) -> None:
    described = DESCRIBED[operation.path][operation.method]
    with requests.Session() as session:

        @settings(fuzz, max_examples=MORE // 10 or 5)
        @given(case=described.as_strategy(generation_mode=mode))
        def ask(case: schemathesis.Case) -> None:
            # A text may be a string and yet have nothing to read in it.
            case.call_and_validate(
                url, session, excluded_checks=[positive_data_acceptance], timeout=LONGEST_ANSWER
            )

        ask()
