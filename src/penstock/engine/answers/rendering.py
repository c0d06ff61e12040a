"""A model's query as it runs: macros expanded, tables by their full names, values put in.

Starts no Spark and reads no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from penstock.engine.answers.preview import newest_interval
from penstock.engine.planning.plan import Plan
from penstock.errors import ArgumentError, PartitionError, QueryFailed
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.query.render import RenderedQuery, UnsupportedSql
from penstock.model.script.arguments import OF_SLICE
from penstock.model.script.at_text import MARKS
from penstock.model.script.constants import Bindings, Constant
from penstock.model.script.file_uris import path_of
from penstock.model.script.sources import FileSource, FunctionSource, QuerySource, TableSource
from penstock.model.time.slice import WHOLE
from penstock.model.time.time_macros import TYPES, as_written
from penstock.sql.dialect import DUCKDB, SPARK
from penstock.sql.identifiers import quote_identifier, quoted
from penstock.sql.literals import plain_text_literal, text_literal
from penstock.sql.query.edits import Edit
from penstock.sql.tokens import ARGUMENT, MARKER, tokenize


@dataclass(frozen=True, slots=True)
class Rendering:
    """``sql`` is in the script's dialect, with its ``values`` in their places; ``spark`` is what
    Spark gets, which in DuckDB's dialect is long, as it guards what the two do differently. A
    manual script has none.

    ``slice`` is the one that it is for, of ``slices`` that the request is about. ``values`` are the
    partition, arguments and times of the run, as the script writes them: ``@start_ds``. ``reads``
    are files and functions that ``sql`` has names for.
    """

    model: str
    dialect: str
    slice: str | None
    slices: tuple[str, ...]
    values: Mapping[str, object]
    reads: Mapping[str, str]
    sql: str
    spark: str
    after: tuple[str, ...] = ()


def rendering(model: Model, plan: Plan | None) -> Rendering:
    """Return what a run of ``plan``, of this one model, has Spark read.

    Raises ArgumentError for a step in Python, PartitionError for one that has nothing to read.
    """
    if model.python is not None:
        raise ArgumentError(
            f"{model.name} is a step in Python, which has no query to render",
            hint=f"its declaration: penstock show {model.name}",
        )
    if plan is None or not model.strategy.runs:
        return _of(model, None, (), Bindings())
    (step,) = plan.steps
    step = newest_interval(plan, step)
    if reason := step.blocked or step.skipped:
        hint = "name a slice with --partition, or a range with --from and --to"
        raise PartitionError(f"{step.name}: {reason}", hint=hint)
    slices = tuple(str(each) for each in step.slices if each != WHOLE)
    if len(slices) > 1:
        step = plan.narrowed(step, step.slices[:1])
    return _of(model, step.slice, slices, step.bindings)


def _of(model: Model, slice_: str | None, slices: tuple[str, ...], bindings: Bindings) -> Rendering:
    query = model.query
    names = _names(query, bindings)
    try:
        if query.manual:
            sql, spark = ";\n\n".join(_statements(query, bindings)), ""
        else:
            spark = _text(query.render(names), bindings, SPARK)
            sql = spark if _is_spark(query) else _in_own_dialect(query, bindings) or spark
        after = tuple(_statements(query.statements, bindings)) if query.after else ()
    except UnsupportedSql as error:
        where = query.source.location(error.offset)
        raise QueryFailed(str(error), hint="write it in another way", location=where) from None
    return Rendering(
        model.name,
        query.dialect,
        slice_,
        slices,
        _values(query, bindings),
        _reads(query, names, bindings),
        sql.strip(),
        spark.strip(),
        after,
    )


def _values(query: Query, bindings: Bindings) -> dict[str, object]:
    """The values by what the script writes for them; of those that all have, what it uses."""
    tokens = [token for part in (*query.parts, *query.after) for token in part.statement.tokens]
    used = {token.value for token in tokens if token.kind == ARGUMENT}
    found: dict[str, object] = {}
    if bindings.partition is not None:
        found["{partition}"] = bindings.partition
    for name, value in bindings.arguments.items():
        if name in used or name not in OF_SLICE:
            found[as_written(name) if name in TYPES else f"${name}"] = value
    return found


def _is_spark(query: Query) -> bool:
    return {query.dialect, *(inner.dialect for inner in query.embeds.values())} == {SPARK}


def _in_own_dialect(query: Query, bindings: Bindings) -> str | None:
    """The query as its script has it; None where it embeds one of another dialect."""
    called = {
        source: _name(source, query, bindings, MARKS[query.dialect]) for source in query.sources
    }
    try:
        return _text(query.written(called), bindings, query.dialect)
    except UnsupportedSql:
        return None


def _statements(query: Query, bindings: Bindings) -> list[str]:
    mark = MARKS[query.dialect]
    called = {source: _name(source, query, bindings, mark) for source in query.sources}
    rendered = query.render_statements(called)
    return [_text(each, bindings, query.dialect).strip() for each in rendered]


def _text(rendered: RenderedQuery, bindings: Bindings, dialect: str) -> str:
    """The query with its values as literals; one that has no literal stays a marker."""
    values = rendered.args(bindings)
    edits = []
    for token in tokenize(rendered.sql, dialect):
        literal = None
        if token.kind in {MARKER, ARGUMENT} and token.value in values:
            literal = _literal(values[token.value], dialect)
        if literal is not None:
            edits.append(Edit(token.start, token.end, literal))
    parts: list[str] = []
    position = 0
    for edit in edits:
        parts += [rendered.sql[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, rendered.sql[position:]])


def _literal(value: object, dialect: str) -> str | None:
    """The value in SQL of the dialect; None where it has no literal."""
    if isinstance(value, list | tuple):
        items = [_literal(each, dialect) for each in value]
        written = ", ".join(map(str, items))
        return (
            None if None in items else f"array({written})" if dialect == SPARK else f"[{written}]"
        )
    write = _LITERALS[dialect].get(type(value))
    return None if write is None else write(value)


# Any: each takes values of the type that is its key.
_SPARK: Mapping[type, Callable[[Any], str]] = {
    type(None): lambda _: "NULL",
    bool: lambda value: str(value).lower(),
    int: str,
    float: lambda value: f"{value!r}D",
    Decimal: lambda value: f"{value}BD",
    str: text_literal,
    date: lambda value: f"DATE'{value.isoformat()}'",
    bytes: lambda value: f"X'{value.hex()}'",
}
_LITERALS: Mapping[str, Mapping[type, Callable[[Any], str]]] = {
    SPARK: _SPARK,
    DUCKDB: {
        **_SPARK,
        float: lambda value: f"{value!r}::DOUBLE",
        Decimal: str,
        str: plain_text_literal,
        date: lambda value: f"DATE '{value.isoformat()}'",
        bytes: lambda value: f"from_hex('{value.hex()}')",
    },
}


def _names(query: Query, bindings: Bindings) -> dict[QuerySource, str]:
    """Return what each source is called: tables by their full names, functions as they are called,
    but for those in DuckDB's dialect, whose translation names columns by them.
    """
    called = {source: _name(source, query, bindings, "`") for source in query.sources}
    if _is_spark(query):
        return called
    short = {source: quoted(name) for name, source in _functions(query).items()}
    return {**called, **short}


def _functions(query: Query) -> dict[str, QuerySource]:
    """Files and functions of lakes, by names of their own."""
    calls = [source for source in query.sources if not isinstance(source, TableSource)]
    return {f"{source.function}_{number}": source for number, source in enumerate(calls, 1)}


def _reads(query: Query, names: Mapping[QuerySource, str], bindings: Bindings) -> dict[str, str]:
    """Return what stands behind the names of `_functions` that the query shows."""
    return {
        name: _name(source, query, bindings, "`")
        for name, source in _functions(query).items()
        if names[source] == quoted(name)
    }


def _name(source: QuerySource, query: Query, bindings: Bindings, mark: str) -> str:
    """A source as SQL names it, names in quotes of this ``mark``."""
    dialect = SPARK if mark == "`" else query.dialect

    def shown(value: object) -> str:
        return _literal(value, dialect) or str(value)

    def call(function: str, positional: list[object], named: Options) -> str:
        options = [f"{name} = {shown(value.evaluate(bindings))}" for name, value in named]
        return f"{function}({', '.join([*map(shown, positional), *options])})"

    if isinstance(source, FileSource):
        path = path_of(source, bindings, query.arguments)
        return call(source.function, [path], source.options)
    if isinstance(source, FunctionSource):
        function = f"{quote_identifier(source.lake, mark=mark)}.{source.function}"
        return call(function, [each.evaluate(bindings) for each in source.positional], source.named)
    parts = (source.table.lake, source.table.schema, source.table.table)
    name = ".".join(quote_identifier(part, mark=mark) for part in parts)
    if source.at is None:
        return name
    return f"{name} AT ({source.at.kind.upper()} => {shown(source.at.value.evaluate(bindings))})"


Options = tuple[tuple[str, Constant], ...]
