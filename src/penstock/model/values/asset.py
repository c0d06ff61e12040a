"""Assets, and the header lines that name them: ``materialize`` and ``column``.

annotations.md; for ``materialize`` seeds/materialization.md, "Grammar".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.errors import Location
from penstock.model.files.header_lines import split_values
from penstock.model.values.strategy import (
    APPEND,
    HISTORY,
    MANUAL,
    MERGE,
    REPLACE,
    TIME_RANGE,
    Strategy,
)
from penstock.sql.identifiers import dotted


@dataclass(frozen=True, slots=True)
class Asset:
    """``kind`` is ``ducklake``, ``delta``, ``s3object``, ``resource``, ``datatable`` or
    ``volume``.
    """

    kind: str
    path: str

    def __str__(self) -> str:
        """As it may be written."""
        prefix = next(prefix for prefix, kind in _PREFIXES if kind == self.kind)
        return f"{prefix}{self.path}"

    @property
    def is_file(self) -> bool:
        """Return whether it is a file that steps read and write by its URI."""
        return self.kind == "s3object"

    @property
    def is_made(self) -> bool:
        """Return whether a model may make it, so that others run after that."""
        return self.is_file or self.is_table

    @property
    def is_table(self) -> bool:
        """Return whether it is a table of a lake or of a Delta root."""
        return self.kind in _OF_TABLES


@dataclass(frozen=True, slots=True)
class TableName:
    """A managed table. ``lake`` is a name in penstock.toml; ``schema`` defaults to ``main``."""

    lake: str
    schema: str
    table: str

    @property
    def is_table(self) -> bool:
        """Return whether the lake has it; files lie elsewhere, and the lake only records them."""
        return True

    @property
    def qualified(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def full(self) -> str:
        return f"{self.lake}.{self.qualified}"

    def __str__(self) -> str:
        """``lake.schema.table``; ``main.t`` for ``main.main.t``, as it may be written."""
        is_default = (self.lake, self.schema) == (DEFAULT_LAKE, DEFAULT_SCHEMA)
        return self.qualified if is_default else self.full


@dataclass(frozen=True, slots=True)
class FileName(TableName):
    """Files in place of a table: ``table`` is their URI or path, in which ``{partition}`` stands
    for the slice. ``lake`` is the one whose catalog records their slices; there is no schema.
    """

    @classmethod
    def of(cls, lake: str, uri: str) -> FileName:
        return cls(lake, "", uri)

    @property
    def is_table(self) -> bool:
        return False

    @property
    def qualified(self) -> str:
        return self.table

    @property
    def full(self) -> str:
        return self.table

    def __str__(self) -> str:
        return self.table


_PREFIXES = (
    ("ducklake://", "ducklake"),
    ("delta://", "delta"),
    ("s3://", "s3object"),
    ("res://", "resource"),
    ("$res:", "resource"),
    ("datatable://", "datatable"),
    ("volume://", "volume"),
)

_OF_TABLES = ("ducklake", "delta")
DEFAULT_LAKE = "main"
DEFAULT_SCHEMA = "main"


def parse_asset(text: str, *, bare_ducklake: bool = True) -> Asset | None:
    """The asset that ``text`` names, or ``None`` (annotations.md, "Assets").

    A bare ``ducklake`` is ``ducklake://main``, but not after ``on`` (``bare_ducklake=False``).
    """
    if bare_ducklake and text == "ducklake":
        return Asset("ducklake", DEFAULT_LAKE)
    for prefix, kind in _PREFIXES:
        if text.startswith(prefix):
            path = text[len(prefix) :]
            return Asset(kind, path) if path else None
    return None


def table_of(asset: Asset) -> TableName | None:
    """The table of ``ducklake://lake/[schema.]table`` or ``delta://root/schema/table``, each name
    plain or in quotes of either kind; ``None`` when it names none."""
    if not asset.is_table:
        return None
    lake, _, rest = asset.path.partition("/")
    is_quoted = '"' in rest or "`" in rest
    if asset.kind == "delta" and not is_quoted:
        rest = rest.replace("/", ".", 1)
    parts = dotted(rest) if is_quoted else rest.split(".")
    if not lake or not parts or not all(parts) or len(parts) > 2 or ("/" in rest and not is_quoted):
        return None
    schema = parts[0] if len(parts) == 2 else DEFAULT_SCHEMA
    return TableName(lake, schema, parts[-1])


SCHEMA_CHANGES = ("warn", "ignore", "fail", "sync")


@dataclass(frozen=True, slots=True)
class Materialize:
    """The managed target and how a slice of it is reconciled.

    ``unique_key`` is the text after ``key=``; ``keys`` are its column names. ``time`` is the text
    after ``time=``, a column and perhaps its format.
    """

    target: Asset
    manual: bool = False
    append: bool = False
    history: bool = False
    unique_key: str | None = None
    track: tuple[str, ...] = ()
    deletes: str | None = None
    max_closed: int | None = None
    on_schema_change: str | None = None
    time: str | None = None
    lookback: int = 0
    batch_size: int | None = None
    sequence: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key in split_values(self.unique_key or "") if key)

    @property
    def strategy(self) -> Strategy:
        """The first that is asked for: `append` wins over keys."""
        if self.manual:
            return MANUAL
        if self.history:
            return HISTORY
        if self.time is not None:
            return TIME_RANGE
        if self.append:
            return APPEND
        return MERGE if self.keys else REPLACE

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"target_kind": self.target.kind, "target_path": self.target.path}
        optional = {
            "manual": self.manual,
            "append": self.append,
            "scd2": self.history,
            "unique_key": self.unique_key,
            "track": list(self.track),
            "sequence": self.sequence,
            "deletes": self.deletes,
            "max_closed": self.max_closed,
            "on_schema_change": self.on_schema_change,
            "time": self.time,
            "lookback": self.lookback,
            "batch_size": self.batch_size,
        }
        return found | {name: value for name, value in optional.items() if value}


@dataclass(frozen=True, slots=True)
class ColumnInput:
    asset: Asset
    column: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "from_kind": self.asset.kind,
            "from_path": self.asset.path,
            "from_column": self.column,
        }


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """``column`` of the target derives from ``inputs``."""

    column: str
    inputs: tuple[ColumnInput, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "inputs": [item.to_dict() for item in self.inputs]}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A column's type in the words of ``dialect``, as a script declares it."""

    name: str
    type: str
    location: Location
    dialect: str = "duckdb"
