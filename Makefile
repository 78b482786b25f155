# make demo    sets up, and filters the sample feeds
# make test    sets up, and runs the tests
# make check   what CI runs: lint, types, tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-all check lint types clean

demo: $(VENV)/.base
	@$(BIN)/graphmatch demo

test: $(VENV)/.dev
	@$(BIN)/python -m pytest -q -m "not long"

test-all: $(VENV)/.dev
	@$(BIN)/python -m pytest -q

check: lint types test

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev
	@$(BIN)/mypy

$(VENV)/bin/python:
	@echo "Making the virtual environment $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(VENV)/bin/python pyproject.toml
	@echo "Installing graphmatch …"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "Installing what the tests need …"
	@$(PIP) install --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
