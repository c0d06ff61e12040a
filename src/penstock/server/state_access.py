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

    The first transaction that writes creates the tables, or migrates them. Before it, reading
    answers what an empty agenda answers.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Use a catalog, without asking it anything.

        Args:
            catalog: The catalog of the project's first lake.
        """
        self._catalog = catalog
        self._is_migrated = False  # by this object: then reading need not ask for the version

    def read(self, ask: Callable[[Connection], T], otherwise: T) -> T:
        """Ask over one connection, which sees one state.

        Args:
            ask: The question.
            otherwise: The answer where the tables do not exist yet.

        Returns:
            The answer.
        """
        with self._catalog.reading() as connection:
            if self._is_migrated or version_of(connection) == VERSION:
                return ask(connection)
        return otherwise

    def write(self, act: Callable[[Connection], T]) -> T:
        """Act in a transaction, in which nobody else writes.

        Args:
            act: Writes, and returns what it has to say.

        Returns:
            The result of ``act``, which is committed.
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
    """Return the rows of which a column has one of these values, however many there are.

    Args:
        connection: The catalog.
        column: The column.
        values: The values.
        *columns: The columns to read; all of the table without them.

    Returns:
        The rows.
    """
    read_columns = columns or tuple(column.table.c)
    rows: list[Row[Any]] = []
    for batch in batches(values):
        rows += connection.execute(select(*read_columns).where(column.in_(batch)))
    return rows
