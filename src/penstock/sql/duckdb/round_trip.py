"""Spark's SQL as DuckDB's, where that is known to mean the same.

The proof goes round: sqlglot writes the query for DuckDB, and Penstock's own strict translation of
that (`penstock.sql.duckdb`, each part of it tested against DuckDB) has to give back the query
that one began with. What does not come back as it was stays Spark's.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.errors import UnsupportedFeature
from penstock.sql.duckdb.text import readable
from penstock.sql.duckdb.translate import to_spark

_DUCKDB, _SPARK, _PLAIN = "duckdb", "spark", "databricks"


def in_duckdb(text: str) -> str | None:
    """A query of Spark's in DuckDB's SQL; ``None`` where that is not known to be the same."""
    try:
        tree = sqlglot.parse_one(text, read=_SPARK)
        found = tree.sql(_DUCKDB, comments=False)
        back = to_spark(sqlglot.parse_one(readable(found, set()), read=_DUCKDB))
        return found if _plain(back) == tree.sql(_PLAIN, comments=False) else None
    except (SqlglotError, UnsupportedFeature, ValueError):
        return None


def _plain(text: str) -> str:
    return str(sqlglot.parse_one(text, read=_PLAIN).sql(_PLAIN, comments=False))


def checked(text: str, macros: set[str]) -> tuple[str, exp.Expr]:
    """A query of DuckDB's as it is to be stored, and its tree, once Penstock can read it as well.

    ``macros`` are names of the lake's own (``main.f``), which it may call. Raises
    UnsupportedFeature naming what is not known, SqlglotError for what is no SQL.
    """
    tree = sqlglot.parse_one(readable(text, macros), read=_DUCKDB)
    to_spark(tree.copy())
    return tree.sql(_DUCKDB, comments=False), tree
