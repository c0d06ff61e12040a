"""What a test may refer to: the slice's columns, other tables, scripts. Names are resolved here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound, Location
from penstock.lake.format.naming import fold
from penstock.model.asset import Asset
from penstock.model.nearest import nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.engine.pins import Rows


@dataclass(frozen=True, slots=True)
class ReferencedColumn:
    """A column of another table, which is to be registered as ``view``.

    ``few`` are its values, where they are few enough to be looked at without Spark.
    """

    view: str
    column: str
    few: Callable[[], pa.ChunkedArray | None]


@dataclass(frozen=True, slots=True)
class ReferencedTable:
    """Another table: its view, its columns, and `ReferencedColumn.few` of one of them."""

    view: str
    columns: tuple[str, ...]
    few: Callable[[str], pa.ChunkedArray | None]


@dataclass(frozen=True, slots=True)
class Scope:
    """The surroundings of one test.

    ``view`` is the candidate slice; ``types`` are its columns with their types in Spark's SQL;
    ``prefix`` makes the names of bound values unique; ``tables`` gives another table, ``scripts``
    the rows of a test script.
    """

    view: str
    types: Mapping[str, str]
    prefix: str
    location: Location | None
    tables: Callable[[Asset], ReferencedTable]
    scripts: Callable[[str], Rows]

    def column(self, name: str) -> str:
        """The slice's column of that name, whatever its case."""
        return self._find(name, tuple(self.types), "the result")

    def type_name(self, column: str) -> str:
        return self.types[column]

    def referenced(self, asset: Asset, column: str) -> ReferencedColumn:
        table = self.tables(asset)
        found = self._find(column, table.columns, asset.path)
        return ReferencedColumn(table.view, found, lambda: table.few(found))

    def script(self, path: str) -> Rows:
        return self.scripts(path)

    def _find(self, name: str, columns: tuple[str, ...], where: str) -> str:
        for column in columns:
            if fold(column) == fold(name):
                return column
        near = nearest(name, columns)
        raise ColumnNotFound(
            f"the data test names column {name!r}, which {where} does not have",
            hint=f"did you mean {near!r}?" if near else f"columns are {', '.join(columns)}",
            location=self.location,
        )
