# `make demo` and `make test` are all a newcomer needs; both set up .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test quick lint docs screenshots soak lock audit clean
.DEFAULT_GOAL := demo

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(VENV)/.ready
	$(BIN)/lexinvariant demo

lint: $(VENV)/.ready
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: $(VENV)/.ready  ## what to run while editing
	$(BIN)/python -m pytest -x -m 'not slow'

soak: $(VENV)/.ready  ## bad input by the thousand, a hundred kills, failing disks, minutes of load: about an hour
	LEXINVARIANT_FUZZ=$${LEXINVARIANT_FUZZ:-3000} $(BIN)/python -m pytest -n 2 tests/fuzz
	LEXINVARIANT_SOAK=$${LEXINVARIANT_SOAK:-600} $(BIN)/python -m pytest -n 0 tests/soak

screenshots: $(VENV)/.ready  ## take docs/figures/page-*.png anew; needs Chromium
	$(BIN)/python tests/web/screenshots.py

docs: $(VENV)/.ready  ## regenerate docs/cli.md from --help
	$(BIN)/python -m lexinvariant.cli.document > docs/cli.md

lock: $(VENV)/.ready  ## write requirements.lock anew from constraints.txt, with the hashes that the index gives
	$(BIN)/python -m pip install --quiet uv
	(head -n 1 requirements.lock && $(BIN)/uv pip compile pyproject.toml --constraint constraints.txt --universal \
	  --python-version 3.11 --only-binary :all: --generate-hashes --no-annotate --no-header --quiet) > requirements.new
	mv requirements.new requirements.lock

audit: $(VENV)/.ready  ## ask for known vulnerabilities of what is locked; needs a network
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --requirement requirements.lock --require-hashes --disable-pip

clean:
	rm -rf $(VENV) build demo .pytest_cache .mypy_cache .ruff_cache
