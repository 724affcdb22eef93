# What a contributor runs. Every path is relative, so the checkout may lie anywhere, spaces included.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
TOOLS := .tools

# A virtual environment knows where it was made. Moved or copied, it would go on running the old checkout's code.
$(shell [ ! -e .venv/made-at ] || [ "$$(cat .venv/made-at)" = "$$PWD" ] || rm -rf .venv build)

NATIVE := CMakeLists.txt $(shell find native -type f -not -path 'native/fuzz/*')
READY := .venv/native.stamp

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

venv: .venv/venv.stamp ## create .venv with everything that development needs
.venv/venv.stamp: pyproject.toml tools/make_venv
	@PYTHON="$(PYTHON)" tools/make_venv
	@touch $@

# The editable install knows modules by file: it is renewed when a module appears or goes, not when one is edited.
.venv/modules.txt: .venv/venv.stamp FORCE
	@find src -name '*.py' | LC_ALL=C sort >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:

native: $(READY) ## build the C++ core (only what changed) and install the package editable
$(READY): .venv/venv.stamp .venv/modules.txt $(NATIVE)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

demo: $(READY) ## run lanescope on a simulated capture
	@$(BIN)/lanescope demo

test: $(READY) ## run all tests, list all skips
	@$(BIN)/python -m pytest $(PYTEST)

lint: .venv/venv.stamp ## ruff, mypy, import-linter
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

clean: ## remove everything that is made here
	rm -rf .venv .tools build dist out docs/_build docs/reference/generated .mypy_cache .ruff_cache .pytest_cache \
	    .import_linter_cache .hypothesis
	find src tests benchmarks docs tools -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: FORCE help venv native demo test lint clean
