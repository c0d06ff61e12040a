"""What a model says, in whatever form its script says it."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import Location
from penstock.model.definition.build_model import ScriptFile, build_model
from penstock.model.definition.model import Model
from penstock.model.headers.annotation import declare, parse
from penstock.model.script.declaration import SchemaChange
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import Asset, ColumnInput, ColumnLineage, Names
from penstock.model.values.data_test import NotNullTest
from penstock.model.values.schedule import Retry, Schedule, Trigger

PATH = Path("m.sql")
TEXT = """\
-- pipeline
-- materialize ducklake://main/clean.t key=a,b on_schema_change=sync
-- partitioned daily
-- on ducklake://main/s debounce=5m
-- trigger all
-- freshness 2h
-- debounce 30s
-- retry 2 10s
-- tag heavy
-- data_test not_null a
-- column a <- ducklake://main/s.x
SELECT a, b FROM main.s WHERE d = '{partition}'
"""


def built() -> Model:
    names = Names(("main",))
    declaration, _ = declare(TEXT, PATH, parse(TEXT, PATH)[0], names)
    assert declaration is not None
    model, _ = build_model(ScriptFile("m", TEXT, declaration), names, ())
    assert model is not None
    return model


def test_it_has_all_that_a_header_says() -> None:
    model = built()
    assert (str(model.target), model.strategy.name, model.keys) == (
        "main.clean.t",
        "merge",
        ("a", "b"),
    )
    assert model.partition == PartitionSpec("daily")
    assert model.schema_change == SchemaChange("warn", "warn")
    assert model.schedule == Schedule(
        (Trigger("asset", Asset("ducklake", "main/s"), "5m"),),
        "all",
        freshness="2h",
        debounce="30s",
    )
    assert model.retry == Retry(2, "10s")
    assert model.tags == ("heavy",)
    assert model.data_tests == (NotNullTest(("a",)),)
    lineage = ColumnLineage("a", (ColumnInput(Asset("ducklake", "main/s"), "x"),))
    assert model.column_lineage == (lineage,)
    assert model.query.text == "SELECT a, b FROM main.s WHERE d = '{partition}'"


def test_it_knows_where_each_thing_is_said() -> None:
    model = built()
    lines = {
        what: model.place(what).line for what in ("target", "partition", "on:0", "data_test:0")
    }
    assert lines == {"target": 2, "partition": 3, "on:0": 4, "data_test:0": 10}
    assert model.place("what it does not say") == Location(PATH, 2, 4)
