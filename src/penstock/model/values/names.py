"""The managed table that a name in a query means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.model.values.asset import DEFAULT_LAKE, DEFAULT_SCHEMA, TableName
from penstock.sql.identifiers import fold, nearest
from penstock.sql.macros import Book

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
