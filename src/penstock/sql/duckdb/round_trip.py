"""Spark's SQL as DuckDB's, where that is known to mean the same.

The proof goes round: sqlglot writes the query for DuckDB, and Penstock's own strict translation of
that (`penstock.sql.duckdb`, each part of it tested against DuckDB) has to give back the query
that one began with. What does not come back as it was stays Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import UnsupportedFeature
from penstock.sql.duckdb.guards import unguarded
from penstock.sql.duckdb.text import readable
from penstock.sql.duckdb.translate import to_spark

_DUCKDB, _SPARK, _PLAIN = "duckdb", "spark", "databricks"


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A query in DuckDB's SQL. ``guarded`` is the same in Spark's, which fails when it is analysed
    where types make them differ; ``None`` where no type does.
    """

    text: str
    guarded: str | None


def in_duckdb(text: str) -> Counterpart | None:
    """A query of Spark's in DuckDB's SQL; ``None`` where that is not known to be the same."""
    try:
        tree = sqlglot.parse_one(text, read=_SPARK)
        written = tree.sql(_DUCKDB, comments=False)
        guarded = to_spark(sqlglot.parse_one(readable(written, set()), read=_DUCKDB))
        back = sqlglot.parse_one(guarded, read=_PLAIN)
    except (SqlglotError, UnsupportedFeature, ValueError):
        return None
    bare = unguarded(back)
    if bare.sql(_PLAIN, comments=False) != tree.sql(_PLAIN, comments=False):
        return None
    return Counterpart(written, None if bare == back else guarded)


def checked(text: str, macros: set[str]) -> tuple[str, exp.Expr]:
    """A query of DuckDB's as it is to be stored, and its tree, once Penstock can read it as well.

    ``macros`` are names of the lake's own (``main.f``), which it may call. Raises
    UnsupportedFeature naming what is not known, SqlglotError for what is no SQL.
    """
    tree = sqlglot.parse_one(readable(text, macros), read=_DUCKDB)
    to_spark(tree.copy())
    return tree.sql(_DUCKDB, comments=False), tree
