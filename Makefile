# Every path is relative and every tool is taken from .venv, so the folder may have any name.
PYTHON ?= python3
BIN := .venv/bin
# Each worker has a JVM, which keeps one core busy with tests this small.
WORKERS ?= 2
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-annotate --custom-compile-command "make lock"

TODAY = $(shell date +%F)
CODE := $(wildcard src tests tools bench examples)
# Files are handed to the workers in this order. The longest come first and the shortest last, so
# that both workers end together.
LONG_TESTS := $(wildcard tests/services tests/faults tests/e2e tests/spark)
FAST_TESTS := $(wildcard tests/protocol tests/unit tests/architecture)
NAMED_TESTS := $(addsuffix /,$(LONG_TESTS) $(FAST_TESTS)) tests/prove/ tests/__pycache__/
OTHER_TESTS := $(filter-out $(NAMED_TESTS),$(wildcard tests/*/))
PYTEST := $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder
# One make that runs its targets side by side; it fails when one of them fails, after all ended.
TOGETHER := $(MAKE) --no-print-directory --keep-going --jobs=4
LINTERS := lint-style lint-types lint-imports

.DEFAULT_GOAL := help
.PHONY: help setup demo check test prove lint format bench docs lock clean
.PHONY: $(LINTERS) tests-without-jvm tests-with-coverage

help:  ## Show this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /\1|/' | awk -F'|' '{printf "  make %-8s %s\n", $$1, $$2}'

setup:  ## Make .venv with everything in it (PYTHON=python3.12 chooses the Python)
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "setup: '$(PYTHON)' was not found; install Python 3.11 or later, or name it: make setup PYTHON=/path/to/python3" >&2; \
		exit 1; }
	@"$(PYTHON)" tools/setup.py

demo: setup  ## Run two days of orders through Spark into Delta tables under demo/
	@$(BIN)/python tools/demo.py

lint: setup  ## Check style, formatting, types and the direction of imports
	+@$(TOGETHER) $(LINTERS)

lint-style:
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

lint-types:
	$(BIN)/python -m mypy $(CODE)

lint-imports:
	$(BIN)/lint-imports

format: setup  ## Let ruff fix and format the code
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

check: setup  ## Lint and the tests that start no JVM, side by side: for the time between edits
	+@$(TOGETHER) $(LINTERS) tests-without-jvm

tests-without-jvm:
	$(PYTEST) -m "not spark and not prove" $(FAST_TESTS)

test: setup  ## Lint and all tests but the long proofs, side by side, then the coverage gate
	-@$(BIN)/python -m tools.service_jars
	+@$(TOGETHER) $(LINTERS) tests-with-coverage

tests-with-coverage:
	$(PYTEST) --cov --cov-report=json --cov-report= $(LONG_TESTS) $(OTHER_TESTS) $(FAST_TESTS)
	$(BIN)/python tools/coverage_gate.py

prove: setup  ## The long proofs (hours), then all benchmarks; results go to docs/proofs
	$(BIN)/python -m pytest -m prove --timeout=0 tests
	$(BIN)/python -m bench --out docs/proofs/$(TODAY)-bench.json
	$(BIN)/python -m bench.epochs > docs/proofs/$(TODAY)-epochs.json
	$(BIN)/python -m bench.cluster > docs/proofs/$(TODAY)-cluster.json

bench: setup  ## Side-by-side benchmarks, results as JSON
	$(BIN)/python -m bench

docs: setup  ## Write the generated pages and build the site under site/
	$(BIN)/python -m tools.reference
	$(BIN)/python -m mkdocs build --strict

lock: setup  ## Resolve the dependencies again and rewrite requirements/*.txt
	$(LOCK) requirements/build.in --output-file requirements/build.txt
	$(LOCK) pyproject.toml --extra dev --output-file requirements/lock.txt

clean:  ## Remove what make made: .venv, caches, reports, and a demo/ that carries our marker
	@if [ -f .venv/setup.log ]; then rm -rf .venv; fi
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -rf site .coverage .coverage.json src/deltaworks.egg-info
	@if [ -f demo/.deltaworks-demo ]; then rm -rf demo; fi
	find src tests tools bench examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
