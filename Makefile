# Two commands are enough on a fresh machine with python3 and make: `make run`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Database servers, which only tests start. LEFTFOLD_SERVERS=skip does without them.
SERVERS := $(if $(filter skip,$(LEFTFOLD_SERVERS)),,$(VENV)/.servers)
ARGS ?=
# Tests start the program hundreds of times: let Python keep what it compiled.
export PYTHONDONTWRITEBYTECODE =
PYTEST_ARGS ?= -n auto

.PHONY: help run test soak check format bench screenshots docs lock clean

help: ## Show what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

run: $(READY) ## Start the REPL; options go in ARGS, as in `make run ARGS=-c`
	@$(BIN)/python app/main.py $(ARGS)

test: $(READY) $(SERVERS) ## Run all tests, sweeps and examples sampled (all of them: LEFTFOLD_TESTS=whole)
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

soak: $(READY) $(SERVERS) ## Many writers, many kills, other random examples: the long run, with its figures
	@$(BIN)/python -m tests.faults.soak
	@LEFTFOLD_TESTS=soak $(BIN)/python -m pytest $(PYTEST_ARGS) --timeout=3600

check: $(READY) ## Format, lint, types, layers (after `make test PYTEST_ARGS="-n auto --cov"`: coverage)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@if ls .coverage >/dev/null 2>&1; then $(BIN)/coverage report; fi

format: $(READY) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY) $(SERVERS) ## Measure: a table of ours beside the limits and the peers
	@$(BIN)/python -m tests.benchmarks $(ARGS)

screenshots: $(READY) ## Make docs/screenshots/*.svg from a real session (needs tmux)
	@$(BIN)/python -m tests.screenshots

docs: $(READY) ## Write what of the docs comes from the code (docs/json.md, schemas, the reference, the imports)
	@$(BIN)/python -m tests.json_docs
	@$(BIN)/python -m tests.reference
	@$(BIN)/python -m tests.imports

lock: $(READY) ## Write requirements.lock and tests/servers.lock anew (needs a network)
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile pyproject.toml --universal --extra postgres --group dev --generate-hashes --no-header --quiet -o requirements.lock
	@$(BIN)/uv pip compile --universal --no-deps --group pyproject.toml:servers --generate-hashes --no-header --quiet -o tests/servers.lock

clean: ## Remove what `make` made
	@rm -rf $(VENV) .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The lock names every package, so pip resolves nothing: its resolver refuses a lock with hashes as soon as
# a package that another one asks for with an extra (coverage[toml]) has a newer release.
$(READY): requirements.lock pyproject.toml
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q app domain infrastructure
	@touch $(READY)

$(VENV)/.servers: tests/servers.lock $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r tests/servers.lock
	@touch $@
