"""Queries over a lake: its tables stand in for their names, and Spark runs the rest as written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from penstock.errors import ArgumentError, QueryFailed
from penstock.lake.failures import explain, explained
from penstock.lake.naming import DEFAULT_SCHEMA, TableRef, fold
from penstock.lake.references import Qualifier, Reference, Travel, Unreadable, references
from penstock.lake.snapshot import At
from penstock.lake.spark_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Resolve = Callable[[TableRef, At | None], "DataFrame"]


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


def run(
    spark: SparkSession,
    text: str,
    resolve: Resolve,
    *,
    args: Mapping[str, Any] | None = None,
    views: Mapping[str, DataFrame] | None = None,
) -> DataFrame:
    """The rows of one SELECT, lazily.

    Names of tables are given to ``resolve``, but for common table expressions and ``views``. A
    snapshot is named as ``t AT (VERSION => 3)``, ``t AT (TIMESTAMP => '...')``, ``t VERSION AS OF
    3`` or ``t TIMESTAMP AS OF '...'``; a time without a zone is in the session's. ``args`` are
    bound to ``:name`` markers, never put into the text. Raises QueryFailed, whose ``data`` has the
    ``line`` (and ``column``, where known) in ``text``.
    """
    bound = {name: _zoned(value, spark) for name, value in (args or {}).items()}
    try:
        tables, qualifiers = references(text)
    except Unreadable as problem:
        raise _unreadable(spark, text, bound, problem) from None
    local = {fold(name): df for name, df in (views or {}).items()}
    frames: dict[str, DataFrame] = {}
    edits: list[_Edit] = []
    for table in tables:
        name = f"t{len(frames)}"
        if table.schema is None and fold(table.name) in local:
            frames[name] = local[fold(table.name)]
        else:
            at = _at(spark, table.travel, bound)
            frames[name] = resolve(TableRef(table.schema or DEFAULT_SCHEMA, table.name), at)
        edits.append(_stand_in(text, table, name))
    edits += [_Edit(q.start, q.end, "") for q in qualifiers if _names_one_of(q, tables)]
    return _run(spark, text, sorted(edits, key=lambda e: e.start), frames, bound)


def _run(
    spark: SparkSession,
    text: str,
    edits: list[_Edit],
    frames: Mapping[str, DataFrame],
    args: Mapping[str, Any],
) -> DataFrame:
    """Spark replaces ``{t0}`` by views of its own, which it drops after the analysis."""
    values = dict(args) or None
    try:
        if not frames:
            return spark.sql(text, args=values)
        df = spark.sql(_edited(text, edits), args=values, **dict[str, Any](frames))
        df.schema  # noqa: B018 - Spark Connect analyses late: its errors belong here
        return df
    except Exception as error:  # placed if it is Spark's, else raised as it is
        with explained():
            _locate(error, text, edits)
        raise


def _edited(text: str, edits: list[_Edit]) -> str:
    """The text with the edits made; its own braces doubled, since Spark formats it."""
    parts: list[str] = []
    position = 0
    for edit in edits:
        parts += [_braces(text[position : edit.start]), edit.text]
        position = edit.end
    return "".join([*parts, _braces(text[position:])])


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _stand_in(text: str, table: Reference, name: str) -> _Edit:
    """``{t0}``, called what the table is called; line breaks inside are kept for the messages."""
    breaks = "\n" * text.count("\n", table.start, table.end)
    view = f"{{{name}}}"
    shown = view if table.aliased else f"({view} AS {_braces(quoted(table.name))})"
    return _Edit(table.start, table.end, shown + breaks)


def _names_one_of(qualifier: Qualifier, tables: list[Reference]) -> bool:
    wanted = (fold(qualifier.schema), fold(qualifier.name))
    return any(t.schema and (fold(t.schema), fold(t.name)) == wanted for t in tables)


def _at(spark: SparkSession, travel: Travel | None, args: dict[str, Any]) -> At | None:
    if travel is None:
        return None
    value: Any = travel.value
    if travel.parameter is not None:
        if travel.parameter not in args:
            raise ArgumentError(
                f"there is no value for :{travel.parameter}", hint="pass it in args"
            )
        value = args.pop(travel.parameter)
    if travel.kind == "version":
        return At(version=_version(value))
    return At(timestamp=_moment(value, spark))


def _version(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{value!r} is not a snapshot's version", hint="versions are whole numbers"
        ) from None


def _moment(value: Any, spark: SparkSession) -> datetime:
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise ArgumentError(
            f"{value!r} is not a time", hint="write it as 2013-01-02 03:04:05"
        ) from None
    zoned: datetime = _zoned(moment, spark)
    return zoned.astimezone(UTC)


def _zoned(value: Any, spark: SparkSession) -> Any:
    """A time without a zone in the session's: left to itself PySpark takes Python's own."""
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    return value.replace(tzinfo=ZoneInfo(zone))


def _unreadable(
    spark: SparkSession, text: str, args: Mapping[str, Any], problem: Unreadable
) -> QueryFailed:
    """Spark's own words where it refuses the text as well, else ours."""
    try:
        spark.sql(text, args=dict(args))
    except Exception as error:  # whatever it is, the text is refused below
        told = explain(error)
        if told.data.get("condition", "").startswith("PARSE"):
            return _at_line(told.message, told.data, text, [])
    return QueryFailed(f"the tables of the query cannot be found in it: {problem}")


def _locate(error: Exception, text: str, edits: list[_Edit]) -> None:
    """Raise what Spark said with the place in the text as the user wrote it."""
    if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
        return
    told = explain(error)
    if not isinstance(told, QueryFailed):
        raise told from error
    raise _at_line(told.message, told.data, text, edits) from error


def _at_line(message: str, data: Mapping[str, Any], text: str, edits: list[_Edit]) -> QueryFailed:
    """Lines are the same before and after the edits; columns only where none came before."""
    found = dict(data)
    fragment, line = found.pop("fragment", None), found.get("line")
    found.pop("start", None)
    if fragment and text.count(fragment) == 1:
        before = text[: text.index(fragment)]
        line = before.count("\n") + 1
        found |= {"line": line, "column": len(before) - before.rfind("\n")}
    elif any(text.count("\n", 0, edit.start) + 1 == line for edit in edits):
        found.pop("column", None)
    place = ":".join(str(found[key]) for key in ("line", "column") if key in found)
    return QueryFailed(f"{message}, at line {place}" if place else message, data=found)
