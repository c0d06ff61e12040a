# `make demo` and `make test` need nothing but Java 17+ and Python 3.11+: they make .venv themselves.
VENV := .venv
BIN := $(VENV)/bin
# Newer than pyproject.toml means: everything in it is installed.
INSTALLED := $(VENV)/.installed

.PHONY: demo test gates format bench clean prerequisites
.DEFAULT_GOAL := demo

demo: prerequisites $(INSTALLED)
	@$(BIN)/python examples/demo.py

test: prerequisites $(INSTALLED)
	@$(BIN)/python -m pytest

gates: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(INSTALLED)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: prerequisites $(INSTALLED)
	@$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build dist demo

# First of all, and each time: a Java that went away should not become a Spark stack trace.
prerequisites:
	@sh scripts/prerequisites.sh >/dev/null

# Order-only: the check runs before the installation but never makes it run again.
$(INSTALLED): pyproject.toml | prerequisites
	@echo "Installing into $(VENV) (some minutes the first time: Spark is 400 MB) ..."
	@"$$(sh scripts/prerequisites.sh)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
