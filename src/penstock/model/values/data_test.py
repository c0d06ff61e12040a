"""Data tests: checks that run on a staged slice before it is published.

`data_test` lines and audits make these values; the engine has a builder for each class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.errors import Location
from penstock.model.values.asset import Asset

ERROR, WARN, QUARANTINE = "error", "warn", "quarantine"
SEVERITIES = (ERROR, WARN, QUARANTINE)
REJECTED = "_rejected"  # after the name of a table: where rows go that fail a quarantine test


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """``severity``: a failed test of ``error`` keeps the slice from being published, one of
    ``warn`` is reported and recorded; of ``quarantine`` the rows that fail are set aside.
    ``by_row``: a row fails on its own."""

    kind: ClassVar[str]
    by_row: ClassVar[bool] = False
    severity: str = ERROR

    @property
    def name(self) -> str:
        """Return what results call the test."""
        raise NotImplementedError

    def arguments(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        severity = {} if self.severity == ERROR else {"severity": self.severity}
        return {"type": self.kind, **self.arguments(), **severity}


def _columns(columns: tuple[str, ...]) -> dict[str, Any]:
    return {"column": columns[0]} if len(columns) == 1 else {"columns": list(columns)}


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True, slots=True)
class UniqueTest(_Test):
    """No combination of values of ``columns`` occurs twice.

    A combination with a NULL is not counted, unless ``nulls_equal``. ``whole_table``: of all slices
    together, not of each.
    """

    kind: ClassVar[str] = "unique"
    columns: tuple[str, ...]
    nulls_equal: bool = False
    whole_table: bool = False

    @property
    def name(self) -> str:
        whole = " whole table" if self.whole_table else ""
        return f"{self.kind} {', '.join(self.columns)}{whole}"

    def arguments(self) -> Mapping[str, Any]:
        return _columns(self.columns) | ({"whole_table": True} if self.whole_table else {})


@dataclass(frozen=True, slots=True)
class NotNullTest(_Test):
    """None of ``columns`` holds a NULL."""

    kind: ClassVar[str] = "not_null"
    by_row: ClassVar[bool] = True
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind} {', '.join(self.columns)}"

    def arguments(self) -> Mapping[str, Any]:
        return _columns(self.columns)


@dataclass(frozen=True, slots=True)
class AcceptedValuesTest(_Test):
    """``column`` holds only ``values`` (text, compared as text)."""

    kind: ClassVar[str] = "accepted_values"
    by_row: ClassVar[bool] = True
    column: str
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind} {self.column}"

    def arguments(self) -> Mapping[str, Any]:
        return {"column": self.column, "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class AcceptedRangeTest(_Test):
    """``column`` holds values from ``minimum`` to ``maximum``, texts in the form of its type.

    Without ``inclusive`` the bounds themselves fail.
    """

    kind: ClassVar[str] = "accepted_range"
    by_row: ClassVar[bool] = True
    column: str
    minimum: str | None = None
    maximum: str | None = None
    inclusive: bool = True

    @property
    def name(self) -> str:
        return f"{self.kind} {self.column}"

    def arguments(self) -> Mapping[str, Any]:
        inclusive = None if self.inclusive else False
        return _given(column=self.column, min=self.minimum, max=self.maximum, inclusive=inclusive)


@dataclass(frozen=True, slots=True)
class RowCountTest(_Test):
    """There are from ``minimum`` to ``maximum`` rows."""

    kind: ClassVar[str] = "row_count"
    minimum: int | None = None
    maximum: int | None = None

    @property
    def name(self) -> str:
        return self.kind

    def arguments(self) -> Mapping[str, Any]:
        return _given(min=self.minimum, max=self.maximum)


@dataclass(frozen=True, slots=True)
class ExpressionTest(_Test):
    """``sql``, a condition, is false for no row; it may be NULL.

    It is in ``dialect``, by default the script's. ``label`` is the test's name where that is not
    its text; ``location`` is where ``sql`` begins.
    """

    kind: ClassVar[str] = "expression"
    by_row: ClassVar[bool] = True
    sql: str
    label: str = ""
    dialect: str | None = None
    location: Location | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.label or f"{self.kind} {self.sql}"

    def arguments(self) -> Mapping[str, Any]:
        return {"sql": self.sql}


@dataclass(frozen=True, slots=True)
class AggregateTest(_Test):
    """``sql``, a condition of Spark's SQL over aggregates of ``columns``, is not false for the
    rows as a whole. ``value`` is the aggregate that a sample shows, ``label`` the test's name.
    """

    kind: ClassVar[str] = "aggregate"
    sql: str
    value: str
    label: str
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.label

    def arguments(self) -> Mapping[str, Any]:
        return {"sql": self.sql}


@dataclass(frozen=True, slots=True)
class QueryTest(_Test):
    """``sql``, a query of Spark's SQL over ``@this_model`` and ``columns`` of it, has no rows.

    ``label`` is the test's name.
    """

    kind: ClassVar[str] = "query"
    sql: str
    label: str
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.label

    def arguments(self) -> Mapping[str, Any]:
        return {"sql": self.sql}


@dataclass(frozen=True, slots=True)
class RelationshipsTest(_Test):
    """Every value of ``column`` exists in ``to_column`` of the asset ``to``."""

    kind: ClassVar[str] = "relationships"
    column: str
    to: Asset
    to_column: str

    @property
    def name(self) -> str:
        return f"{self.kind} {self.column}"

    def arguments(self) -> Mapping[str, Any]:
        return {
            "column": self.column,
            "to_kind": self.to.kind,
            "to_path": self.to.path,
            "to_column": self.to_column,
        }


@dataclass(frozen=True, slots=True)
class CustomTest(_Test):
    """The script at ``path`` (below the project or the models) returns the rows that fail.

    ``options`` are values of the arguments that it declares, as written.
    """

    kind: ClassVar[str] = "custom"
    path: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return " ".join([self.path, *(f"{name}={value}" for name, value in self.options)])

    def arguments(self) -> Mapping[str, Any]:
        options = {"arguments": dict(self.options)} if self.options else {}
        return {"path": self.path, **options}


DataTest = (
    UniqueTest
    | NotNullTest
    | AcceptedValuesTest
    | AcceptedRangeTest
    | RowCountTest
    | ExpressionTest
    | AggregateTest
    | QueryTest
    | RelationshipsTest
    | CustomTest
)


def columns_of(test: DataTest) -> tuple[str, ...]:
    """The columns that a test names; those in the SQL of an expression are not among them."""
    match test:
        case UniqueTest() | NotNullTest() | AggregateTest() | QueryTest():
            return test.columns
        case AcceptedValuesTest() | AcceptedRangeTest() | RelationshipsTest():
            return (test.column,)
        case RowCountTest() | ExpressionTest() | CustomTest():
            return ()
