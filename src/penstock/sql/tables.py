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
from penstock.sql import time_travel
from penstock.sql.identifiers import fold
from penstock.sql.time_travel import Travel
from penstock.sql.tokens import NAME, NOT_CALLED, WORD, Token, Unclosed, tokenize, words

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
    tokens: Sequence[Token] = field(repr=False)
    tables: tuple[Reference, ...]
    qualifiers: tuple[Qualifier, ...]
    files: tuple[str, ...] = ()  # what Spark reads as files, as written in its own SQL


class Unreadable(Exception):
    """sqlglot does not understand the text; Spark may, or may say better why it does not."""


def analyse(text: str) -> Analysis:
    """Read one SELECT, in Spark's dialect with the lake's time travel added.

    Raises Unreadable; UnsupportedFeature for other statements, naming what does it instead.
    """
    tree = _parse(text)
    tokens = tokenize(text)
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


def _parse(text: str) -> exp.Expression:
    problem: SqlglotError | AssertionError | None = None
    # The function settings() is a keyword to sqlglot, SYSTEM_VERSION is not: words as long keep
    # all places.
    known = _SYSTEM.sub(f"{'VERSION':14}", _KEYWORD.sub("setting_", text))
    for written in dict.fromkeys((text, known)):
        for dialect in _DIALECTS:
            try:
                trees = [tree for tree in sqlglot.parse(written, read=dialect) if tree is not None]
                return _only_select(trees)
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


def _reference(table: exp.Table, tokens: Sequence[Token], text: str) -> Reference:
    parts = table.parts
    start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
    travel, end = time_travel.after(table, start, end, tokens, text)
    return Reference(
        start=start,
        end=end,
        schema=table.db or None,
        name=table.name,
        travel=travel,
        aliased=bool(table.alias),
        node=table,
        catalog=table.catalog or None,
    )


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


_TABLE = re.compile(r"\btable\b", re.I)
_SETS = frozenset({")", "UNION", "ALL", "DISTINCT", "EXCEPT", "INTERSECT"})


def in_full(text: str) -> str:
    """The text with every ``TABLE t`` that is a query of its own written out."""
    if not _TABLE.search(text):
        return text
    try:
        tokens = words(text)
    except Unclosed:
        return text
    for at in reversed(range(len(tokens) - 1)):
        named = tokens[at + 1].kind in {WORD, NAME}
        if tokens[at].upper == "TABLE" and named and _begins(tokens, at):
            text = f"{text[: tokens[at].start]}SELECT * FROM{text[tokens[at].end :]}"
    return text


def _begins(tokens: Sequence[Token], at: int) -> bool:
    """Whether a query may begin there: not after the bracket of a function."""
    if at == 0 or tokens[at - 1].upper in _SETS:
        return True
    caller = tokens[at - 2] if at > 1 else None
    if tokens[at - 1].text != "(" or caller is None or caller.kind not in {WORD, NAME}:
        return tokens[at - 1].text == "("
    return fold(caller.text) in NOT_CALLED
