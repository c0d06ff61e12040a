"""What is in the zip file of a PostgreSQL catalog: a manifest, and each table as COPY's text.

Only tables of the lake and of Penstock are in it (``ducklake_*``, ``penstock_*``), with their
columns, keys and indexes; whatever else is in the schema is not ours.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.errors import CatalogCorrupt
from penstock.lake.format.naming import quote_identifier

_MANIFEST = "manifest.json"
_FORM = 1  # of the manifest
_TYPE = re.compile(r"[\w .,()\[\]\"]+")


@dataclass(frozen=True, slots=True)
class PackedTable:
    """``columns`` are names, types and whether NOT NULL; ``indexes`` names, columns, unique."""

    name: str
    columns: tuple[tuple[str, str, bool], ...]
    key: tuple[str, ...]
    indexes: tuple[tuple[str, tuple[str, ...], bool], ...]


def is_ours(name: str) -> bool:
    return name.startswith(("ducklake_", "penstock_"))


def entry(name: str) -> str:
    """Where in the archive the rows of a table are."""
    return f"tables/{name}.copy"


def write_manifest(archive: zipfile.ZipFile, listed: Sequence[PackedTable]) -> None:
    manifest = {"form": _FORM, "kind": "postgres", "tables": [asdict(one) for one in listed]}
    archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))


def read_manifest(archive: zipfile.ZipFile) -> tuple[PackedTable, ...]:
    """Raises CatalogCorrupt for what is no manifest of ours."""
    try:
        manifest = json.loads(archive.read(_MANIFEST))
        if manifest["form"] != _FORM:
            raise ValueError(f"form {manifest['form']}")
        return tuple(_table(one) for one in manifest["tables"])
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogCorrupt(
            f"{archive.filename} is no backup of a catalog that this version knows ({error})",
            hint="check the path, or restore it with a newer version of Penstock",
        ) from error


def _table(one: Mapping[str, Any]) -> PackedTable:
    columns = tuple(
        (str(name), str(kind), bool(required)) for name, kind, required in one["columns"]
    )
    if not is_ours(one["name"]) or not all(_TYPE.fullmatch(kind) for _, kind, _ in columns):
        raise ValueError(f"table {one['name']}")
    indexes = tuple((str(n), tuple(c), bool(u)) for n, c, u in one["indexes"])
    return PackedTable(one["name"], columns, tuple(one["key"]), indexes)


def create(table: str, one: PackedTable, kind_of: Callable[[str], str] = str) -> str:
    """The statement that makes it as ``table``; ``kind_of`` gives the type for PostgreSQL's."""
    parts = [
        f"{quote_identifier(name)} {kind_of(kind)}{' NOT NULL' if required else ''}"
        for name, kind, required in one.columns
    ]
    if one.key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quote_identifier, one.key))})")
    return f"CREATE TABLE {table} ({', '.join(parts)})"


def indexes(table: str, one: PackedTable) -> Iterator[str]:
    """The statements that make its indexes."""
    for name, columns, unique in one.indexes:
        listed = ", ".join(map(quote_identifier, columns))
        kind = "UNIQUE INDEX" if unique else "INDEX"
        yield f"CREATE {kind} {quote_identifier(name)} ON {table} ({listed})"
