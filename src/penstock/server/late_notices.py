"""Store sent notices of late slices in the catalog, so that no process sends them again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, insert, select

from penstock.engine.state.agenda_tables import LATE_NOTICE
from penstock.engine.state.claims import database_time
from penstock.engine.state.tables import to_text
from penstock.server.state_access import StateAccess

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog


@dataclass(frozen=True, slots=True)
class LateNotice:
    """A sent notification that a slice is late.

    Attributes:
        recipient: The name of the section ``[notify.NAME]``.
        model: The model.
        key: The partition, or `WHOLE`.
    """

    recipient: str
    model: str
    key: str


class LateNoticeStore:
    """The store of the notices in one catalog. Threads may share it."""

    def __init__(self, catalog: Catalog) -> None:
        """Create a store. It does not read the catalog yet.

        Args:
            catalog: The catalog of the project's first lake.
        """
        self._access = StateAccess(catalog)

    def read(self) -> frozenset[LateNotice]:
        """Return all notices.

        Returns:
            The notices.
        """
        return self._access.read(_read, frozenset())

    def change(self, added: Iterable[LateNotice] = (), removed: Iterable[LateNotice] = ()) -> None:
        """Add and remove notices in one transaction.

        Args:
            added: Sent notices. A stored notice is replaced.
            removed: Notices of slices that are no longer late.
        """
        self._access.write(partial(_change, added=tuple(added), removed=tuple(removed)))


def _read(connection: Connection) -> frozenset[LateNotice]:
    columns = (LATE_NOTICE.c.recipient, LATE_NOTICE.c.model, LATE_NOTICE.c.slice_key)
    return frozenset(LateNotice(*row) for row in connection.execute(select(*columns)))


def _change(
    connection: Connection, added: tuple[LateNotice, ...], removed: tuple[LateNotice, ...]
) -> None:
    moment = to_text(database_time(connection))
    columns = LATE_NOTICE.c
    for notice in (*added, *removed):
        connection.execute(
            delete(LATE_NOTICE).where(
                columns.recipient == notice.recipient,
                columns.model == notice.model,
                columns.slice_key == notice.key,
            )
        )
    for notice in added:
        values = {"recipient": notice.recipient, "model": notice.model, "slice_key": notice.key}
        connection.execute(insert(LATE_NOTICE).values(**values, told_at=moment))
