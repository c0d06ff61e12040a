"""Which tables a SELECT names, and where in its text; read with sqlglot, which runs nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.lake.naming import fold

_DIALECTS = ("spark", "databricks")
# `parquet.`/path`` and its like are files to Spark, not tables.
FORMATS = {"parquet", "csv", "json", "orc", "text", "avro", "xml", "binaryfile"}
_KEYWORD = re.compile(r"\bsettings(?=\s*\()", re.I)
_SYSTEM = re.compile(r"\bSYSTEM_VERSION(?=\s+AS\s+OF\b)", re.I)
_NEAREST = {
    "insert": "lake.table(name).append(df)",
    "merge": "lake.table(name).merge(df, keys)",
    "create": "lake.table(name).replace(df)",
    "delete": "lake.table(name).replace_slice(df, column, value)",
    "update": "lake.table(name).merge(df, keys)",
}


@dataclass(frozen=True, slots=True)
class Travel:
    """``AT (VERSION => 3)`` or ``TIMESTAMP AS OF '...'``. ``parameter`` is the name of a marker.

    Of what is neither a literal nor a marker, ``node`` is the tree and ``text`` as it was written.
    """

    kind: str  # "version" or "timestamp"
    value: str | None = None
    parameter: str | None = None
    node: exp.Expression | None = field(default=None, compare=False, repr=False)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A table named at ``text[start:end]``, which includes its time travel but not its alias."""

    start: int
    end: int
    schema: str | None
    name: str
    travel: Travel | None
    aliased: bool
    node: exp.Table | None = field(default=None, compare=False, repr=False)  # in the tree
    catalog: str | None = None  # of ``lake.main.t``


@dataclass(frozen=True, slots=True)
class Qualifier:
    """``main.`` of a column written ``main.orders.id``, at ``text[start:end]``.

    The lake's name may stand before it (``catalog``).
    """

    start: int
    end: int
    schema: str
    name: str
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """One SELECT as read: its text, its tree, and what it names, in the order of the text."""

    text: str
    tree: exp.Expression
    tokens: Sequence[Any] = field(repr=False)
    tables: tuple[Reference, ...]
    qualifiers: tuple[Qualifier, ...]
    files: tuple[str, ...] = ()  # what Spark reads as files, as written in its own SQL


class Unreadable(Exception):
    """sqlglot does not understand the text; Spark may, or may say better why it does not."""


def analyse(text: str) -> Analysis:
    """Read one SELECT, in Spark's dialect with the lake's time travel added.

    Raises Unreadable; UnsupportedFeature for other statements, naming what does it instead.
    """
    tree, tokens = _parse(text)
    found = [
        _reference(table, tokens, text) for table in tree.find_all(exp.Table) if _is_table(table)
    ]
    columns = [_qualifier(c) for c in tree.find_all(exp.Column) if c.args.get("db") is not None]
    return Analysis(
        text,
        tree,
        tokens,
        tuple(sorted(found, key=lambda r: r.start)),
        tuple(sorted(columns, key=lambda q: q.start)),
        tuple(table.sql("spark") for table in tree.find_all(exp.Table) if _is_file(table)),
    )


def _parse(text: str) -> tuple[exp.Expression, list[Any]]:
    problem: SqlglotError | AssertionError | None = None
    # The function settings() is a keyword to sqlglot, SYSTEM_VERSION is not: words as long keep
    # all places.
    known = _SYSTEM.sub(f"{'VERSION':14}", _KEYWORD.sub("setting_", text))
    for written in dict.fromkeys((text, known)):
        for dialect in _DIALECTS:
            try:
                trees = [tree for tree in sqlglot.parse(written, read=dialect) if tree is not None]
                return _only_select(trees), sqlglot.tokenize(written, read=dialect)
            except (SqlglotError, AssertionError) as error:  # it asserts on some unions
                problem = problem or error
    raise Unreadable(str(problem).splitlines()[0]) from problem


def _only_select(trees: Sequence[Any]) -> exp.Expression:
    if len(trees) != 1:
        raise QueryFailed(
            f"one SELECT is expected, the text holds {len(trees)} statements",
            hint="run them one by one",
        )
    tree: exp.Expression = trees[0]
    if not isinstance(tree, exp.Query | exp.Values):
        kind = tree.key if tree.key != "command" else str(tree.this).lower()
        raise UnsupportedFeature(
            f"{kind.upper()} is not a statement that sql() runs",
            hint=f"use {_NEAREST[kind]}" if kind in _NEAREST else "write a SELECT",
            data={"statement": kind},
        )
    return tree


def _is_table(table: exp.Table) -> bool:
    if not isinstance(table.this, exp.Identifier) or table.find_ancestor(exp.Hint):
        return False
    if fold(table.db) in FORMATS:
        return False
    return bool(table.db) or not _is_cte(table)


def _is_file(table: exp.Table) -> bool:
    """Whether it is neither a table of the lake nor a function."""
    if isinstance(table.this, exp.Identifier):
        return fold(table.db) in FORMATS
    return not isinstance(table.this, exp.Func)


def _is_cte(table: exp.Table) -> bool:
    """Whether a common table expression of this name is in scope."""
    child: Any = table
    parent: Any = table.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            index = next((i for i, c in enumerate(parent.expressions) if c is child), 0)
            visible = parent.expressions[: index + (1 if parent.recursive else 0)]
        else:
            with_ = parent.args.get("with_") or parent.args.get("with")
            visible = with_.expressions if with_ is not None and with_ is not child else []
        if any(fold(cte.alias) == fold(table.name) for cte in visible):
            return True
        child, parent = parent, parent.parent
    return False


def _reference(table: exp.Table, tokens: Sequence[Any], text: str) -> Reference:
    parts = table.parts
    end = parts[-1].meta["end"] + 1
    travel: Travel | None = None
    clause = table.args.get("when") or table.args.get("version")
    if clause is not None:
        after = end
        value = clause.args.get("expression")
        end = _value_end(after, tokens, text, value) or _clause_end(after, tokens)
        travel = _travel(clause, text[after:end], text[parts[0].meta["start"] : end])
    return Reference(
        start=parts[0].meta["start"],
        end=end,
        schema=table.db or None,
        name=table.name,
        travel=travel,
        aliased=bool(table.alias),
        node=table,
        catalog=table.catalog or None,
    )


def _travel(clause: exp.Expression, written: str, reference: str) -> Travel:
    """From ``HistoricalData`` (``AT (VERSION => 3)``) or ``Version`` (``VERSION AS OF 3``), as it
    was written after the table of ``reference``.
    """
    is_at = isinstance(clause, exp.HistoricalData)
    kind = clause.args.get("kind") if is_at else clause.this
    value = clause.args.get("expression")
    name = str(kind).lower()
    if name not in {"version", "timestamp"}:
        raise UnsupportedFeature(
            f"{clause.sql('spark')} is not understood",
            hint="write AT (VERSION => 3)",
            data={"reference": reference},
        )
    if isinstance(value, exp.Placeholder):
        return Travel(name, parameter=value.name)
    inner = value.this if isinstance(value, exp.Cast) else value
    if isinstance(inner, exp.Literal):
        return Travel(name, value=inner.name)
    if value is None or value.find(exp.Column, exp.Query, exp.AggFunc) is not None:
        raise UnsupportedFeature(
            f"{written.strip()} names a column or asks a query",
            hint="a snapshot is a number, a time, a :marker or an expression of these",
            data={"reference": reference},
        )
    start = _AT.match(written) if is_at else _AS_OF.match(written)
    text = "" if start is None else written[start.end() :]
    return Travel(name, node=value, text=text.rstrip()[:-1] if is_at else text)


_AT = re.compile(r"\s*AT\s*\(\s*\w+\s*=>", re.I)
_LONGEST = 40  # tokens of a time that is computed
_AS_OF = re.compile(r"\s*(?:FOR\s+)?\w+\s+AS\s+OF\b", re.I)


def _value_end(start: int, tokens: Sequence[Any], text: str, value: Any) -> int | None:
    """Where the value of an ``AS OF`` that follows ``start`` ends; ``None`` for an AT, whose
    bracket says it.

    Trees have no ends: it is the longest text after the words that reads as the value.
    """
    found = _AS_OF.match(text, start)
    if found is None or not isinstance(value, exp.Expression):
        return None
    end: int | None = None
    for token in [one for one in tokens if one.start >= found.end()][:_LONGEST]:
        try:
            read = sqlglot.parse_one(text[found.end() : token.end + 1], read=_DIALECTS[0])
        except SqlglotError:
            continue
        if read == value and token.text.upper() != "AS":  # which begins an alias
            end = int(token.end) + 1
    return end


def _clause_end(start: int, tokens: Sequence[Any]) -> int:
    """Where a time travel clause that follows ``start`` ends: at its ``)`` or after its value."""
    rest = [token for token in tokens if token.start >= start]
    depth = 0
    after_of = False
    for at, token in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ")" and depth == 0:
            return int(token.end) + 1
        if after_of and depth == 0 and not (token.text == ":" or _is_type_word(rest, at)):
            return int(token.end) + 1
        after_of = after_of or token.text.upper() in {"OF", "AS OF"}
    return int(rest[-1].end) + 1 if rest else start


def _is_type_word(tokens: Sequence[Any], at: int) -> bool:
    """``TIMESTAMP`` or ``DATE`` in front of a literal."""
    return tokens[at].text.upper() in {"TIMESTAMP", "DATE"} and at + 1 < len(tokens)


def _qualifier(column: exp.Column) -> Qualifier:
    db, table, catalog = column.args["db"], column.args["table"], column.args.get("catalog")
    first = db if catalog is None else catalog
    return Qualifier(
        start=first.meta["start"],
        end=table.meta["start"],
        schema=db.name,
        name=table.name,
        catalog=None if catalog is None else catalog.name,
    )
