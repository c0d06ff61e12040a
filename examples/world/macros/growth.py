"""Macros of this project: a script calls them as @name(...), and they return SQL."""

from penstock import macro


@macro
def growth(column: str) -> str:
    """The growth of a column since the row before it of the same country."""
    return f"{column} / lag({column}) OVER (PARTITION BY iso ORDER BY year) - 1"
