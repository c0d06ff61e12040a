"""The tracer sees the files that a statement crosses, and each time that its text is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scripts.trace_files import LIMITS, MARK, Trace, Tracer, measure

from penstock.lakes.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def traced(lake: Lake, text: str) -> Trace:
    with Tracer() as tracer, tracer.recording() as trace:
        lake.sql(text)
    return trace


def test_an_insert_is_traced(tmp_path: Path) -> None:
    with Lake.attach(f"ducklake:sqlite:{tmp_path}/m.sqlite", new_catalog=True) as lake:
        lake.sql("CREATE TABLE t (id BIGINT)")
        insert = f"INSERT INTO t VALUES ({MARK})"
        # The second insert is the first that finds rows there: it compiles what asks for them.
        first, _, second, third = (traced(lake, insert) for _ in range(4))
        nothing = traced(lake, "SHOW TABLES")
    assert {"lakes/lake.py", "lakes/statements/insert.py"} <= set(second.entered)
    assert first.readings == second.readings > 0
    assert nothing.readings == 0
    assert second == third
    assert second.passages == sum(second.entered.values()) - 1


@pytest.mark.spark
def test_a_condition_is_read_once_by_each_tokenizer(tmp_path: Path, spark: SparkSession) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, spark=spark, data_path=f"{tmp_path}/data", new_catalog=True) as lake:
        lake.sql(f"CREATE TABLE t AS SELECT id FROM range({2 * MARK})")
        statement = traced(lake, f"DELETE FROM t WHERE t.id >= {MARK}")
        with Tracer() as tracer, tracer.recording() as method:
            lake.table("t").delete(f"id >= {MARK} - 1")
    assert statement.readings == 2
    assert method.readings == 1


@pytest.mark.spark
def test_a_query_is_read_no_more_often_where_spark_may_have_to_start(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Its names are looked up before; the query that then runs has been read by that."""
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, spark=lambda: spark, data_path=f"{tmp_path}/data") as lake:
        lake.sql("CREATE TABLE t (id BIGINT)")
        query = f"SELECT id FROM t WHERE id = {MARK}"
        first, second = traced(lake, query), traced(lake, query)
    assert first.readings == second.readings > 0


def beyond(traces: Mapping[str, Trace]) -> dict[str, int]:
    crossed = {title: len(trace.entered) for title, trace in traces.items()}
    return {title: files for title, files in crossed.items() if files > LIMITS[title].files}


def test_an_append_crosses_no_more_files_than_its_limit(tmp_path: Path) -> None:
    with Tracer() as tracer:
        traces = measure(tracer, ["append"], None, tmp_path)
    assert traces
    assert beyond(traces) == {}


@pytest.mark.spark
def test_no_action_crosses_more_files_than_its_limit(tmp_path: Path, spark: SparkSession) -> None:
    with Tracer() as tracer:
        traces = measure(tracer, ["delete", "method", "merge"], spark, tmp_path)
    assert len(traces) == 4
    assert beyond(traces) == {}
