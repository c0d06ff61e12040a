"""Seeds: rows of a CSV file that dbt has read, written without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    import agate

    from dbt.adapters.penstock.handle import Handle
    from dbt.adapters.penstock.relation import PenstockRelation

_AT_ONCE = 1_000  # rows in a statement


def load(handle: Handle, relation: PenstockRelation, table: agate.Table) -> int:
    """Insert a table's rows, with their values bound; they are cast to the columns' types."""
    names = ", ".join(quoted(str(name)) for name in table.column_names)
    width = len(table.column_names)
    for start in range(0, len(table.rows), _AT_ONCE):
        rows = table.rows[start : start + _AT_ONCE]
        values: dict[str, Any] = {}
        parts = []
        for row in rows:
            marks = []
            for value in row:
                mark = f"p{len(values)}"
                values[mark] = value
                marks.append(f":{mark}")
            parts.append(f"({', '.join(marks)})")
        assert len(values) == width * len(rows)
        handle.run(f"INSERT INTO {relation.render()} ({names}) VALUES {', '.join(parts)}", values)
    return len(table.rows)
