# Thin names for what the tools do; the work is in deploy/, pyproject.toml and the command `bettong`.
PYTHON ?= python3
BIN := .venv/bin
# What mypy reads: those of our folders that exist.
TYPED := $(wildcard src services tests examples benchmarks deploy docs hatch_build.py)
ARGS ?=
# Else each of the many processes that a demo or a test starts would compile our sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup packages demo test faults soak fuzz kubernetes chart-tools pythons load images newcomer wheels machine lint format types check lock bench docs site clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup:  ## Install everything into .venv; done again only where something changed
	@exec $(PYTHON) -m deploy.bootstrap

# The part of `setup` that `lint` and `types` need, so that they can run beside the rest of it.
packages:
	@exec $(PYTHON) -m deploy.bootstrap --packages

demo: setup  ## Run Market Spread end to end on this machine and check its results (ARGS=...)
	@exec $(BIN)/python -m examples.demo $(ARGS)

# Three files at a time, for tests wait as much as they compute; in the order of names, which puts the longest first.
test: setup  ## Run all tests but those that take long (ARGS="-k word" for some)
	@$(PYTHON) -m deploy.bootstrap --tests
	@exec $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 15 $(ARGS)

lint: packages  ## Style, formatting, layers
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-logo --config layers.toml

format: setup  ## Format the code, and mend what can be mended by itself
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

types: packages  ## mypy --strict
	@exec $(BIN)/mypy --strict $(TYPED)

faults: setup  ## Run the long set of injected faults, and what is promised in seconds: an hour (ARGS="-k word" for some)
	@exec $(BIN)/pytest tests/faults tests/e2e tests/integration tests/unit tests/local tests/console -m "long or timely" -s $(ARGS)

soak: setup  ## Run an hour at 20,000 messages/s with a fault a minute; nothing may grow (ARGS="--minutes 10" for less)
	@exec $(BIN)/python -m tests.faults.soak $(ARGS)

fuzz: setup  ## Feed every parser with damaged input: an hour (ARGS="--seconds 300 columns" for less, or one parser)
	@$(PYTHON) -m deploy.bootstrap --tests
	@exec $(BIN)/python -m tests.fuzz.fuzzing $(ARGS)

kubernetes: setup  ## Test the chart on a real control plane; builds one the first time (Go, 25 minutes of a core)
	@$(PYTHON) -m deploy.bootstrap --tests
	@$(BIN)/python -m tests.kubernetes.building
	@exec $(BIN)/pytest tests/kubernetes -m "cluster or long" $(ARGS)

chart-tools: setup  ## Build kube-score and helm-unittest for the tests of the charts, the first time (Go, 4 minutes of a core)
	@exec $(BIN)/python -m tests.kubernetes.building --chart-tools $(ARGS)

pythons: setup  ## Test the pure part on each other Python that pyproject.toml claims and that is here: a minute or two each (ARGS="-k word" for some)
	@exec $(BIN)/python -m deploy.pythons $(ARGS)

load: setup  ## Send payments to what `tilt up` or values-dev.yaml deployed, and check every total (ARGS="--payments 1000000")
	@exec $(BIN)/python -m examples.payments_load $(ARGS)

images: setup  ## Build the images, twice, and run them, as root and without an engine: 20 minutes (ARGS="-k word" for some)
	@$(PYTHON) -m deploy.bootstrap --images
	@exec $(BIN)/pytest tests/images -m "long or not long" $(ARGS)

newcomer: setup  ## Play the first hour of someone new, from wheels here and as root in an empty root, and in a clone: 15 minutes
	@$(PYTHON) -m deploy.bootstrap --images
	@exec $(BIN)/pytest tests/e2e/test_newcomer.py tests/e2e/test_newcomer_clone.py tests/images/test_empty_root.py -m "long or not long" $(ARGS)

wheels: setup  ## Build the packages for `pip install`, jars included, into dist/
	@exec $(PYTHON) -m deploy.wheels

machine: setup  ## Test the node tuner in a virtual machine with SMT, emulated: some minutes; root the first time (ARGS="-k word")
	@$(PYTHON) -m deploy.bootstrap --machine
	@$(BIN)/python -m tests.machine.building
	@exec $(BIN)/pytest tests/machine -m long --session-timeout 1800 $(ARGS)

check: lint types chart-tools test  ## What CI runs, without fuzzing, other Pythons and the site

lock:  ## Renew the locks of Python packages and jars (ARGS=--upgrade for newer versions)
	@exec $(PYTHON) -m deploy.relock $(ARGS)

bench: setup  ## Measure the speed; JSON and a page in bench-results/ (ARGS=...); beside other engines: python -m benchmarks.peers
	@exec $(BIN)/python -m benchmarks.throughput $(ARGS)

docs: setup  ## Render the pages that the code decides: settings, live metrics, the command line, exit codes, the chart's
	@exec $(BIN)/python -m docs.render

site:  ## Build docs/ as a site into build/site, with its own packages; a broken link fails
	@exec $(PYTHON) -m deploy.site

clean:  ## Remove what setup and the tools made
	@rm -rf .venv .venv-peers .venv-pythons .venv-site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist src/bettong/v1
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
