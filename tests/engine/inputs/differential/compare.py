"""Read a case by Penstock and by DuckDB, and compare rows and types."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from penstock.engine.inputs.file_reader import files
from penstock.errors import PenstockError
from penstock.spark.failures import explained
from tests.engine.inputs.differential.csv_cases import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark's types, and DuckDB's that they are read as
TYPES = {
    "bigint": "BIGINT",
    "int": "INTEGER",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "boolean": "BOOLEAN",
    "decimal(9,2)": "DECIMAL(9,2)",
}
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Answer:
    """Columns with DuckDB's types, and rows; or the error."""

    columns: tuple[tuple[str, str], ...] = ()
    rows: Rows | None = None
    error: str = ""


@dataclass(frozen=True)
class Compared:
    """``same``, ``refused`` (by Penstock), ``lenient`` (DuckDB fails), ``typed`` or ``differs``.

    ``typed``: files have columns in other orders. DuckDB takes their types by position then, though
    their values by name.
    """

    case: Case
    outcome: str
    penstock: Answer
    duckdb: Answer


def compare(case: Case, root: Path, session: SparkSession) -> Compared:
    for name, content in case.files.items():
        (root / name).write_bytes(content)
    ours, theirs = by_penstock(case, root, session), by_duckdb(case, root)
    if ours.rows is None:
        outcome = "refused" if theirs.rows is not None else "same"
    elif theirs.rows is None:
        outcome = "lenient"
    else:
        outcome = "same" if _agree(ours, theirs) else "differs"
        if outcome == "differs" and _reordered(case) and _same_shape(ours, theirs):
            outcome = "typed"
    return Compared(case, outcome, ours, theirs)


def by_penstock(case: Case, root: Path, session: SparkSession) -> Answer:
    try:
        read = files("read_csv", list(case.files), case.options, root=root, location=None)
    except PenstockError as error:
        return Answer(error=str(error))
    try:
        with explained():
            frame = read.read(session)
            columns = tuple((name, TYPES.get(kind, kind)) for name, kind in frame.dtypes)
            return Answer(columns, [tuple(row) for row in frame.collect()])
    except PenstockError as error:
        blamed = read.blamed(error)
        return Answer(error=str(blamed) if blamed else f"NOT BLAMED: {error}")


def by_duckdb(case: Case, root: Path) -> Answer:
    paths = [str(root / name) for name in case.files]
    options = {name: value for name, value in case.options.items() if name != "encoding"}
    if case.encoding != "utf-8":  # the same in UTF-8: not each is part of DuckDB
        for path in paths:
            text = Path(path).read_bytes().decode(case.encoding)
            Path(f"{path}.utf8").write_bytes(text.encode("utf-8"))
        paths = [f"{path}.utf8" for path in paths]
    call = ", ".join([str(paths), *(f"{name} = {_sql(value)}" for name, value in options.items())])
    try:
        with duckdb.connect(config={"threads": "1"}) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            answer = connection.sql(f"FROM read_csv({call})")
            columns = tuple(zip(answer.columns, map(str, answer.types), strict=True))
            return Answer(columns, answer.fetchall())
    except duckdb.Error as error:
        return Answer(error=str(error))


def _sql(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_sql(name)}: {_sql(kind)}" for name, kind in value.items()) + "}"
    return "'" + str(value).replace("'", "''") + "'"


def _agree(ours: Answer, theirs: Answer) -> bool:
    times = [index for index, (_, kind) in enumerate(theirs.columns) if kind == "TIME"]
    columns = tuple((name, "VARCHAR" if kind == "TIME" else kind) for name, kind in theirs.columns)
    if ours.columns != columns:
        return False
    return _canonical(ours.rows or [], times) == _canonical(theirs.rows or [], times)


def _reordered(case: Case) -> bool:
    """Return whether files have columns in several orders, which no option matches by name."""
    texts = [content.decode(case.encoding, "replace") for content in case.files.values()]
    rows = [re.split(r"[\r\n]", text.lstrip("\ufeff"), maxsplit=1)[0] for text in texts if text]
    return len(set(rows)) > 1 and not case.options.keys() & {"columns", "union_by_name"}


def _same_shape(ours: Answer, theirs: Answer) -> bool:
    names = [name for name, _ in theirs.columns]
    same_count = len(ours.rows or ()) == len(theirs.rows or ())
    return [name for name, _ in ours.columns] == names and same_count


def _canonical(rows: Rows, times: Sequence[int]) -> list[tuple[str, ...]]:
    """Texts of rows, in an order; a time of day is text in Spark, as the file has it."""
    return sorted(
        tuple(
            _text(str(value is None) if index in times else value)
            for index, value in enumerate(row)
        )
        for row in rows
    )


def _text(value: Any) -> str:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, Decimal):
        return str(value)
    return f"{type(value).__name__} {value!r}"
