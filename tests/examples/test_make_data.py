"""The script that makes the example's data, on a package of a few lines."""

from __future__ import annotations

import gzip
import importlib.util
import zipfile
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flights"
HEADER = "year,month,day,dep_time\n"


@pytest.fixture
def make_data() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_data", EXAMPLE / "make_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tmp_path: Path) -> Path:
    source = tmp_path / "package"
    source.mkdir()
    for name in ("airlines.csv", "airports.csv"):
        (source / name).write_text("a,b\n")
    lines = "2013,1,1,517\n2013,1,1,NA\n2013,10,1,2400\n2013,2,1,1\n"
    with zipfile.ZipFile(source / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", HEADER + lines)
    return source


def test_each_day_is_one_file_of_raw_lines(
    make_data: ModuleType, package: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert make_data.make(package, out, last=date(2013, 12, 31)) == 3
    text = gzip.decompress((out / "flights-2013-01-01.csv.gz").read_bytes()).decode()
    assert text == HEADER + "2013,1,1,517\n2013,1,1,NA\n"
    assert (out / "flights-2013-10-01.csv.gz").exists()
    assert (out / "airlines.csv").read_text() == "a,b\n"


def test_only_the_days_asked_for_are_written(
    make_data: ModuleType, package: Path, tmp_path: Path
) -> None:
    day = date(2013, 2, 1)
    assert make_data.make(package, tmp_path / "out", first=day, last=day) == 1


def test_what_ships_is_two_whole_weeks(make_data: ModuleType) -> None:
    days = sorted(path.name[8:18] for path in (EXAMPLE / "data").glob("flights-*.csv.gz"))
    assert days == [f"2013-01-{day:02}" for day in range(1, 15)]
