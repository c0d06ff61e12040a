"""Columns and functions that a query names and that cannot be there, found without Spark.

Columns are looked at only in SELECTs whose sources are all known tables. A name that may be
anything else (an alias, a field, a parameter, a column of an outer query) is left to Spark. So is a
function: Spark may have others (of extensions, of a newer version), and only a name much like a
known one is taken for a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.errors import InputError, QueryFailed
from penstock.lazy import exp
from penstock.sql.identifiers import NAMES, fold
from penstock.sql.plain_select import NOT_COLUMNS
from penstock.sql.query.names import called, is_plain, sources_of
from penstock.sql.trust import FUNCTIONS

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OTHER_SOURCES = ("laterals", "match", "sample", "pivots")
_LATE = (exp.Order, exp.Having, exp.Sort, exp.Cluster, exp.Distribute, exp.Qualify)
# Inside of these a name may be a parameter, a unit of time or an option.
_OTHER_NAMES = (exp.Lambda, exp.Kwarg, exp.Star, exp.Hint, exp.Interval, exp.Var, exp.Aliases)
_HIDDEN = frozenset({"rowid"})
_UNITS = frozenset(
    {
        *("microsecond", "millisecond", "second", "minute", "hour", "day", "dayofyear", "week"),
        *("month", "quarter", "year", "both", "leading", "trailing"),
    }
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A name at ``text[start]`` that is not a column of ``tables``, which have ``columns``."""

    name: str
    start: int
    tables: tuple[str, ...]
    columns: tuple[str, ...]


def missing_columns(
    tree: exp.Expression, known: Mapping[str, Collection[str]]
) -> Iterator[Missing]:
    """In the order of the tree. ``known`` are columns by the folded names that the query has for
    its tables.
    """
    for select in tree.find_all(exp.Select):
        tables = _tables(select, known)
        if tables:
            yield from _in_select(select, tables)


def _tables(
    select: exp.Select, known: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, Collection[str]]]:
    """Return what the SELECT calls its tables, with their names and columns; none where others are
    among its sources, or around it.
    """
    if _is_inside(select) or any(map(select.args.get, _OTHER_SOURCES)):
        return {}
    tables: dict[str, tuple[str, Collection[str]]] = {}
    for source in sources_of(select)[0]:
        columns = known.get(fold(source.name)) if isinstance(source, exp.Table) else None
        if columns is None or source.args.get("db") or not is_plain(source):
            return {}
        tables[called(source)] = (source.name, columns)
    return tables


def _is_inside(select: exp.Select) -> bool:
    """Return whether it is part of another SELECT, whose columns it may name, and not just in its
    WITH.
    """
    child: exp.Expr = select
    while child.parent is not None:
        if isinstance(child.parent, exp.Select) and not isinstance(child, exp.With):
            return True
        child = child.parent
    return False


def _in_select(
    select: exp.Select, tables: Mapping[str, tuple[str, Collection[str]]]
) -> Iterator[Missing]:
    aliases = _names_of_results(select)
    plain = all(isinstance(item, exp.Column | exp.Star | exp.Alias) for item in select.expressions)
    for column in select.find_all(exp.Column):
        qualifier = fold(column.table)
        if column.args.get("db") or not _is_plain(column, select):
            continue
        if not plain and column.find_ancestor(*_LATE):
            continue
        if qualifier:
            searched = [tables[qualifier]] if qualifier in tables else []
        else:
            searched = [] if fold(column.name) in aliases | tables.keys() else [*tables.values()]
        if searched and not any(_has(columns, column.name) for _, columns in searched):
            yield Missing(
                column.name,
                column.this.meta["start"],
                tuple(name for name, _ in searched),
                tuple(name for _, columns in searched for name in columns),
            )


def _names_of_results(select: exp.Select) -> set[str]:
    """Names that later parts of the SELECT may use: aliases, and the last part of a field."""
    names = {alias.alias for alias in select.find_all(exp.Alias)}
    names |= {name.name for several in select.find_all(exp.Aliases) for name in several.aliases}
    names |= {field.name for field in select.find_all(exp.Dot)}
    names |= {column.name for column in select.find_all(exp.Column) if column.table}
    return set(map(fold, names))


def _is_plain(column: exp.Column, select: exp.Select) -> bool:
    """Return whether it certainly is a column of the SELECT's own sources, or a mistake."""
    name = column.this
    if not isinstance(name, exp.Identifier) or "start" not in name.meta:
        return False
    if not _PLAIN.fullmatch(name.name) or fold(name.name) in NOT_COLUMNS | _UNITS | _HIDDEN:
        return False
    around = column.find_ancestor(*_OTHER_NAMES, exp.Select)
    return around is select


def _has(columns: Collection[str], name: str) -> bool:
    return fold(name) in map(fold, columns)


# Spark's that SQL of a catalog may not call, and table functions.
_OTHERS = frozenset(
    {
        *("from_avro", "from_protobuf", "from_xml", "input_file_block_length"),
        *("input_file_block_start", "input_file_name", "java_method", "reflect", "schema_of_avro"),
        *("schema_of_xml", "to_avro", "to_protobuf", "try_reflect", "xpath", "xpath_boolean"),
        *("xpath_double", "xpath_float", "xpath_int", "xpath_long", "xpath_number"),
        *("xpath_short", "xpath_string", "python_worker_logs", "read_files"),
    }
)
_LIKE = 0.8  # of two names, as difflib measures it


@dataclass(frozen=True, slots=True)
class MissingFunction:
    """A name at ``text[start]`` that is not a function, and the one that it is most like."""

    name: str
    start: int
    nearest: str


def no_function(missing: MissingFunction, data: Mapping[str, Any] | None = None) -> QueryFailed:
    """The error for one: wrong input, as nothing has run."""
    error = QueryFailed(
        f"function {missing.name!r} does not exist",
        hint=f"did you mean {missing.nearest}?",
        data=dict(data or {}),
    )
    error.exit_code = InputError.exit_code
    return error


def missing_functions(
    tree: exp.Expression, known: Collection[str] = ()
) -> Iterator[MissingFunction]:
    """In the order of the tree; ``known`` are more functions, folded: the lake's macros."""
    calls = [
        call
        for call in tree.find_all(exp.Anonymous)
        if "start" in call.meta and not isinstance(call.parent, exp.Dot)
    ]
    builtin = FUNCTIONS | _OTHERS | NAMES
    unknown = [
        call for call in calls if fold(call.name) not in builtin and fold(call.name) not in known
    ]
    if not unknown:
        return
    installed = _of_pyspark()
    for call in unknown:
        name = fold(call.name)
        near = get_close_matches(name, FUNCTIONS | NAMES, n=1, cutoff=_LIKE)
        if near and name not in installed:
            yield MissingFunction(call.name, int(call.meta["start"]), near[0])


def _of_pyspark() -> frozenset[str]:
    """The functions of the installed version, read from its text: to import it takes a second."""
    spec = find_spec("pyspark")
    places = [] if spec is None else spec.submodule_search_locations or []
    names: set[str] = set()
    for place in places:
        file = Path(place) / "sql" / "functions" / "builtin.py"
        if file.is_file():
            names |= set(re.findall(r"^def (\w+)\(", file.read_text(encoding="utf-8"), re.M))
    return frozenset(map(fold, names))
