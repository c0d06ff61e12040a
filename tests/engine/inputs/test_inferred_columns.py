"""Which files have the same inferred columns, and that Spark infers what is said."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.inputs.file_reader import files
from penstock.engine.inputs.inferred_columns import agrees, described
from penstock.lazy import pa, pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def of(root: Path, text: str, function: str = "read_csv", **options: Any) -> Any:
    """Describe a file that holds a text."""
    path = root / "a.file"
    path.write_text(text)
    read = files(function, "a.file", options, root=root, location=None)
    return described(read, [path])


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", "-5", "007", "+2147483647"], "int"),
        (["1", "2147483648"], "bigint"),
        (["1", "-2147483649", ""], "bigint"),
        (["1.5", "2"], "double"),
        (["3000000000", "2.25"], "double"),
        (["", ""], "string"),
        (["2026-01-31", "2024-02-29"], "date"),
        (["2026-01-31 10:00:00", "2026-01-31 10:00:00.123"], "time"),
        (["2026-01-31T10:00:00"], "time_t"),
        (["2026-01-31T10:00:00Z"], "time_z"),
        (["true", "FALSE"], "boolean"),
        (["n1", "Main St. 5", "abc, d"], "string"),
        (["1", "x"], "string"),
        (["a", "nan"], "string"),
        (["2026-01-31", "none"], "string"),
    ],
)
def test_values_beyond_doubt_have_a_type(tmp_path: Path, values: list[str], type_: str) -> None:
    text = "a,b\n" + "".join(f'"{value}",1\n' for value in values)
    assert of(tmp_path, text) == ("csv", ("a", "b"), (type_, "int"))


@pytest.mark.parametrize(
    "values",
    [
        ["1e5"], ["NaN"], ["Infinity"], ["inf"], [" 1"], ["1 "], ["1,000"], ["2026-02-30"],
        ["2026-01-31", "1"], ["2026-01-31", "2026-01-31 10:00:00"], ["1", "true"], ["t10:00"],
        ["2026-01-31 25:00:00"], ["12:30"], ["1d"], ["0x1p3"], ["9999999999999999999"], ["-"],
        ["€ 5"], ["2026-1-5"],
    ],
)  # fmt: skip
def test_in_doubt_nothing_is_said(tmp_path: Path, values: list[str]) -> None:
    assert of(tmp_path, "a,b\n" + "".join(f'"{value}",1\n' for value in values)) is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,b\n1,2\n3\n", {}),
        ('a,b\n"1\n2",2\n', {}),
        ('a,b\n"1"x,2\n', {}),
        ("", {"header": True, "delim": ","}),
        ("a,b\n1,2\n", {"multiline": True}),
        ("a,b\n2026-01-01,2\n", {"dateformat": "%Y-%m-%d"}),
    ],
)
def test_files_that_spark_reads_in_its_own_way(
    tmp_path: Path, text: str, options: dict[str, Any]
) -> None:
    (tmp_path / "a.file").write_text("a,b\n1,2\n")
    read = files("read_csv", "a.file", options, root=tmp_path, location=None)
    (tmp_path / "a.file").write_text(text)
    assert described(read, [tmp_path / "a.file"]) is None


def test_options_of_csv(tmp_path: Path) -> None:
    assert of(tmp_path, "1;NA\n", nullstr="NA", header=False) == (
        "csv",
        ("", ""),
        ("int", "string"),
    )
    text = "# no\na,b\n\n1,2\n"
    assert of(tmp_path, text, comment="#") == ("csv", ("a", "b"), ("int", "int"))
    assert of(tmp_path, "a,b\n1,1e5\n", all_varchar=True) == ("csv", ("a", "b"), ("string",) * 2)


def test_files_of_one_slice_are_described_together(tmp_path: Path) -> None:
    for name, text in (("a", "x,y\n1,1\n"), ("b", "x,y\n,1.5\n"), ("c", "x,z\n1,1\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    read = files("read_csv", "?.csv", {}, root=tmp_path, location=None)
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    assert described(read, paths[:2]) == ("csv", ("x", "y"), ("int", "double"))
    assert described(read, paths) is None
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(b"x,y\n1,1\n"))
    assert described(read, [packed]) == ("csv", ("x", "y"), ("int", "int"))
    assert described(read, [tmp_path / "a.csv.zst"]) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"b": 1, "a": "x"}\n\n{"a": null}\n', (("a", "string"), ("b", "bigint"))),
        ('{"a": 1}\n{"a": 1.5}\n', (("a", "double"),)),
        ('{"a": [1, null]}', (("a", ("array", "bigint")),)),
        ('{"b": {"c": true}}', (("b", (("c", "boolean"),)),)),
        ('{"a": "2026-01-01"}', (("a", "string"),)),
        ('[{"a": 1},\n {"b": null}]', (("a", "bigint"), ("b", "string"))),
        ('{"a": 1}\n{"a": "x"}\n', (("a", "string"),)),
        ('{"a": [1]}\n{"a": "x"}\n', None),
        ('{"a": []}\n', None),
        ('{"a": {}}\n', None),
        ('{"a": NaN}\n', None),
        ('{"a": 1, "A": 2}\n', None),
        ('{"a": 99999999999999999999}\n', None),
        ("3\n", None),
    ],
)  # fmt: skip
def test_json(tmp_path: Path, text: str, said: Any) -> None:
    assert of(tmp_path, text, "read_json") == (None if said is None else ("json", said))


def test_parquet(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in "abc"]
    for path, column in zip(paths, ([1], [2], ["x"]), strict=True):
        pq.write_table(pa.table({"x": column}), path)
    read = files("read_parquet", "a.parquet", {}, root=tmp_path, location=None)
    assert described(read, paths[:1]) == described(read, paths[1:2]) is not None
    assert described(read, paths[2:]) not in (None, described(read, paths[:1]))
    assert described(read, paths) is None


CELLS = (
    *("1", "-7", "007", "3000000000", "1.5", "x", "ab c", "", "true", "False", "2026-01-31"),
    *("2026-01-31 10:00:00", "2026-01-31T10:00:00", "2026-01-31T10:00:00.5Z", "n,a", "x'y"),
)


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(3))
def test_spark_infers_what_is_described(tmp_path: Path, spark: SparkSession, seed: int) -> None:
    chance, seen = random.Random(seed), dict[Any, Any]()
    for number in range(25):
        pools = [chance.sample(CELLS, 2) for _ in range(3)]
        lines = [",".join(f'"{chance.choice(pool)}"' for pool in pools) for _ in range(4)]
        path = tmp_path / f"{number}.csv"
        path.write_text("a,b,c\n" + "\n".join(lines) + "\n")
        read = files("read_csv", path.name, {}, root=tmp_path, location=None)
        said = described(read, [path])
        if said is None:
            continue
        types = [each.dataType.simpleString() for each in read.read(spark).schema]
        assert agrees(said, types), (lines, said, types)
        assert seen.setdefault(said, types) == types
    assert len(seen) > 3


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2))
def test_spark_infers_the_same_of_json_of_one_description(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    chance, seen = random.Random(seed), dict[Any, Any]()
    values = ("1", "-2.5", '"x"', "null", "true", "[1, 2]", '[{"c": 1}]', '{"d": "x", "C": 2}')
    for number in range(25):
        pools = {name: chance.sample(values, 2) for name in "ab"}
        lines = [
            "{" + ", ".join(f'"{name}": {chance.choice(pools[name])}' for name in pools) + "}"
            for _ in range(3)
        ]
        path = tmp_path / f"{number}.json"
        path.write_text("\n".join(lines))
        read = files("read_json", path.name, {}, root=tmp_path, location=None)
        said = described(read, [path])
        if said is not None:
            schema = read.read(spark).schema.json()
            assert seen.setdefault(said, schema) == schema, lines
    assert len(seen) > 3
