"""The description of the interface is of this interface; tests/fuzz/test_api.py asks the server for all of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import msgspec
import pytest
from starlette.routing import Mount, Route

from lexinvariant.web.app import create_app
from lexinvariant.web.openapi import OPERATIONS, openapi

if TYPE_CHECKING:
    from tests.web.conftest import Site


def test_it_is_served(site: Site) -> None:
    assert site.get("/openapi.json").json == json.loads(json.dumps(openapi()))


def test_every_route_is_described() -> None:
    app: Any = create_app(None)  # type: ignore[arg-type]
    [interface] = [route for route in app.app.routes if isinstance(route, Mount) and route.path == "/api"]
    routes = {
        f"/api{route.path}": route.methods - {"HEAD"}
        for route in interface.routes
        if isinstance(route, Route)
    }
    assert routes == {op.path: {op.method} for op in OPERATIONS}


@pytest.mark.parametrize("operation", [op for op in OPERATIONS if op.request], ids=lambda op: op.path)
def test_fields_are_those_that_are_checked(operation: Any) -> None:
    described = openapi()
    schema = described["components"]["schemas"][operation.request.__name__]
    assert list(schema["properties"]) == [field.name for field in msgspec.structs.fields(operation.request)]
    assert schema["required"] == ["text"] and schema["additionalProperties"] is False
    validator = jsonschema_rs.validator_for(schema | {"components": described["components"]})
    assert validator.is_valid({"text": "abc"})
    assert not any(map(validator.is_valid, ({}, {"text": 1}, {"text": "abc", "no such field": 1})))
    if "top" in schema["properties"]:
        assert not any(validator.is_valid({"text": "abc", "top": top}) for top in (-1, 21, 1.5, "1"))
