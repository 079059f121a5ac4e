"""All experiments on one pair of models, in order; what is done already is not done again."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace

from lexinvariant.experiments.evaluated_model import open_model, open_pair
from lexinvariant.experiments.registry import EXPERIMENTS, Pair
from lexinvariant.files import read_json_object
from lexinvariant.progress import Log
from lexinvariant.results.rows import hash_bytes
from lexinvariant.text import open_data

DONE = "done.json"


def run_all(pair: Pair, log: Log) -> None:
    """Run what has not been run with the same models, text and settings; interrupting loses at most one experiment."""
    if pair.baseline:
        open_pair(pair.model, pair.baseline)  # complains before hours of work, not after
    models = [open_model(place).hash for place in (pair.model, pair.baseline) if place]
    text = open_data(pair.data).fingerprint  # that a folder of the same name holds may have changed
    suitable = [experiment for experiment in EXPERIMENTS if experiment.suits(pair)]
    whole = replace(pair, quick=False)
    if left_out := [one.name for one in EXPERIMENTS if one.suits(whole) and one not in suitable]:
        log(f"Left out, as it takes its time: {', '.join(left_out)}")
    path = pair.out / DONE
    done = read_json_object(path, "remove it, and all is run again.") if path.exists() else {}
    for number, experiment in enumerate(suitable, start=1):
        options, name = experiment.options_for(pair), experiment.name
        signature = hash_bytes(json.dumps([models, text, asdict(options)], default=str).encode())
        if done.get(name) == signature and experiment.rows_in(pair.out).exists():
            log(f"[{number}/{len(suitable)}] {name}: done before")
            continue
        log(f"[{number}/{len(suitable)}] {name}")
        began = time.perf_counter()
        experiment.run(options, log=lambda line: log(f"    {line}"))
        done[name] = signature
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(done, indent=2) + "\n", encoding="utf-8")
        draft.replace(path)
        log(f"    {name} took {time.perf_counter() - began:.0f} s")
