"""Which files have the same inferred columns, and that Spark infers what is said."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.inputs.file_reader import Files, files
from penstock.engine.inputs.inferred_columns import described
from penstock.lazy import pa, pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
