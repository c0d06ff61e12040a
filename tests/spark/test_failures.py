"""Errors of Spark and of the machine, in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from penstock.errors import EnvironmentMissing, PenstockError, QueryFailed, SparkLost
from penstock.spark.failures import explain, explained, innermost, is_about, path_in

HEAP = "Job aborted: Lost task 1.0: java.lang.OutOfMemoryError: Java heap space\n\tat org.apache."
STOPPED = 'NullPointerException: the return value of "org...SparkContext.dagScheduler()" is null'


def error_of(action: Callable[[], object]) -> PenstockError:
    with pytest.raises(PenstockError) as caught, explained():
        action()
    return caught.value


def test_a_java_process_that_is_gone_is_one_clear_error() -> None:
    """When the JVM no longer listens, py4j passes on the system's error."""
    module: dict[str, Any] = {"__name__": "py4j.clientserver"}
    exec("def connect(): raise ConnectionRefusedError(111, 'Connection refused')", module)
    error = error_of(module["connect"])
    assert isinstance(error, SparkLost)
    assert "spark.driver.memory" in str(error)


def test_other_lost_connections_are_not_sparks() -> None:
    def refused() -> None:
        raise ConnectionRefusedError(111, "refused")

    with pytest.raises(ConnectionRefusedError), explained():
        refused()


@pytest.mark.parametrize(
    "text",
    [
        STOPPED,
        "Cannot call methods on a stopped SparkContext.\n",
        "Answer from Java side is empty",
        "Error while receiving",
        "org.apache.spark.sql.functions does not exist in the JVM",
        "status = StatusCode.UNAVAILABLE: Socket closed",
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNKNOWN\n\tdetails",
        "[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid",
    ],
)
def test_a_context_that_has_stopped_is_lost_too(text: str) -> None:
    assert isinstance(explain(Py4JNetworkError(text)), SparkLost)


def test_a_path_in_s3_without_its_file_system_says_what_to_set() -> None:
    text = 'UnsupportedFileSystemException: No FileSystem for scheme "s3"\n\tat org.apache.hadoop'
    error = explain(RuntimeError(text))
    assert isinstance(error, EnvironmentMissing)
    assert '"spark.hadoop.fs.s3.impl" = "org.apache.hadoop.fs.s3a.S3AFileSystem"' in str(error.hint)


def test_s3_without_its_classes_says_what_spark_needs() -> None:
    name = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    text = f"RuntimeException: java.lang.ClassNotFoundException: Class {name} not found\n\tat"
    error = explain(Py4JNetworkError(text))
    assert isinstance(error, EnvironmentMissing)
    assert error.message.endswith(f"it lacks the class {name}")
    assert "`penstock s3-jars DIRECTORY`" in str(error.hint)
    assert "hadoop-aws" in str(error.hint)


def test_a_full_heap_names_the_setting() -> None:
    error = explain(Py4JNetworkError(HEAP))
    assert isinstance(error, QueryFailed)
    assert error.message == "Spark ran out of memory (Java heap space)"
    assert "spark.driver.memory" in str(error.hint)


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ("`a`, `_penstock_file`, `t`.`_ducklake_internal_row_id`, `b`", "[`a`, `b`]."),
        ("`_penstock_position`", "cannot be resolved."),
    ],
)
def test_internal_columns_are_never_suggested(listed: str, said: str) -> None:
    text = f"cannot be resolved. Did you mean one of the following? [{listed}]. SQLSTATE: 42703"
    error = explain(Py4JNetworkError(f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] `c` {text}"))
    assert error.message.startswith("Spark: `c` cannot be resolved.")
    assert said in error.message
    assert "_penstock" not in error.message
    assert "_ducklake" not in error.message


@pytest.mark.parametrize("name", ["`rowid`", "`d`.`snapshot_id`"])
def test_columns_of_the_change_feed_are_those_of_table_changes(name: str) -> None:
    text = f"A column, variable, or function parameter with name {name} cannot be resolved."
    error = explain(Py4JNetworkError(f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] {text}"))
    assert "table_changes has rowid and snapshot_id" in str(error.hint)


@pytest.mark.parametrize(
    ("name", "instead"),
    [("HUGEINT", "DECIMAL(38, 0)"), ("UUID", "STRING"), ("GEOMETRY", "st_geomfromwkb")],
)
def test_types_of_duckdb_say_what_spark_calls_them(name: str, instead: str) -> None:
    text = f'[UNSUPPORTED_DATATYPE] Unsupported data type "{name}". SQLSTATE: 0A000'
    assert instead in str(explain(Py4JNetworkError(text)).hint)


def test_a_struct_says_how_it_becomes_a_variant() -> None:
    text = '[DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION] cannot cast "STRUCT<a: INT>" to "VARIANT".'
    assert "to_variant_object" in str(explain(Py4JNetworkError(text)).hint)


def test_a_file_that_only_the_query_names() -> None:
    text = "[PATH_NOT_FOUND] Path does not exist: file:/data/new.parquet. SQLSTATE: 42K03"
    assert explain(Py4JNetworkError(text)).message == "there is no file /data/new.parquet"
    of_a_table = explain(Py4JNetworkError(text), table="main.t", snapshot_id=3)
    assert "the data file /data/new.parquet of main.t at snapshot 3" in of_a_table.message


def test_sql_that_is_nested_too_deeply() -> None:
    def deeper() -> None:
        deeper()

    error = error_of(deeper)
    assert isinstance(error, QueryFailed)
    assert "nested too deeply" in error.message
    assert error.__cause__ is None


def test_a_parquet_file_in_nanoseconds_says_how_to_write_it() -> None:
    text = "[PARQUET_TYPE_ILLEGAL] Illegal Parquet type: INT64 (TIMESTAMP(NANOS,false)). SQLSTATE"
    error = explain(RuntimeError(text))
    assert isinstance(error, QueryFailed)
    assert "in nanoseconds" in error.message
    assert "coerce_timestamps='us'" in str(error.hint)


def test_the_file_of_an_error() -> None:
    reading = "Encountered error while reading file file:///data/a%20b.csv. Bad."
    error = QueryFailed(reading, data={"condition": "FAILED_READ_FILE.NO_HINT"})
    assert path_in(error) == Path("/data/a b.csv")
    assert is_about(error, ["/data"])
    assert not is_about(error, ["/other"])


def test_errors_that_name_no_file() -> None:
    malformed = QueryFailed("Malformed", data={"condition": "MALFORMED_RECORD_IN_PARSING"})
    assert is_about(malformed, ["/data"])
    assert not is_about(QueryFailed("no", data={}), ["/data"])


def test_the_cause_of_an_error() -> None:
    error = QueryFailed("failed")
    error.__cause__ = RuntimeError(
        "x\nCaused by: java.io.EOFException: [A_B] the end SQLSTATE: 1\n"
    )
    assert innermost(error) == "the end"
