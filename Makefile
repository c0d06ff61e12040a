# `make demo` and `make test` need nothing but Java 17+ and Python 3.11+: they make .venv themselves.
VENV := .venv
BIN := $(VENV)/bin
# Newer than pyproject.toml and constraints.txt means: everything in them is installed.
INSTALLED := $(VENV)/.installed
# The tests ask DuckDB 1.4.4 too, which wrote format 0.3; another Python that has it will do.
OLD_DUCKDB := .venv-duckdb-1.4/.installed
CONNECT := .venv-connect/.installed
DBT := .venv-dbt/.installed
ifdef PENSTOCK_TEST_DUCKDB_1_4
OLD_DUCKDB :=
endif

.PHONY: help demo test quick quick-tests environments gates types rules budgets wheel-check format bench lock clean prerequisites duckdb-1.4 warm-tests cluster-tests memory-tests dbt-tests
.DEFAULT_GOAL := demo
# pip compiles nothing (scripts/install.sh): each process would compile all that it imports, for seconds.
unexport PYTHONDONTWRITEBYTECODE

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: prerequisites $(INSTALLED) ## the examples, from nothing, compared with DuckDB (the default)
	@$(BIN)/python examples/demo.py

# Two workers with a Spark session each take files in the order of tests/conftest.py.
test: environments ## run every test
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

# The gates keep one core busy, the tests the other.
quick: prerequisites $(INSTALLED) ## run the gates and the tests that start no Spark
	@$(MAKE) --no-print-directory -j2 --output-sync=target gates quick-tests

quick-tests: $(INSTALLED) ## run the tests that start no Spark
	@$(BIN)/python -m pytest -n 2 -m "not spark and not slow"

environments: prerequisites $(INSTALLED) $(OLD_DUCKDB) $(CONNECT) $(DBT) ## install what the tests need

# With -j, mypy has a core of its own.
gates: types rules budgets ## check with mypy, ruff, import-linter and programs of scripts

types: $(INSTALLED) ## check types with mypy
	@$(BIN)/mypy

rules: $(INSTALLED) ## check with ruff, import-linter and programs of scripts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/python -m scripts.check_strategies
	@$(BIN)/python -m scripts.check_source

budgets: $(INSTALLED) ## hold sizes, names and docstrings to scripts/budgets.toml
	@$(BIN)/python -m scripts.check_budgets

# Each time in an environment of its own; pip's cache has what it needs.
wheel-check: prerequisites ## install the wheel into an empty environment and run a project with it
	@sh scripts/wheel-check.sh constraints.txt

format: $(INSTALLED) ## let ruff format and fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: prerequisites $(INSTALLED) ## measure the figures of bench/README.md (long; leave the machine alone)
	@$(BIN)/python -m bench

# From an environment of its own, so that nothing older stays.
lock: prerequisites ## write constraints.txt anew, with the newest versions that pyproject.toml allows
	@rm -rf .venv-lock
	@sh scripts/install.sh .venv-lock '.[dev,bench,s3,connect]'
	@{ echo "# Made by \`make lock\`: the versions that the gates, the tests and the benchmarks run with."; \
		.venv-lock/bin/python -m pip freeze --exclude penstock-spark; } >constraints.txt
	@rm -rf .venv-lock

clean: ## remove everything that was made, the environments too
	rm -rf $(VENV) .venv-duckdb-1.4 .venv-connect .venv-dbt .venv-lock build dist demo

# First of all, and each time: a Java that went away should not become a Spark stack trace.
prerequisites:
	@sh scripts/prerequisites.sh >/dev/null

# Order-only: the check runs before the installation but never makes it run again.
$(INSTALLED): pyproject.toml constraints.txt | prerequisites
	@sh scripts/install.sh $(VENV) -c constraints.txt -e '.[dev]'
	@touch $@

duckdb-1.4: $(OLD_DUCKDB) ## install DuckDB 1.4.4 for the tests of format 0.3

# An environment of its own: with pandas in it, each DuckDB of the other tests would load that. The rest is in .venv.
.venv-connect/.installed: tests/requirements-connect.txt constraints.txt | $(INSTALLED)
	@sh scripts/install.sh $(@D) -c constraints.txt -r $<
	@$(BIN)/python -c "import sysconfig; print('$(CURDIR)/src'); print(sysconfig.get_path('purelib'))" \
		>"$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
	@touch $@

warm-tests: prerequisites $(CONNECT) ## run the marked tests over a warm server
	@PENSTOCK_TEST_WARM_KILLS=1 .venv-connect/bin/python -m pytest --warm -m warm

cluster-tests: prerequisites $(INSTALLED) ## run a model on a standalone cluster of two workers
	@PENSTOCK_TEST_CLUSTERS=1 $(BIN)/python -m pytest tests/clusters

memory-tests: prerequisites $(INSTALLED) ## merge 10M rows in a container of 3 GiB (minutes; as root)
	@PENSTOCK_TEST_MEMORY=1 $(BIN)/python -m pytest tests/memory

# An environment of its own: dbt pins many packages that Penstock uses, too. The rest is in .venv.
.venv-dbt/.installed: tests/requirements-dbt.txt | $(INSTALLED)
	@sh scripts/install.sh $(@D) -r $<
	@$(BIN)/python -c "import sysconfig; print('$(CURDIR)/adapters/dbt/src\n$(CURDIR)/src'); print(sysconfig.get_path('purelib'))" \
		>"$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
	@touch $@

dbt-tests: prerequisites $(DBT) ## run dbt's whole suite for adapters against the adapter (20 minutes)
	@cd adapters/dbt && ../../.venv-dbt/bin/python -m pytest

# A test that needs it is skipped where it is not there, but `make test` sees to it that it is.
.venv-duckdb-1.4/.installed: tests/requirements-duckdb-1.4.txt | prerequisites
	@sh scripts/install.sh $(@D) -r $<
	@touch $@
