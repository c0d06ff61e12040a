"""A data test as SQL over a view of the candidate slice, or as the rows of a script.

Where Arrow computes a condition as Spark does, it may prove that the condition is true for no row.

A test of each row on its own, a test of aggregates and a test of unique keys are computed in one
pass over the slice (`penstock.engine.checks.one_pass`); the others are queries of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import ColumnNotFound, Location
from penstock.lazy import pa, pc
from penstock.model.values.asset import Asset
from penstock.model.values.data_test import CustomTest
from penstock.sql.identifiers import fold, nearest, quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.values import Rows


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The slice fails where ``condition``, over aggregates of ``columns``, is false."""

    condition: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """Columns whose values are hashed exactly: equal values have equal hashes.

    Without ``nulls_equal`` a key with a NULL is not counted.
    """

    columns: tuple[str, ...]
    nulls_equal: bool = False

    def implies(self, other: UniqueKey) -> bool:
        """Return whether the keys of ``other`` are certainly unique where these are."""
        nulls = self.nulls_equal or not other.nulls_equal
        return nulls and set(self.columns) <= set(other.columns)

    def hashed(self, number: int) -> str:
        """SQL for a hash of the key, NULL where it is not counted. Keys of another ``number``
        have other hashes."""
        columns = [quoted(name) for name in self.columns]
        if self.nulls_equal:  # a hash passes NULLs over, so that it has to know where they are
            columns = [f"{column} IS NULL, {column}" for column in columns]
            return f"xxhash64({number}, {', '.join(columns)})"
        nulls = " OR ".join(f"{column} IS NULL" for column in columns)
        return f"CASE WHEN {nulls} THEN NULL ELSE xxhash64({number}, {', '.join(columns)}) END"


@dataclass(frozen=True, slots=True)
class Check:
    """``failing``: a query of what fails, or its rows; one row a failure.

    ``predicate`` is true for the rows that fail, where these are rows of the slice; ``aggregate``
    and ``key`` say what fails otherwise. A check with none of them is a query of its own.
    ``shown`` is the query of what fails as a user would write it, where that is not ``failing``.
    ``views`` are those that the query reads and that are made when it runs; ``called`` are the
    tables that some of them are of, as a user writes these. ``one_task``: one task finds what
    fails.
    """

    name: str
    failing: str | DataFrame
    predicate: str | None = None
    aggregate: Aggregate | None = None
    key: UniqueKey | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    proof: Proof | None = None
    one_task: bool = False
    shown: str = ""
    called: Mapping[str, str] = field(default_factory=dict)
    severity: str = "error"

    @property
    def in_pass(self) -> bool:
        return bool(self.predicate or self.aggregate or self.key)


@dataclass(frozen=True, slots=True)
class Proof:
    """Prove on the driver, without Spark, that a test passes on a small slice.

    ``holds`` takes the slice's ``columns``. It is true only where Spark would certainly let the
    test pass; otherwise Spark runs the test.
    """

    columns: tuple[str, ...]
    holds: Callable[[pa.Table], bool]


@dataclass(frozen=True, slots=True)
class ReferencedColumn:
    """A column of another table, ``called`` so by users, which is to be registered as ``view``.

    ``collected`` gives its values, where the table is small enough to read on the driver.
    """

    view: str
    column: str
    called: str
    collected: Callable[[], pa.ChunkedArray | None]


@dataclass(frozen=True, slots=True)
class ReferencedTable:
    """Another table: its view, what users call it, its columns, and
    `ReferencedColumn.collected` of a column."""

    view: str
    called: str
    columns: tuple[str, ...]
    collected: Callable[[str], pa.ChunkedArray | None]


@dataclass(frozen=True, slots=True)
class Scope:
    """The surroundings of one test.

    ``view`` is the candidate slice; ``types`` are its columns with their types in Spark's SQL;
    ``prefix`` makes the names of bound values unique; ``tables`` gives another table, ``scripts``
    the rows of a test script and its text. ``dialect`` is that of the model's script.
    """

    view: str
    types: Mapping[str, str]
    prefix: str
    location: Location | None
    tables: Callable[[Asset], ReferencedTable]
    scripts: Callable[[CustomTest], tuple[Rows, str]]
    dialect: str = "spark"

    def column(self, name: str) -> str:
        """The slice's column of that name, whatever its case."""
        return find_column(name, tuple(self.types), "the result", self.location)

    def type_name(self, column: str) -> str:
        return self.types[column]

    def referenced(self, asset: Asset, column: str) -> ReferencedColumn:
        table = self.tables(asset)
        actual = find_column(column, table.columns, asset.path, self.location)
        return ReferencedColumn(table.view, actual, table.called, lambda: table.collected(actual))


def find_column(name: str, columns: Sequence[str], where: str, location: Location | None) -> str:
    """The one of ``columns`` with that name, whatever its case. Raises ColumnNotFound."""
    for column in columns:
        if fold(column) == fold(name):
            return column
    near = nearest(name, columns)
    raise ColumnNotFound(
        f"the data test names column {name!r}, which {where} does not have",
        hint=f"did you mean {near!r}?" if near else f"columns are {', '.join(columns)}",
        location=location,
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
    """A test of each row on its own: it fails where ``predicate`` is true."""
    failing = f"SELECT * FROM {quoted(view)} WHERE {predicate}"
    return Check(name, failing, predicate=predicate, args=args or {}, views=(view,), proof=proof)


def of_aggregates(
    name: str, view: str, value: str, aggregate: Aggregate, proof: Proof | None = None
) -> Check:
    """A test of the rows as a whole; ``value`` is what its sample shows: ``count(*) AS rows``."""
    failing = f"SELECT {value} FROM {quoted(view)} HAVING NOT ({aggregate.condition})"
    return Check(name, failing, aggregate=aggregate, views=(view,), proof=proof)


def failing_query(checks: Sequence[Check]) -> str | None:
    """One query of all failures of tests that are queries: a row each, with a 1 in its column.

    The columns are `counted`, one a test. Tests that are rows (`marks` says what these have) are
    left out; ``None`` where all are.
    """
    legs = [
        f"SELECT {', '.join(marks(checks, at))} FROM ({check.failing})"
        for at, check in enumerate(checks)
        if isinstance(check.failing, str)
    ]
    return " UNION ALL ".join(legs) or None


def marks(checks: Sequence[Check], at: int) -> list[str]:
    """The columns of a failure of one test: 1 in its own, 0 in the others."""
    return [f"{int(number == at)} AS {name}" for number, name in enumerate(counted(checks))]


def counted(checks: Sequence[Check]) -> list[str]:
    """The columns of `failing_query`."""
    return [f"c{at}" for at, _ in enumerate(checks)]


def sample_query(failing: str, rows: int) -> str:
    return f"SELECT * FROM ({failing}) LIMIT {rows}"


def build(test: CustomTest, scope: Scope) -> Check:
    """``data_test <path/of/script>``: every row that the script's SELECT returns is a failure.

    It reads the candidate state of the whole table: ``'{partition}'`` narrows it down.
    """
    failing, text = scope.scripts(test)
    return Check(test.name, failing.df, shown=text, one_task=failing.one_task)


def never(predicate: str, columns: tuple[str, ...]) -> Proof:
    """``predicate``, Spark's SQL over ``columns`` and no others, is true for no row."""
    return Proof(columns, lambda rows: _is_never(predicate, rows))


def _is_never(predicate: str, rows: pa.Table) -> bool:
    from penstock.lakes.arrow_expressions.compiled import condition
    from penstock.lakes.arrow_expressions.nodes import NotSupportedByArrow

    try:
        kinds = {field.name: field.type for field in rows.schema}
        values = condition(predicate, kinds).array(rows)
    except NotSupportedByArrow:
        return False
    return not pc.any(values, min_count=0).as_py()
