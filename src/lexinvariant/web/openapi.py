"""The description of the JSON interface (OpenAPI 3.1), made from the types that requests are checked against."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec

import lexinvariant
from lexinvariant.decipher.decipherment import NOT_IN_JSON, Decipherment
from lexinvariant.web.requests import DecipherRequest, EncipherRequest, TraceRequest, WordsRequest


class TraceAnswer(TypedDict):
    """What was known of the key after every symbol."""

    cells: list[str]
    symbol: list[int]
    symbols: list[str]
    characters: list[str]
    lengths: list[int]
    table: str
    n_symbols: int
    note: str | None
    seconds: float


class NamedWord(TypedDict):
    """A made-up word and what it stands for."""

    word: str
    count: int
    name: str
    probability: float
    guesses: dict[str, float]


class WordsAnswer(TypedDict):
    """What the made-up words of a text stand for."""

    plaintext: str
    words: list[NamedWord]
    n_words: int
    n_expected: float
    pieces: list[tuple[str, int]]
    seconds: float


class EncipherAnswer(TypedDict):
    """A ciphertext and its key."""

    ciphertext: str
    key: dict[str, str]
    seed: int


class Example(TypedDict):
    """A text to start with."""

    name: str
    title: str
    about: str
    text: str
    language: str
    alphabet: str
    unspaced: bool
    key: dict[str, str] | None
    focus: str | None
    group: str


class ExamplesAnswer(TypedDict):
    """The page's examples."""

    examples: list[Example]


class HealthAnswer(TypedDict):
    """Status of the server."""

    status: Literal["ready", "warming up"]
    version: str
    model: str
    symbols: int
    context: int
    names_words: bool
    languages: list[str]
    waiting: int


class ErrorAnswer(TypedDict):
    """One sentence that says what is wrong and what to do."""

    error: str


@dataclass(frozen=True)
class Operation:
    """Something that can be asked."""

    path: str
    summary: str
    answer: Any
    request: type[msgspec.Struct] | None = None
    """What a POST has to hold; without it, a GET."""
    may_wait: bool = True
    """Whether the answer is worked out in turn with those of others."""

    @property
    def method(self) -> str:
        return "GET" if self.request is None else "POST"


OPERATIONS = (
    Operation("/api/decipher", "What the text is, and its best reading", Decipherment, DecipherRequest),
    Operation("/api/trace", "What was known of the key after every symbol", TraceAnswer, TraceRequest),
    Operation("/api/words", "What the made-up words of a text stand for", WordsAnswer, WordsRequest),
    Operation(
        "/api/encipher",
        "A text enciphered with a random key",
        EncipherAnswer,
        EncipherRequest,
        may_wait=False,
    ),
    Operation("/api/examples", "Texts to start with", ExamplesAnswer, may_wait=False),
    Operation("/api/health", "Status of the server", HealthAnswer, may_wait=False),
)

ERRORS: Mapping[int, str] = {
    400: "The body is not a JSON object in UTF-8, or the request is not HTTP.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    421: "The request was meant for another host.",
    422: "A field is missing, unknown or wrong, or the text cannot be read.",
    500: "An internal error.",
    503: "Too many questions are waiting, or the server is stopping.",
    504: "The answer took too long.",
}
OF_ALL, OF_BODIES, OF_WAITING = {421, 500}, {400, 408, 413, 415, 422}, {503, 504}
SCHEMAS, RESPONSES = "#/components/schemas", "#/components/responses"


def openapi() -> dict[str, Any]:
    """The whole description, as /openapi.json gives it."""
    kinds = [kind for op in OPERATIONS for kind in (op.request, op.answer) if kind is not None]
    found, schemas = msgspec.json.schema_components([*kinds, ErrorAnswer], ref_template=f"{SCHEMAS}/{{name}}")
    schema_of = dict(zip([*kinds, ErrorAnswer], found, strict=True))
    reading = schemas[Decipherment.__name__]
    for name in NOT_IN_JSON:
        del reading["properties"][name]
    reading["properties"]["note"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}  # `note_on_cribs`
    reading["required"] = list(reading["properties"])
    for schema in schemas.values():
        schema["additionalProperties"] = (
            False  # a field that is mistyped is an error, and answers have no others
        )
    errors = {str(status): _response(about, schema_of[ErrorAnswer]) for status, about in ERRORS.items()}
    wait = {"description": "Seconds after which to ask again.", "schema": {"type": "string"}}
    errors["503"]["headers"] = {"Retry-After": wait}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lexinvariant",
            "version": lexinvariant.__version__,
            "summary": "Deciphers texts, and shows how their keys became known.",
        },
        "paths": {op.path: {op.method.lower(): dict(_operation(op, schema_of))} for op in OPERATIONS},
        "components": {"schemas": schemas, "responses": errors},
    }


def _operation(op: Operation, schema_of: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    yield "operationId", op.path.removeprefix("/api/")
    yield "summary", op.summary
    if op.request is not None:
        yield "requestBody", {"required": True, "content": _json(schema_of[op.request])}
    errors = OF_ALL | (OF_BODIES if op.request else set()) | (OF_WAITING if op.may_wait else set())
    refused = {str(status): {"$ref": f"{RESPONSES}/{status}"} for status in sorted(errors)}
    yield "responses", {"200": _response("The answer.", schema_of[op.answer])} | refused


def _response(about: str, schema: Any) -> dict[str, Any]:
    return {"description": about, "content": _json(schema)}


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
