"""What may happen to a file: strategies for bytes and JSON that are almost right."""

import json
from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.sampled_from([2**31, 2**63, 2**64, -(2**63), 10**30, 1e308, float("nan"), float("inf"), -0.0])
    | st.sampled_from(
        ["", "a", "..", "/", "\0", "\ud800", "auto", "char128", "bundled", "\U0001f469\u200d\U0001f467"]
    )
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@st.composite
def damaged_bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    """A file after a few accidents: bytes changed, cut off, put in, or swapped with others."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["change", "change", "cut", "insert", "repeat", "drop"])):
            case "change":
                data[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case "cut":
                del data[at:]
            case "insert":
                data[at:at] = draw(st.binary(max_size=8))
            case "repeat":
                data[at:at] = data[at : at + draw(st.integers(1, 50))]
            case "drop":
                del data[at : at + draw(st.integers(1, 50))]
    return bytes(data)


@st.composite
def damaged_json(draw: st.DrawFn, value: Any) -> Any:
    """The same value with something else in one or two places, at whatever depth."""
    changed = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 2))):
        place = changed
        while isinstance(place, (dict, list)) and place:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], (dict, list)) or not place[key] or draw(st.booleans()):
                place[key] = draw(VALUES)
                if isinstance(place, dict) and draw(st.integers(0, 4)) == 0:
                    del place[key]
                break
            place = place[key]
    return changed
