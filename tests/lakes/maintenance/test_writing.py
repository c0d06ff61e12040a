"""The same by Spark's executors as by the calling process: types, row ids, history, deletes."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import DataFileMissing
from penstock.lakes.lake import Lake
from penstock.lakes.maintenance.writing import Resources, lacks
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import files_needed, on_disk, play, seen
from tests.lakes.maintenance.test_merge_adjacent_files import NESTED, nested_rows
from tests.quick import no_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_SPARK = Resources(memory=1 << 20, spark_from=0)
_UUID = "[0-9a-f]{8}-[0-9a-f-]{27}"
_BY_TASK = re.compile(rf"penstock-{_UUID}-\d+-{_UUID}\.parquet$")


def _by_tasks(place: Place) -> list[str]:
    return sorted(path for path in on_disk(place) if _BY_TASK.search(path))


@pytest.mark.spark
def test_as_the_calling_process_does_it(place: Place, spark: SparkSession) -> None:
    changed = ["INSERT INTO t(i, f) VALUES (100, 'nan')", "UPDATE t SET r = NULL WHERE i > 4"]
    parts = ["ALTER TABLE t SET PARTITIONED BY (i)", nested_rows(1), nested_rows(1)]
    deleted = ["DELETE FROM t WHERE i = 1 AND rowid > 6", "DELETE FROM t WHERE i = 2"]
    play(place, [NESTED, nested_rows(0), nested_rows(3), *changed, nested_rows(6), *parts])
    play(place, deleted, inline=3)
    before = seen(place)
    last = max(key for key in before if isinstance(key, int))
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        merged = lake.merge_adjacent_files(resources=ON_SPARK)
        assert len(merged) > 1
        assert len(_by_tasks(place)) == len(merged)
        assert {"t"} < {Path(path).parent.name for path in _by_tasks(place)}
        assert seen(place, last) == before
        rewritten = lake.rewrite_data_files(delete_threshold=0, resources=ON_SPARK)
        files = sum(row.files_created for row in (*merged, *rewritten))
        assert len(_by_tasks(place)) == files > len(merged)
    after = seen(place)
    assert {key: after[key] for key in before if isinstance(key, int)} == {
        key: rows for key, rows in before.items() if isinstance(key, int)
    }
    assert after[max(key for key in after if isinstance(key, int))] == before[last]


@pytest.mark.spark
def test_a_part_that_fails_leaves_nothing_of_the_others(place: Place, spark: SparkSession) -> None:
    inserts = [f"INSERT INTO t VALUES ({at}, {at % 2})" for at in range(4)]
    play(place, ["CREATE TABLE t(i INT, p INT)", "ALTER TABLE t SET PARTITIONED BY (p)", *inserts])
    Path(sorted(path for path in on_disk(place) if "p=1" in path)[0]).unlink()
    there = on_disk(place)
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        with pytest.raises(DataFileMissing, match=r"main\.t"):
            lake.merge_adjacent_files(resources=ON_SPARK)
        assert on_disk(place) == there < files_needed(place)
        lake.rewrite_data_files(resources=ON_SPARK)  # nothing to do, so nothing to fail


@pytest.mark.spark
def test_executors_without_a_module_are_known(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import udf

    missing = udf(lambda _: importlib.import_module("not_on_any_executor").__name__, useArrow=False)
    with pytest.raises(PySparkException) as failed:
        spark.range(1).select(missing("id")).collect()
    assert lacks(failed.value, "not_on_any_executor")
    assert not lacks(failed.value, "penstock")


def test_without_a_session_the_calling_process_does_it(place: Place) -> None:
    play(place, ["CREATE TABLE t(i INT)", *(f"INSERT INTO t VALUES ({at})" for at in range(2))])
    with Lake.attach(place.uri, data_path=place.data_path, spark=no_session) as lake:
        assert len(lake.merge_adjacent_files(resources=ON_SPARK)) == 1
    assert not _by_tasks(place)
