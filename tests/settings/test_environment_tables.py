"""Settings of an environment with tables of its own, and whose a table is."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.settings.environment_tables import OwnTables, is_of_another, pattern_of
from tests.settings.test_settings_file import BASE, failure, load

DEV = """\
[environments.prod.run]
jobs = 8
[environments.dev]
schema_suffix = "_${USER}"
reads = "prod"
"""


def test_an_environment_has_a_suffix_and_reads_another(tmp_path: Path) -> None:
    settings = load(tmp_path, BASE + DEV, "dev", USER="ann")
    assert settings.own_tables == OwnTables("_ann", "prod")
    assert load(tmp_path, BASE + DEV, "prod").own_tables is None
    assert load(tmp_path, BASE + DEV).suffixes == (r"_\w+",)


def test_a_suffix_alone_reads_no_other_tables(tmp_path: Path) -> None:
    text = BASE + '[environments.dev]\nschema_suffix = "_dev"\n'
    assert load(tmp_path, text, "dev").own_tables == OwnTables("_dev")


@pytest.mark.parametrize(
    ("dev", "said", "line"),
    [
        ('reads = "prod"', "has no names for its own", 18),
        ('schema_suffix = "-x"', "letters, digits and _ only", 18),
        ('schema_suffix = ""', "letters, digits and _ only", 18),
        ("schema_suffix = 3", "must be a text, not 3", 18),
        ('schema_suffix = "_d"\nreads = "prd"', "the environment 'prd' does not exist", 19),
        ('schema_suffix = "_d"\nreads = "dev"', "with a schema_suffix itself", 19),
        ('schema_sufix = "_d"', "unknown section: 'schema_sufix'", 18),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, dev: str, said: str, line: int) -> None:
    prod = "[environments.prod.run]\njobs = 8\n"
    error = failure(tmp_path, f"{BASE}{prod}[environments.dev]\n{dev}\n", "dev")
    assert said in error.message
    assert error.location is not None
    assert error.location.line == line


def test_catalogs_that_differ_are_refused(tmp_path: Path) -> None:
    lake = '[environments.prod.lakes.main]\ncatalog = "sqlite:x.sqlite"\ndata_path = "x"\n'
    error = failure(tmp_path, BASE + DEV + lake, "dev", USER="ann")
    assert error.message.startswith("lake 'main' has another catalog than in environment 'prod'")


def test_a_section_environment_is_none_of_the_file(tmp_path: Path) -> None:
    error = failure(tmp_path, BASE + '[environment]\nreads = "x"\n')
    assert error.message == "unknown section: 'environment'"


TABLES = ["main.orders", "sales.days"]


@pytest.mark.parametrize(
    ("table", "own", "is_others"),
    [
        ("main.orders", None, False),
        ("main_dev.orders", None, True),
        ("MAIN_dev.Orders", None, True),
        ("main_dev.gone", None, False),  # of no model: what is left of one that is gone
        ("sales_ann.days", None, True),
        ("other_dev.orders", None, False),
        ("main_dev.orders", OwnTables("_dev"), False),
        ("main.orders", OwnTables("_dev"), True),
    ],
)
def test_whose_a_table_is(table: str, own: OwnTables | None, is_others: bool) -> None:
    suffixes = [pattern_of("_dev"), pattern_of("_${USER}")]
    assert is_of_another(table, own, suffixes, TABLES) is is_others
    assert not is_of_another("main_dev.orders", None, [], TABLES)
