"""Names that inlined tables have for columns of their own, refused for new columns as DuckDB does.

A table of such a column is never inlined: DuckDB refuses the column while small inserts are, by
whichever option of ``data_inlining_row_limit`` is nearest, and takes it where the limit is 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import NameTaken
from penstock.lake.inlined.text import SYSTEM
from penstock.lake.naming import fold

IN_FILES = frozenset({"_ducklake_internal_row_id", "_ducklake_internal_snapshot_id"})


def refuse(names: Iterable[str], table: str, limit: int) -> None:
    """Raise NameTaken for a column that ``table`` cannot have where ``limit`` rows are inlined."""
    for name in names if limit else ():
        if fold(name) in SYSTEM:
            raise NameTaken(
                f"{table} cannot have a column {name!r}, which inlined rows have of their own",
                hint="give it another name, or set data_inlining_row_limit to 0 before",
                data={"column": name, "table": table},
            )
