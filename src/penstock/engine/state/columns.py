"""The metadata that holds all state tables, and the two kinds of columns that they have.

Text and 64-bit integers mean the same in SQLite, PostgreSQL and DuckDB, and are copied between
them.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, MetaData, Text

METADATA = MetaData()


def text_column(name: str, *, key: bool = False, null: bool = True) -> Column[str]:
    """Return a column of texts.

    Args:
        name: Its name.
        key: Whether it belongs to the primary key.
        null: Whether it may be NULL; a key may not.

    Returns:
        The column, of no table yet.
    """
    return Column(name, Text, primary_key=key, nullable=null and not key)


def number_column(name: str, *, key: bool = False, null: bool = True) -> Column[int]:
    """Return a column of whole numbers, which the database does not count up by itself.

    Args:
        name: Its name.
        key: Whether it belongs to the primary key.
        null: Whether it may be NULL; a key may not.

    Returns:
        The column, of no table yet.
    """
    return Column(name, BigInteger, primary_key=key, nullable=null and not key, autoincrement=False)
