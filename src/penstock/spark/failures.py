"""Spark's errors as Penstock's: the cause in one line, its place, never a Java stack trace."""

from __future__ import annotations

import re
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from penstock.errors import (
    DataFileCorrupt,
    DataFileMissing,
    DataPathError,
    EnvironmentMissing,
    PenstockError,
    QueryFailed,
    SparkLost,
)
from penstock.sql.duckdb import guards
from penstock.sql.text import too_deep

_CONDITION = re.compile(
    r"\[([A-Z][A-Z0-9_.]+)\]\s*(.*?)(?=\s*SQLSTATE:|\n\s*at |\n\n|$)", re.DOTALL
)
_LINE = re.compile(r"\(line (\d+), pos(?:ition)? (\d+)\)|line (\d+),? pos (\d+)")
_READ_FILE = re.compile(r"reading file (\S.*?)\. (?=File does not exist)", re.DOTALL)
_BAD_FILE = re.compile(r"while reading file (\S.*?\.parquet)\. ", re.DOTALL)
_NO_PATH = re.compile(r"Path does not exist: (.*?)\. SQLSTATE", re.DOTALL)
_SUGGESTED = re.compile(r" ?Did you mean one of the following\? \[([^\]]*)\]\.")
_UNRESOLVED = re.compile(r"with name `([^`]+)` cannot be resolved")
_OF_FEEDS = re.compile(r"with name `(?:[^`]+`\.`)?(?:rowid|snapshot_id)` cannot", re.IGNORECASE)
_INTERNAL = re.compile(r"`(?:_penstock_|_ducklake_internal_|_metadata)")
_JAVA_CAUSE = re.compile(r"(?:java|org)\.[\w.$]+(?:Exception|Error): ([^\n]+)")
_SCHEME = re.compile(r"^file:/+")
_NO_S3 = re.compile(r"Class (org\.apache\.hadoop\.fs\.s3a\.\w+) not found")
_NO_SCHEME = re.compile(r'No FileSystem for scheme "?(s3[an]?)\b')
_CANNOT_WRITE = re.compile(
    r"^(?:[^\n]*(?:Exception|Error): )?"
    r"([^\n]*?(?:Mkdirs failed|Permission denied|Read-only file system|No space left)[^\n]*)",
    re.MULTILINE,
)
_WRITTEN_TO = re.compile(r"Task failed while writing rows to (\S+?)\.?(?:\s|$)")
_UNREADABLE = "FAILED_READ_FILE."
_MISSING = {"FAILED_READ_FILE.FILE_NOT_EXIST", "PATH_NOT_FOUND"}
# Spark's messages after its context has stopped, as it does when the heap is full.
_STOPPED = re.compile(
    r"SparkContext (?:was|has been) shut ?down|stopped SparkContext|dagScheduler\(\)\" is null"
    r"|Answer from Java side is empty|Error while (?:sending|receiving)|does not exist in the JVM"
    # A server of Spark Connect that is gone, or another one at its place.
    r"|StatusCode\.(?:UNAVAILABLE|UNKNOWN|CANCELLED|ABORTED|INTERNAL)\b"
    r"|failed to connect to all addresses|\bRETRIES_EXCEEDED"
    r"|INVALID_HANDLE\.SESSION_|Maximum number of retries"
)
_NO_MEMORY = re.compile(r"OutOfMemoryError: ?([^\n]*)|\[(UNABLE_TO_ACQUIRE_MEMORY)")
MORE_MEMORY = (
    "give it more: a larger container or machine, of which it takes its share, or as in "
    '"spark.driver.memory" = "4g" in [spark.conf] of penstock.toml'
)
_IN_NANOS = "a Parquet file has timestamps in nanoseconds, and those of Spark hold microseconds"
_NANOS = re.compile(r"Illegal Parquet type: .*NANOS")
#: the script that downloads what Spark needs for S3, which is part of the package
_OURS = "USER_RAISED_EXCEPTION"
SPARKS_SQL = "queries and expressions are in Spark's SQL: see docs/sql.md for what is added"
_HINTS = {
    "PARSE_SYNTAX_ERROR": SPARKS_SQL,
    "UNRESOLVED_ROUTINE": "functions are Spark's and the lake's macros: CREATE MACRO makes one",
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION": (
        "table functions are Spark's (range, explode, ...), the lake's and its macros; a file is "
        "parquet.`path` or a DataFrame of views="
    ),
    "DATATYPE_MISSING_SIZE": "write STRING",
    "UNSUPPORTED_TIME_TYPE": "write a time of day as text: '10:00:00'",
    "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN": "a condition is a comparison: id <> 0 instead of id",
    "WKB_PARSE_ERROR": "a geometry is made of well-known bytes: st_geomfromwkb(X'0101...')",
    "CAST_INVALID_INPUT": "correct the value, or use try_cast, which makes NULL of it",
}
# DuckDB's types that have other names in Spark's SQL.
_NO_TYPE = {
    **dict.fromkeys(("HUGEINT", "UHUGEINT"), "write DECIMAL(38, 0)"),
    "UBIGINT": "write DECIMAL(20, 0)",
    "UINTEGER": "write BIGINT",
    "USMALLINT": "write INT",
    "UTINYINT": "write SMALLINT",
    "GEOMETRY": "write st_geomfromwkb(bytes), or leave the cast out",
    **dict.fromkeys(("UUID", "VARCHAR", "TEXT"), "write STRING"),
    "TIMESTAMPTZ": "write TIMESTAMP",
}


def local_path(uri: str) -> str:
    """``file:///a%20b`` or ``file:/a b`` as a plain path; other URIs stay as they are."""
    if not uri.startswith("file:"):
        return uri
    return _SCHEME.sub("/", unquote(uri) if uri.startswith("file://") else uri)


def explain(
    error: BaseException, *, table: str | None = None, snapshot_id: int | None = None
) -> PenstockError:
    """Penstock's error for an ``error`` raised by Spark.

    DataFileMissing for a missing file that the catalog names, DataFileCorrupt for a file that
    cannot be read, DataPathError when the data path cannot be written, UnsupportedFeature where the
    types in a query in DuckDB's SQL cannot be translated, else QueryFailed. ``data`` has
    ``condition`` (Spark's name of the error), ``line`` and ``column`` (in the SQL text, from 1) and
    ``fragment`` where known.
    """
    text = str(error)
    condition, cause = _condition(error, text)
    fault = _of_the_machine(error, text, condition)
    if fault is not None:
        return fault
    if condition in _MISSING:
        return _file_missing(text, table, snapshot_id)
    if (condition or "").startswith(_UNREADABLE) and _BAD_FILE.search(text):
        return _file_corrupt(text, cause, table, snapshot_id)
    data: dict[str, Any] = {"condition": condition, **_place(error, text)}
    refusal = guards.told(condition, cause)
    if refusal is not None:
        refusal.data |= data
        return refusal
    if condition == _OURS:  # raise_error, whose text says all: ours mostly, or the user's own
        return QueryFailed(cause, data=data | ({"table": table} if table else {}))
    name = f" ({condition})" if condition else ""
    hint = _of_an_alias(condition, cause, text) or _hint(condition, cause)
    message = _IN_NANOS if _NANOS.search(cause) else f"Spark: {cause}{name}"
    return QueryFailed(message, hint=hint, data=data)


def _of_the_machine(error: BaseException, text: str, condition: str | None) -> PenstockError | None:
    """Errors that the query did not cause: Spark has ended or lacks memory, space or permission."""
    if isinstance(error, ConnectionError) or _STOPPED.search(text):
        return SparkLost(
            "Spark has ended while it was working: most often it ran out of memory",
            hint=f"run again, which restarts it; if it ends again, {MORE_MEMORY}",
        )
    full = _NO_MEMORY.search(text)
    if full is not None:
        return QueryFailed(f"Spark ran out of memory ({full[1] or full[2]})", hint=MORE_MEMORY)
    lacks = _NO_S3.search(text)
    if lacks is not None:
        return EnvironmentMissing(
            f"Spark cannot read or write S3: it lacks the class {lacks[1]}",
            hint="give it hadoop-aws of its Hadoop (3.5.0 for PySpark 4.3.0) and the AWS SDK as "
            '"spark.jars" in [spark.conf]: `penstock s3-jars DIRECTORY` gets them, by Maven',
        )
    scheme = _NO_SCHEME.search(text)
    if scheme is not None:
        return EnvironmentMissing(
            f"Spark does not read {scheme[1]}:// paths as it is set up",
            hint=f'write "spark.hadoop.fs.{scheme[1]}.impl" = '
            '"org.apache.hadoop.fs.s3a.S3AFileSystem" in [spark.conf] of penstock.toml, with the '
            "keys; it needs the jars that `penstock s3-jars DIRECTORY` downloads as spark.jars",
        )
    cannot_write = _CANNOT_WRITE.search(text)
    if cannot_write is not None and condition in (None, "TASK_WRITE_FAILED"):
        return _unwritable(text, cannot_write[1].split(" (exists=")[0].strip())
    return None


def _unwritable(text: str, cause: str) -> DataPathError:
    """Return the error of a directory that Spark cannot write to, with its path if Spark has it."""
    path = _WRITTEN_TO.search(text)
    where = "the data path" if path is None else local_path(path[1])
    hint = "check that the directory exists, is writable and has space"
    if "No space left" in cause:
        hint = (
            "nothing was published: free some space there, or in Spark's directory of temporary "
            'files ("spark.local.dir" in [spark.conf], by default /tmp)'
        )
        with suppress(OSError):
            free = shutil.disk_usage(where).free // (1 << 20)
            cause = f"{cause} ({free:,} MiB are free there)"
    return DataPathError(f"{where} cannot be written: {cause}", hint=hint)


def _of_an_alias(condition: str | None, cause: str, text: str) -> str | None:
    """The hint for an alias in WHERE, which Spark's plan reveals: it is computed after WHERE."""
    name = _UNRESOLVED.search(cause) if (condition or "").startswith("UNRESOLVED_COLUMN") else None
    if name is None or not re.search(rf" AS {re.escape(name[1])}#\d", text):
        return None
    return (
        f"{name[1]} is an alias, which WHERE and JOIN do not know: write what it stands for, "
        "or put the SELECT in a subquery"
    )


def _hint(condition: str | None, cause: str) -> str | None:
    if condition == "UNSUPPORTED_DATATYPE":
        return next((hint for name, hint in _NO_TYPE.items() if f'"{name}' in cause.upper()), None)
    if condition == "PARSE_SYNTAX_ERROR" and "near '\"" in cause:
        return '"..." is a name: a text is in single quotes'
    if _NANOS.search(cause):
        return (
            "write the file in microseconds: to_parquet(..., coerce_timestamps='us') of pandas, "
            "which fails where a value would change; or read it with DuckDB"
        )
    if _OF_FEEDS.search(cause):
        return "table_changes has rowid and snapshot_id; table_insertions, table_deletions do not"
    if 'to "VARIANT"' in cause:
        return "write to_variant_object(...) of a struct or a map"
    return _HINTS.get(condition or "")


@contextmanager
def explained(*, table: str | None = None, snapshot_id: int | None = None) -> Iterator[None]:
    """Turn errors of Spark in the block into Penstock's, with Spark's as the cause."""
    try:
        yield
    except PenstockError:
        raise
    except RecursionError:  # without its thousand frames
        raise too_deep() from None
    except Exception as error:  # Spark and py4j share no root; other errors pass through
        if not _from_spark(error):
            raise
        raise explain(error, table=table, snapshot_id=snapshot_id) from error


def _from_spark(error: BaseException) -> bool:
    if type(error).__module__.split(".")[0] in {"pyspark", "py4j", "grpc"}:
        return True
    # Or it is of the connection to Spark's Java process.
    frames = traceback.walk_tb(error.__traceback__)
    return isinstance(error, ConnectionError) and any(
        frame.f_globals.get("__name__", "").startswith("py4j.") for frame, _ in frames
    )


def _condition(error: BaseException, text: str) -> tuple[str | None, str]:
    get = getattr(error, "getCondition", None)
    condition = get() if get is not None else None
    match = _CONDITION.search(text)
    if match is None:
        return condition, java_cause(text)
    return condition or match[1], _SUGGESTED.sub(_suggestion, " ".join(match[2].split()))


def _suggestion(match: re.Match[str]) -> str:
    """Spark's list of similar names without the lake's own helper columns."""
    names = [name for name in match[1].split(", ") if not _INTERNAL.search(name)]
    return f" Did you mean one of the following? [{', '.join(names)}]." if names else ""


def java_cause(text: str) -> str:
    """The innermost message of a Java stack, or the first line of the text."""
    causes = _JAVA_CAUSE.findall(text)
    if causes:
        return str(causes[-1]).split(" (exists=")[0].strip()
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")


def _place(error: BaseException, text: str) -> dict[str, Any]:
    contexts: list[Any] = getattr(error, "getQueryContext", list)() or []
    match = _LINE.search(text)
    place: dict[str, Any] = {}
    if match is not None:
        line, column = (match[1], match[2]) if match[1] else (match[3], match[4])
        place = {"line": int(line), "column": int(column) + 1}
    for context in contexts[:1]:
        if str(context.contextType()).endswith("SQL"):
            place |= {"start": context.startIndex(), "fragment": context.fragment()}
    return place


def _file_missing(text: str, table: str | None, snapshot_id: int | None) -> DataFileMissing:
    named = _NO_PATH.search(text)
    match = _READ_FILE.search(text) or named
    path = local_path(match[1]) if match else "a data file"
    if named is not None and table is None:  # by the query: files of tables come with their table
        return DataFileMissing(
            f"there is no file {path}", hint="check the path", data={"path": path}
        )
    missing = file_missing(path, table, snapshot_id)
    missing.hint = (
        "if maintenance removed it while this ran, run again, and keep files for longer "
        f"(the option delete_older_than); else {missing.hint}"
    )
    return missing


def _file_corrupt(
    text: str, cause: str, table: str | None, snapshot_id: int | None
) -> DataFileCorrupt:
    match = _BAD_FILE.search(text)
    path = local_path(match[1]) if match else "a data file"
    _, named, why = cause.partition(f"{match[1]}. ") if match else ("", "", "")
    return file_corrupt(path, why if named and why else java_cause(text), table, snapshot_id)


def file_missing(path: str, table: str | None, snapshot_id: int | None) -> DataFileMissing:
    """The error for a missing file that a catalog or a log names."""
    return DataFileMissing(
        f"the data file {path}{_whose(table, snapshot_id)} is missing",
        hint="restore the file, or read a snapshot that does not need it",
        data={"path": path, "table": table, "snapshot_id": snapshot_id},
    )


def file_corrupt(
    path: str, why: str, table: str | None, snapshot_id: int | None
) -> DataFileCorrupt:
    """The error for an existing file with wrong content."""
    return DataFileCorrupt(
        f"{path}{_whose(table, snapshot_id)} cannot be read: {why}",
        hint="restore the file, or read a snapshot that does not need it",
        data={"path": path, "table": table, "snapshot_id": snapshot_id, "why": why},
    )


def _whose(table: str | None, snapshot_id: int | None) -> str:
    whose = f" of {table}" if table else ""
    return whose + ("" if snapshot_id is None else f" at snapshot {snapshot_id}")


_READING = re.compile(r"reading file (file:\S*?)\. ")
_CAUSED_BY = re.compile(r"Caused by: [\w.$]+: (?:\[[\w.]+\] )?(.+?)(?: SQLSTATE: .*)?(?:\n|$)")
_MALFORMED = "MALFORMED_RECORD"
FILE = "file"  # in the data of an error: the path of the file that is wrong


def innermost(error: PenstockError) -> str:
    """Return why a file could not be read: the message of Spark itself names only the file."""
    causes = _CAUSED_BY.findall(str(error.__cause__))
    return causes[-1].strip() if causes else ""


def cause_of(error: PenstockError) -> str:
    """Return all that Spark says of an error."""
    return f"{error.message}\n{error.__cause__ or ''}"


def path_in(error: PenstockError) -> Path | None:
    """Return the file that an error names."""
    named = error.data.get("path") or next(iter(_READING.findall(cause_of(error))), None)
    return None if named is None else Path(local_path(str(named)))


def is_about(error: PenstockError, paths: Sequence[str]) -> bool:
    """Return whether an error may be about one of these files."""
    path = path_in(error)
    if path is None:
        return str(error.data.get("condition")).startswith(_MALFORMED)
    return any(path.is_relative_to(parent) for parent in paths)
