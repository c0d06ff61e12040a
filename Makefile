# `make demo` and `make test` need nothing but Java 17+ and Python 3.11+: they make .venv themselves.
VENV := .venv
BIN := $(VENV)/bin
# Newer than pyproject.toml means: everything in it is installed.
INSTALLED := $(VENV)/.installed
# The tests ask DuckDB 1.4.4 too, which wrote format 0.3; another Python that has it will do.
OLD_DUCKDB := .venv-duckdb-1.4/.installed
ifdef PENSTOCK_TEST_DUCKDB_1_4
OLD_DUCKDB :=
endif

.PHONY: demo test gates format bench clean prerequisites duckdb-1.4
.DEFAULT_GOAL := demo

demo: prerequisites $(INSTALLED)
	@$(BIN)/python examples/demo.py

# Two workers with a Spark session each: one compares with DuckDB, the other does the rest.
test: prerequisites $(INSTALLED) $(OLD_DUCKDB)
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

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
	rm -rf $(VENV) .venv-duckdb-1.4 build dist demo

# First of all, and each time: a Java that went away should not become a Spark stack trace.
prerequisites:
	@sh scripts/prerequisites.sh >/dev/null

# Order-only: the check runs before the installation but never makes it run again.
$(INSTALLED): pyproject.toml | prerequisites
	@echo "Installing into $(VENV) (some minutes the first time: Spark is 400 MB) ..."
	@"$$(sh scripts/prerequisites.sh)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

duckdb-1.4: $(OLD_DUCKDB)

# A test that needs it is skipped where it is not there, but `make test` sees to it that it is.
.venv-duckdb-1.4/.installed: tests/requirements-duckdb-1.4.txt | prerequisites
	@echo "Installing DuckDB 1.4.4 into $(@D) for the tests of format 0.3 ..."
	@"$$(sh scripts/prerequisites.sh)" -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@
