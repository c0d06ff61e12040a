"""Headers of models by time, and what does not go with ``time=``."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.headers.annotated import declare
from penstock.model.headers.annotation import parse
from penstock.model.script.declaration import Declaration
from penstock.model.time.time_range import TimeColumn
from penstock.model.values.names import Names
from penstock.model.values.schedule import Cadence

PATH = Path("m.sql")


def read(options: str, partitioned: str = "") -> tuple[Declaration | None, list[str]]:
    lines = [f"-- materialize ducklake://main/t {options}"]
    lines += [f"-- partitioned {partitioned}"] if partitioned else []
    text = "\n".join([*lines, "SELECT 1 AS a"])
    annotations, findings = parse(text, PATH)
    declaration, found = declare(text, PATH, annotations, Names(("main",)), findings)
    return declaration, [f"{each.location.line}: {each.message}" for each in found]


@pytest.mark.parametrize(
    ("partitioned", "cadence", "unit"),
    [
        ("", Cadence(), "day"),
        ("daily", Cadence(), "day"),
        ('hourly start="2026-01-01"', Cadence("@hourly", start="2026-01-01"), "hour"),
        ('monthly tz="UTC" start="1 year ago"', Cadence("@monthly", start="1 year ago"), "month"),
    ],
)
def test_intervals_are_as_long_as_partitions(partitioned: str, cadence: Cadence, unit: str) -> None:
    declaration, findings = read("time=ts lookback=2 batch_size=7", partitioned)
    assert declaration is not None
    assert findings == []
    found = declaration.time_range
    assert found is not None
    assert (declaration.strategy.name, declaration.partition) == ("time_range", None)
    assert (found.column, found.lookback, found.batch_size) == (TimeColumn("ts"), 2, 7)
    assert (declaration.cadence, found.unit.name) == (cadence, unit)


@pytest.mark.parametrize(
    ("options", "partitioned", "said"),
    [
        ("time=ts key=a", "", "1: `time=` replaces the rows of a time range, which `key=` does"),
        ("time=ts append", "", "1: `time=` replaces the rows of a time range, which `append` does"),
        ("time=a,b,c", "", "1: `time=a,b,c` is not a column and its format"),
        ('time="a,%Y"', "", '1: `time="a,%Y"` is not a column and its format'),
        ("time=a,%q", "", "1: the format `%q` has `%q`"),
        ("time=ts lookback=0", "", "1: `lookback=0`: 0 is not a whole number from 1 on"),
        ("lookback=2", "", "1: `lookback=` means nothing without `time=`"),
        ("time=ts", "weekly", "2: `time=` has no intervals that are weekly"),
        ("time=ts", 'daily tz="Europe/Paris"', "2: `tz=` means nothing with `time=`"),
        ("time=ts", 'daily start="soon"', "2: start='soon' is not a moment"),
    ],
)
def test_what_does_not_go_with_time(options: str, partitioned: str, said: str) -> None:
    _, (found, *_) = read(options, partitioned)
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("ducklake:///t", "write materialize ducklake://main/t"),
        ("ducklake://main//t", "write materialize ducklake://main/t"),
        ("ducklake://t", "write materialize ducklake://main/t"),
        ("ducklake://main", "write materialize ducklake://main/table or"),
        ("ducklake://main/", "write materialize ducklake://main/table or"),
        ("ducklake://main/a.b.c", "write materialize ducklake://main/table or"),
    ],
)
def test_a_target_that_names_no_table(target: str, hint: str) -> None:
    text = f"-- materialize {target}\nSELECT 1 AS a"
    _, found = declare(text, PATH, parse(text, PATH)[0], Names(("main",)))
    assert found[0].hint is not None
    assert found[0].hint.startswith(hint)
