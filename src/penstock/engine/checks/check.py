"""A data test as SQL over a view of the candidate slice, or as the rows of a script.

``data_test <path/of/script>`` names a SELECT of the project; every row it returns is a failure. It
reads the candidate state of the whole table: ``'{partition}'`` narrows it down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import ColumnNotFound, Location
from penstock.lake.format.naming import fold, quote_identifier
from penstock.model.asset import Asset
from penstock.model.data_test import CustomTest
from penstock.sql.identifiers import nearest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.engine.pins import Rows


SAMPLE_ROWS = 20


@dataclass(frozen=True, slots=True)
class Check:
    """``failing``: a query of what fails, or its rows; one row a failure.

    When the failing rows are those of the slice for which ``predicate`` holds, and nothing else,
    ``predicate`` is set too: all such tests of a step are counted in one pass. ``views`` are those
    that the query reads and that are made when it runs. ``one_task``: one task finds what fails.
    """

    name: str
    failing: str | DataFrame
    predicate: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    proof: Proof | None = None
    one_task: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """Prove on the driver, without Spark, that a test passes on a small slice.

    ``holds`` takes the values of the slice's column ``column``. It is true only where Spark would
    certainly let the test pass; otherwise Spark runs the test.
    """

    column: str
    holds: Callable[[pa.ChunkedArray], bool]


@dataclass(frozen=True, slots=True)
class ReferencedColumn:
    """A column of another table, which is to be registered as ``view``.

    ``collected`` gives its values, where the table is small enough to read on the driver.
    """

    view: str
    column: str
    collected: Callable[[], pa.ChunkedArray | None]


@dataclass(frozen=True, slots=True)
class ReferencedTable:
    """Another table: its view, its columns, and `ReferencedColumn.collected` of a column."""

    view: str
    columns: tuple[str, ...]
    collected: Callable[[str], pa.ChunkedArray | None]


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
        actual = self._find(column, table.columns, asset.path)
        return ReferencedColumn(table.view, actual, lambda: table.collected(actual))

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


def quoted(name: str) -> str:
    return quote_identifier(name, mark="`")


def of_rows(
    name: str,
    view: str,
    predicate: str,
    args: Mapping[str, Any] | None = None,
    proof: Proof | None = None,
) -> Check:
    """A test of each row by itself: it fails where ``predicate`` is true."""
    failing = f"SELECT * FROM {quoted(view)} WHERE {predicate}"
    return Check(name, failing, predicate, args or {}, (view,), proof)


def failing_query(checks: Sequence[Check], view: str) -> str | None:
    """One query of all failures: a row each, which has a 1 in the columns of what fails.

    The columns are `counted`, one a test; all row tests look at the slice in one pass. Tests that
    are rows (`marks` says what these have) are left out; ``None`` where all are.
    """
    columns = counted(checks)
    by_row = [check.predicate for check in checks if check.predicate is not None]
    legs = []
    if by_row:
        ones = (
            "0" if check.predicate is None else f"CASE WHEN {check.predicate} THEN 1 ELSE 0 END"
            for check in checks
        )
        any_of = " OR ".join(f"({predicate})" for predicate in by_row)
        legs.append(f"SELECT {_named(ones, columns)} FROM {quoted(view)} WHERE {any_of}")
    for at, check in enumerate(checks):
        if check.predicate is None and isinstance(check.failing, str):
            legs.append(f"SELECT {', '.join(marks(checks, at))} FROM ({check.failing})")
    return " UNION ALL ".join(legs) or None


def marks(checks: Sequence[Check], at: int) -> list[str]:
    """The columns of a failure of one test: 1 in its own, 0 in the others."""
    return [f"{int(number == at)} AS {name}" for number, name in enumerate(counted(checks))]


def counted(checks: Sequence[Check]) -> list[str]:
    """The columns of `failing_query`."""
    return [f"c{at}" for at, _ in enumerate(checks)]


def _named(values: Iterable[str], names: Sequence[str]) -> str:
    return ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))


def sample_query(failing: str) -> str:
    return f"SELECT * FROM ({failing}) LIMIT {SAMPLE_ROWS}"


def build(test: CustomTest, scope: Scope) -> Check:
    failing = scope.script(test.path)
    return Check(test.name, failing.df, one_task=failing.one_task)
