"""Variants are what their names say, and one that fails does not take the others with it."""

from typing import Any

import pytest

from lexinvariant.bench import variants
from lexinvariant.bench.variants import measure_variants, parse
from lexinvariant.errors import UserError
from lexinvariant.model import levers
from lexinvariant.presets import preset


def test_names_add_and_take_away() -> None:
    everything = set(levers.LEVERS)
    assert parse("all") == ("all", everything, [])
    assert parse("none") == ("none", set(), [])
    assert parse("none+muon+relu") == ("none", {"muon", "relu"}, [])
    assert parse("twin-muon") == ("twin", everything - {"muon"}, [])
    assert parse("all+heads2-qk") == ("all", everything - {"qk"}, ["heads2"])
    for wrong in ("most", "all+moun", "all-heads2"):
        with pytest.raises(UserError, match="variant"):
            parse(wrong)


def test_each_is_built_under_its_own_levers_and_timed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class FakeStep:
        def __init__(self, config: Any, options: dict[str, Any]) -> None:
            self.name = f"{config.model.lexicon.kind} {levers.uses('muon')} {options}"
            if levers.uses("relu") and not levers.uses("muon"):
                raise ValueError("does not compile\nfor some reason")

        def run(self) -> None:
            events.append(self.name)

        def wait(self) -> None:
            pass

        def peak_bytes(self) -> None:
            return None

    monkeypatch.setattr(variants, "TrainingStep", FakeStep)
    monkeypatch.setattr(variants, "matmul_ceiling", lambda size: 1e12)
    names = ["none", "all-muon", "twin+triton"]
    result = measure_variants(preset("tiny"), names, 2, 0, lambda what: None)
    none, twin = "permuted False {}", "learned True {'xla_gpu_enable_triton_gemm': True}"
    assert events == [none] * 2 + [twin] * 2 + ([none] * 2 + [twin] * 2) * 2
    rows = {row["what"]: row for row in result["rows"]}
    assert rows["all-muon"]["error"] == "ValueError: does not compile"
    assert rows["none"]["tokens_per_second"] > 0
    assert all(levers.uses(lever) for lever in levers.LEVERS)
