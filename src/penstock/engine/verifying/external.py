"""EXTERNAL models beside what is really there, and the entries that a project lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.lake.format.types import simple_string
from penstock.model.definition.external import FILE, External
from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.files.yaml_file import Reading
from penstock.model.values.asset import FileName, TableName

if TYPE_CHECKING:
    from penstock.lake.catalog.catalog import Catalogs


@dataclass(frozen=True, slots=True)
class CreatedExternal:
    """``added`` were written to ``path``; those of ``unknown`` have no columns, as no lake has the
    table; no query reads those of ``unread`` any more.
    """

    path: str
    added: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def columns_in(catalogs: Catalogs) -> Callable[[TableName], Mapping[str, str] | None]:
    """The columns of a table in its lake, with their types; none for a table that is not there,
    ``None`` where the lake cannot tell: it is not there yet, or has a view of that name.
    """

    def columns(table: TableName) -> Mapping[str, str] | None:
        catalog = catalogs(table.lake)
        if catalog is None:
            return None
        latest = catalog.latest()
        known = catalog.known_table(table.schema, table.table, latest)
        if known is not None:
            return {column.name: simple_string(column) for column in known.schema.columns}
        # Late: it loads SQLAlchemy.
        from penstock.lake.catalog.definitions.views import view_names

        with catalog.reading() as connection:
            views = view_names(connection, latest.id)
        return None if table.qualified.casefold() in map(str.casefold, views) else {}

    return columns


def read_by(models: Sequence[Model]) -> dict[str, TableName]:
    """The tables that models and their tests read and none makes, by key, in order of name."""
    made = {table_key(model.target) for model in models}
    read = [table for model in models for table in (*model.inputs, *model.test_reads)]
    tables = (table for table in read if not isinstance(table, FileName))
    found = {table_key(table): table for table in sorted(tables, key=str)}
    return {key: table for key, table in found.items() if key not in made}


def create_external(
    root: Path, models: Sequence[Model], externals: Sequence[External], catalogs: Catalogs
) -> CreatedExternal:
    """Add an entry for each table that is read, is not made and has none yet.

    What the file has stays as it is written.
    """
    read, known = read_by(models), {table_key(external.table) for external in externals}
    columns = columns_in(catalogs)
    lacking = {str(table): columns(table) for key, table in read.items() if key not in known}
    path = root / FILE
    if lacking:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        gap = "" if before.endswith("\n") or not before else "\n"
        after = f"{before}{gap}{_text(lacking)}"
        _require_list(after, path)
        path.write_text(after, encoding="utf-8")
    return CreatedExternal(
        path=str(path),
        added=tuple(lacking),
        unknown=tuple(name for name, types in lacking.items() if not types),
        unread=tuple(str(e.table) for e in externals if table_key(e.table) not in read),
    )


def _require_list(text: str, path: Path) -> None:
    """Raise ArgumentError where entries cannot be added behind what the file has."""
    from yaml.nodes import SequenceNode

    if not isinstance(Reading(path, "external").root(text), SequenceNode):
        raise ArgumentError(
            f"no entry can be added to {path}: it is not a list with a dash for each",
            hint="write `- name: schema.table` for each entry, or move the file away",
        )


def _text(tables: Mapping[str, Mapping[str, str] | None]) -> str:
    import yaml

    entries = [
        {"name": name, **({"columns": dict(types)} if types else {})}
        for name, types in tables.items()
    ]
    return str(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000))
