"""Files of many slices that are read at once, and what keeps them apart."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.inputs.csv_files import CsvFiles
from penstock.engine.inputs.file_reader import Files, files
from penstock.engine.inputs.sliced_files import SlicedFiles, described, read_together
from penstock.errors import PenstockError, QueryFailed
from penstock.lazy import pa, pq
from penstock.model.script.constants import Literal
from penstock.model.script.sources import FileSource
from penstock.model.slicing.slice_condition import MadeApart, NotJoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SOURCE = FileSource("read_csv", Literal("x"))
NONE: Any = None  # no session: the columns are declared


def together(root: Path, paths: dict[str, Any], session: Any = NONE, **options: Any) -> SlicedFiles:
    found: dict[str, Any] = {}
    for slice_, path in paths.items():
        try:
            found[slice_] = {SOURCE: files("read_csv", path, options, root=root, location=None)}
        except PenstockError as error:
            found[slice_] = error
    return read_together({SOURCE: "s"}, found, session)[SOURCE]


def write(root: Path, *names: str, text: str = "a,b\n1,x\n") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


DECLARED = {"columns": {"a": "INTEGER", "b": "VARCHAR"}}


def test_all_files_are_read_at_once(tmp_path: Path) -> None:
    write(tmp_path, "1.csv", "2/x.csv", "2/y.csv", "3/z.csv", "3/_SUCCESS", "3/.z.crc")
    made = together(tmp_path, {"1": "1.csv", "2": "2/*.csv", "3": "3"}, **DECLARED)
    assert {Path(path).name: slice_ for path, slice_ in made.slices.items()} == {
        "1.csv": "1",
        "x.csv": "2",
        "y.csv": "2",
        "z.csv": "3",
    }
    assert list(made.files.paths) == list(made.slices)


@pytest.mark.parametrize(
    ("paths", "groups"),
    [
        ({"1": "1.csv", "2": "no.csv", "3": "2.csv"}, [("1", "3"), ("2",)]),
        ({"1": "no.csv", "2": "1.csv"}, [("1",), ("2",)]),
        ({"1": "1.csv", "2": "other.csv", "3": "2.csv"}, [("1", "3"), ("2",)]),
        ({"1": "1.csv", "2": "latin.csv"}, [("1",), ("2",)]),
        ({"1": "1.csv", "2": "d"}, [("1",), ("2",)]),
    ],
)
def test_what_differs_is_made_apart(
    tmp_path: Path, paths: dict[str, str], groups: list[tuple[str, ...]]
) -> None:
    write(tmp_path, "1.csv", "2.csv")
    write(tmp_path, "other.csv", "d/e/x.csv", text="a,b,c\n1,x,2\n")
    (tmp_path / "latin.csv").write_bytes("a,b\n1,é\n".encode("latin-1"))
    with pytest.raises(MadeApart) as raised:
        together(tmp_path, paths, **DECLARED)
    assert list(raised.value.groups) == groups


def test_files_that_are_written_differently_are_read_together(tmp_path: Path) -> None:
    write(tmp_path, "1.csv")
    write(tmp_path, "2.csv", text="b;a\nx;1\n")
    write(tmp_path, "3.csv", text="")
    made = together(tmp_path, {"1": "1.csv", "2": "2.csv", "3": "3.csv"}, **DECLARED)
    assert isinstance(made.files, CsvFiles)
    assert [(part.form.quoting.separator, part.places) for part in made.files.parts] == [
        (",", (0, 1)),
        (";", (1, 0)),
    ]


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        ({"1": "1.csv", "2": "?.csv"}, "is read by 1 and 2"),
        ({"1": "s3://b/1.csv", "2": "1.csv"}, "not of this machine"),
        ({"1": "1.csv", "2": "[2].csv"}, "as a pattern"),
    ],
)
def test_in_doubt_all_are_made_one_by_one(tmp_path: Path, paths: dict[str, str], why: str) -> None:
    write(tmp_path, "1.csv", "2.csv", "[2].csv", "d/e/x.csv")
    with pytest.raises(NotJoint, match=why) as raised:
        together(tmp_path, paths, **DECLARED)
    assert not isinstance(raised.value, MadeApart)


def test_an_error_about_a_file_names_its_slice(tmp_path: Path) -> None:
    write(tmp_path, "1.csv", "2.csv")
    made = together(tmp_path, {"1": "1.csv", "2": "2.csv"}, **DECLARED)
    write(tmp_path, "2.csv", text="a,b\n1,x\n3\n")
    error = QueryFailed("Malformed", data={"condition": "MALFORMED_RECORD_IN_PARSING"})
    blamed = made.blamed(error)
    assert blamed is not None
    assert (blamed.message, blamed.data["slice"]) == (
        "2.csv, line 3: the row has 1 of 2 columns",
        "2",
    )


@pytest.mark.spark
def test_only_files_of_the_same_inferred_columns_are_read_together(
    tmp_path: Path, spark: SparkSession
) -> None:
    for name, cell in {"1": "5", "2": "7", "3": "1.5", "4": "1e5", "5": "x"}.items():
        write(tmp_path, f"{name}.csv", text=f"a,b\n{cell},x\n")
    paths = {name: f"{name}.csv" for name in "12345"}
    with pytest.raises(MadeApart) as raised:
        together(tmp_path, paths, spark)
    assert list(raised.value.groups) == [("1", "2"), ("3", "4"), ("5",)]
    made = together(tmp_path, {name: paths[name] for name in "34"}, spark)
    frame = made.read(spark)
    assert dict(frame.dtypes) == {"a": "double", "b": "string", "s": "string"}
    assert sorted(map(tuple, frame.collect())) == [(1.5, "x", "3"), (1e5, "x", "4")]


NAMES = ("a b.csv", "a%20b.csv", "a+b.csv", "ü.csv", "a#b&c=d.csv", "it's;.csv", "100%.csv")


@pytest.mark.spark
def test_any_name_of_a_file(tmp_path: Path, spark: SparkSession) -> None:
    for number, name in enumerate(NAMES):
        write(tmp_path, f"in/{name}", text=f"a,b\n{number},x\n")
    made = together(tmp_path, {name: f"in/{name}" for name in NAMES}, spark, **DECLARED)
    found = {(row["a"], row["s"]) for row in made.read(spark).collect()}
    assert found == set(enumerate(NAMES))


def of(root: Path, text: str, function: str = "read_json", **options: Any) -> Any:
    """Describe a file that holds a text."""
    path = root / "a.file"
    path.write_text(text)
    read = files(function, "a.file", options, root=root, location=None)
    assert isinstance(read, Files)
    return described(read, [path])


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
    assert of(tmp_path, text) == (None if said is None else ("json", said))


def test_parquet(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in "abc"]
    for path, column in zip(paths, ([1], [2], ["x"]), strict=True):
        pq.write_table(pa.table({"x": column}), path)
    read = files("read_parquet", "a.parquet", {}, root=tmp_path, location=None)
    assert isinstance(read, Files)
    assert described(read, paths[:1]) == described(read, paths[1:2]) is not None
    assert described(read, paths[2:]) not in (None, described(read, paths[:1]))
    assert described(read, paths) is None


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
        assert isinstance(read, Files)
        said = described(read, [path])
        if said is not None:
            schema = read.read(spark).schema.json()
            assert seen.setdefault(said, schema) == schema, lines
    assert len(seen) > 3
