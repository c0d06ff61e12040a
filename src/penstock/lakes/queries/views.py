"""Views: the stored query, in DuckDB's or Spark's dialect, as a query for Spark."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lakes.format.naming import fold
from penstock.lakes.format.objects import View
from penstock.lazy import exp
from penstock.sql import dialect
from penstock.sql.macro_calls import expand, expansions
from penstock.sql.macros import Book
from penstock.sql.query.edits import Mapped
from penstock.sql.text import Unreadable, parse_query


def spark_text(view: View, book: Book) -> str:
    """The SELECT of a view in Spark's SQL, the lake's names and time travel still in it.

    Raises UnsupportedFeature where that is not known to mean the same.
    """
    if view.dialect == dialect.SPARK:
        return view.sql
    if view.dialect != dialect.DUCKDB:
        raise unreadable(view, f"its SQL is of the dialect {view.dialect}")
    # The translator is large, and most lakes have no view of that dialect.
    from penstock.sql.duckdb.text import named_inside, projections, readable
    from penstock.sql.duckdb.translate import to_spark

    try:
        names = projections(view.sql)
        text = expand(readable(named_inside(view.sql), book.names()), book, dialect.DUCKDB)
        tree = parse_query(text, dialect.DUCKDB)
        _name_columns(tree, names)
        return to_spark(tree)
    except Unreadable as error:
        raise unreadable(view, f"its SQL is not understood{error}") from None
    except UnsupportedFeature as problem:
        raise unreadable(view, problem.message) from None


def translated(
    text: str, book: Book, *, expression: bool = False, columns: dialect.Columns | None = None
) -> str:
    """A query in DuckDB's dialect in Spark's SQL, the lake's names and time travel still in it.

    ``columns`` are those of a table, where they are known.
    Raises UnsupportedFeature and QueryFailed with the place in ``text`` as ``data["start"]``.
    """
    try:
        steps = expansions(text, book, expression=expression)
    except Unreadable as error:
        raise _refused(error, error.at, expression=expression) from None
    expanded = steps[-1].text if steps else text
    try:
        return dialect.to_spark(
            *(expanded, dialect.DUCKDB, book.names()), expression=expression, columns=columns
        )
    except Unreadable as error:
        raise _refused(error, _origin(steps, error.at), expression=expression) from None
    except UnsupportedFeature as problem:
        if "start" in problem.data:
            problem.data["start"] = _origin(steps, int(problem.data["start"]))
        raise


def _origin(steps: Sequence[Mapped], at: int) -> int:
    """Return where a place was before the steps: in a macro's call for all that it stands for."""
    for step in reversed(steps):
        at = step.back(at)
    return at


def _refused(error: Unreadable, at: int, *, expression: bool) -> QueryFailed:
    what = "an expression" if expression else "a query"
    return QueryFailed(f"this is not {what} in DuckDB's dialect{error}", data={"start": at})


def column_names(view: View, columns: Sequence[str]) -> list[str]:
    """The names of a view's columns: a name that occurs again gets a number."""
    times: dict[str, int] = {}
    names: list[str] = []
    for column in (*view.aliases, *columns[len(view.aliases) :]):
        name = column
        if fold(column) in times:
            name = f"{column}_{times[fold(column)]}"
            times[fold(column)] += 1
        times.setdefault(fold(name), 1)
        names.append(name)
    return names


def unreadable(view: View, why: str) -> UnsupportedFeature:
    """The refusal of a view for a reason."""
    return UnsupportedFeature(
        f"the view {view.qualified_name} cannot be read: {why}",
        hint="read it with DuckDB, or write its query for Spark",
        data={"view": view.qualified_name, "dialect": view.dialect},
    )


def _name_columns(tree: exp.Expr, names: Sequence[str]) -> None:
    """Name the unnamed columns of the query as DuckDB does, by their text."""
    node = tree
    while not isinstance(node, exp.Select):
        if not isinstance(node, exp.Subquery | exp.SetOperation | exp.Paren):
            return
        node = node.this
    if len(node.expressions) != len(names):
        return
    for expression, name in zip(list(node.expressions), names, strict=True):
        named = isinstance(expression, exp.Alias | exp.Column | exp.Star | exp.Dot)
        if not named or (isinstance(expression, exp.Dot) and name.startswith("(")):
            expression.replace(exp.alias_(expression.copy(), name, quoted=True))
