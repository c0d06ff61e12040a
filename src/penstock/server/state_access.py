"""Transactions on the tables of the agenda, for processes that serve a project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Column, Connection, Row, select

from penstock.engine.state.run_history import batches
from penstock.engine.state.tables import VERSION, migrate, version_of

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog

T = TypeVar("T")


class StateAccess:
    """Reads and writes the agenda of one catalog. Threads may share it.

    The first write creates or migrates the tables. Before it, a read returns its default.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Create an access. It does not read the catalog yet.

        Args:
            catalog: The catalog of the project's first lake.
        """
        self._catalog = catalog
        self._is_migrated = False  # by this object; then a read need not check the version

    def read(self, query: Callable[[Connection], T], default: T) -> T:
        """Run a query over one connection, on one consistent state.

        Args:
            query: Reads over a connection, and returns a result.
            default: The result if the tables do not exist yet.

        Returns:
            The result.
        """
        with self._catalog.reading() as connection:
            if self._is_migrated or version_of(connection) == VERSION:
                return query(connection)
        return default

    def write(self, act: Callable[[Connection], T]) -> T:
        """Run a function in a transaction that excludes other writers, and commit it.

        Args:
            act: Writes over a connection, and returns a result.

        Returns:
            The result of ``act``.
        """
        with self._catalog.writing() as connection:
            if not self._is_migrated:
                migrate(connection)
            result = act(connection)
        self._is_migrated = True
        return result


def rows_in(
    connection: Connection, column: Column[str], values: Sequence[str], *columns: Column[Any]
) -> list[Row[Any]]:
    """Return the rows in which a column has one of the values, in batches of values.

    Args:
        connection: The catalog.
        column: The column.
        values: The values, of any number.
        *columns: The columns to read. By default, all columns of the table are read.

    Returns:
        The rows.
    """
    read_columns = columns or tuple(column.table.c)
    rows: list[Row[Any]] = []
    for batch in batches(values):
        rows += connection.execute(select(*read_columns).where(column.in_(batch)))
    return rows
