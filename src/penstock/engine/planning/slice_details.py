"""Read the records of slices that only a status shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.engine.state import reading
from penstock.engine.state.claims import NOBODY, Holders, holders
from penstock.engine.state.records import CheckRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Details:
    """The records that only a status shows.

    Attributes:
        checks: The latest results of data tests, by tables and then by slices.
        lacked: What slices were made without, by the ids of reads.
        holders: The runs that hold slices now.
    """

    checks: Mapping[str, Mapping[str, Sequence[CheckRecord]]] = field(default_factory=dict)
    lacked: Mapping[str, str] = field(default_factory=dict)
    holders: Holders = NOBODY

    @classmethod
    def read(cls, connection: Connection, targets: Sequence[str]) -> Details:
        """Read the details of the slices of tables.

        Args:
            connection: The catalog.
            targets: The tables.

        Returns:
            The details.
        """
        checks: dict[str, dict[str, list[CheckRecord]]] = defaultdict(lambda: defaultdict(list))
        for check in reading.last_checks(connection, targets):
            checks[check.target][check.slice].append(check)
        return cls(checks, reading.lacked(connection, targets), holders(connection))
