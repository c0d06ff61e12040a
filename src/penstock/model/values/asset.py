"""Assets: the header lines that name them, and the managed table that a name in a query means.

annotations.md; for ``materialize`` seeds/materialization.md, "Grammar".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from penstock.sql.identifiers import dotted, fold, nearest
from penstock.sql.macros import Book


@dataclass(frozen=True, slots=True)
class Asset:
    """``kind`` is ``ducklake``, ``delta``, ``s3object``, ``file``, ``resource``, ``datatable`` or
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
        return self.kind in _OF_FILES

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
    ("file://", "file"),
    ("res://", "resource"),
    ("$res:", "resource"),
    ("datatable://", "datatable"),
    ("volume://", "volume"),
)

_OF_TABLES = ("ducklake", "delta")
_OF_FILES = ("s3object", "file")
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


# The macros that a text of DuckDB's dialect calls, by the schema of names without one and what
# the script calls the lake, folded; an empty book where the lake has no catalog yet.
Macros = Callable[[TableName, frozenset[str], str], Book]


class UnknownName(Exception):
    """A name that means no table; ``hint`` says what would be right."""

    def __init__(self, message: str, hint: str) -> None:
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Names:
    """The names in force in a script.

    ``lakes`` are those of penstock.toml; ``aliases`` map the names that ATTACH gave (folded) to
    lakes; ``use`` is the lake and schema that bare names belong to (``USE``).
    ``macros`` looks into the catalogs, which only a function that is not known is worth.
    ``moved`` are tables that are elsewhere in this environment, by their names, folded. ``roots``
    are the lakes that are Delta roots.
    """

    lakes: tuple[str, ...]
    default_lake: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    use: tuple[str, str] | None = None
    macros: Macros | None = field(default=None, compare=False, repr=False)
    moved: Mapping[str, TableName] = field(default_factory=dict)
    roots: frozenset[str] = frozenset()

    def lake(self, name: str) -> str | None:
        """The lake that an alias or a lake's own name means; case does not count."""
        by_name = {lake.casefold(): lake for lake in self.lakes}
        return self.aliases.get(name.casefold()) or by_name.get(name.casefold())

    def called(self, lake: str) -> frozenset[str]:
        """Return what a script calls a lake, folded."""
        aliases = (alias for alias, meant in self.aliases.items() if meant == lake)
        return frozenset((lake.casefold(), *aliases))

    def resolve(self, parts: tuple[str, ...]) -> TableName:
        """The table of ``lake.schema.table``, ``alias.table``, ``schema.table`` or ``table``.

        Raises :class:`UnknownName`.
        """
        if len(parts) > 3:
            raise UnknownName(
                f"`{'.'.join(parts)}` has {len(parts)} parts", "write lake.schema.table"
            )
        *before, table = parts
        if not before:
            lake, schema = self.use or (self._default(table), DEFAULT_SCHEMA)
            return self.place(TableName(lake, schema, table))
        if len(before) == 1:
            return self.place(self._two(before[0], table))
        named = self.lake(before[0])
        if named is None:
            raise self.unknown_lake(before[0])
        return self.place(TableName(named, before[1], table))

    def place(self, table: TableName) -> TableName:
        """Return where a table is in this environment."""
        return self.moved.get(fold(table.full), table) if self.moved else table

    def _two(self, first: str, table: str) -> TableName:
        alias = self.aliases.get(first.casefold())
        if alias is not None:
            return TableName(alias, DEFAULT_SCHEMA, table)
        lake = self.lake(first)
        if lake is not None and self._default_or_none() in {None, lake}:
            return TableName(lake, DEFAULT_SCHEMA, table)
        default = self._default(f"{first}.{table}")
        if lake is not None and first != DEFAULT_SCHEMA:
            raise UnknownName(
                f"`{first}.{table}` may mean the lake {lake} or a schema of the lake {default}",
                f"write {lake}.{DEFAULT_SCHEMA}.{table} or {default}.{first}.{table}",
            )
        return TableName(default, first, table)

    def unknown_lake(self, name: str) -> UnknownName:
        known = sorted({*self.lakes, *self.aliases})
        guess = nearest(name, known)
        hint = f"did you mean {guess}?" if guess else f"known: {', '.join(known) or 'none'}"
        return UnknownName(f"lake `{name}` does not exist", hint)

    def _default(self, written: str) -> str:
        found = self._default_or_none()
        if found is not None:
            return found
        known = ", ".join(self.lakes) or "none"
        raise UnknownName(
            f"`{written}` names no lake, and there are several ({known})",
            "write lake.schema.table, or attach the lake and USE it",
        )

    def _default_or_none(self) -> str | None:
        """The lake of a bare name: that of USE, the default one, the only one, or ``main``."""
        if self.use is not None:
            return self.use[0]
        if self.default_lake is not None:
            return self.default_lake
        if len(self.lakes) == 1:
            return self.lakes[0]
        return DEFAULT_LAKE if DEFAULT_LAKE in self.lakes else None
