# make demo     sets up, and filters the sample feeds
# make test     sets up, and runs the tests, in minutes
# make test-all runs the long ones, too, with many generated cases: for hours
# make check    what CI runs: lint, types, tests, of Python and of Rust
# make native   compiles the core anew, in seconds; slower code than what is installed
# make docs     builds the documentation site in build/site
# make diagram  draws the picture of the architecture, with Graphviz
# make wheel    builds a wheel of this platform in dist/
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q -n auto
DOT ?= dot
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CRATE := graphmatch/native
CORE := $(CRATE)/Cargo.toml $(wildcard $(CRATE)/src/*.rs $(CRATE)/src/*/*.rs)
# Gets a compiler where there is none.
WITH_RUST := $(CRATE)/with-rust.sh
CARGO := cd $(CRATE) && ./with-rust.sh cargo

.PHONY: demo test test-all check lint types test-native native docs diagram wheel clean

demo: $(VENV)/.base
	@$(BIN)/graphmatch demo

test: $(VENV)/.dev
	@$(PYTEST) -m "not long"

test-all: $(VENV)/.dev
	@$(PYTEST) --hypothesis-profile hunt

check: lint types test-native test

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(WITH_RUST) cargo fmt --version >/dev/null && $(WITH_RUST) cargo clippy --version >/dev/null || \
	    { echo "Install rustfmt and clippy: rustup component add rustfmt clippy, or Debian's rustfmt-web and rust-web-clippy."; exit 1; }
	@$(CARGO) fmt --check
	@$(CARGO) clippy --quiet --no-default-features --all-targets -- --deny warnings

types: $(VENV)/.dev
	@$(BIN)/mypy
	@$(BIN)/stubtest graphmatch._native

test-native: $(VENV)/.dev
	@$(CARGO) test --quiet --no-default-features

native: $(BIN)/maturin
	@VIRTUAL_ENV=$(abspath $(VENV)) $(WITH_RUST) $(BIN)/maturin develop --quiet --skip-install

docs: $(VENV)/.dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

diagram:
	@cd docs/img && $(DOT) -T svg architecture.dot | sed '/viewBox/r architecture.css' >drawn && test -s drawn && \
	    echo "<!-- SHA-256 of its sources: $$(cat architecture.dot architecture.css | sha256sum | cut -c 1-64) -->" >>drawn && \
	    mv drawn architecture.svg

wheel: $(BIN)/maturin
	@$(WITH_RUST) $(BIN)/maturin build --quiet --release --out dist

$(BIN)/python:
	@echo "Making the virtual environment $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(BIN)/python pyproject.toml $(CORE)
	@echo "Installing graphmatch; compiling its core takes a minute or two the first time …"
	@$(WITH_RUST) $(PIP) install --editable ".[broker]"
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "Installing what the tests need …"
	@$(PIP) install "graphmatch[dev]"
	@touch $@

$(BIN)/maturin:
	@$(MAKE) --no-print-directory $(VENV)/.dev

clean:
	rm -rf $(VENV) build/site $(CRATE)/target graphmatch/_native.*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis
