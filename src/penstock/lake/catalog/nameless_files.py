"""Files without a name mapping that may lack field ids: their columns by the names of their time.

Files that other tools wrote, and that were added before lakes had name mappings, are such. DuckDB
1.5.5 takes their columns by place, which comes to the same until a column is dropped
(`DuckLakeMultiFileReader::CreateMapping`, "legacy external file"). Whether a file lacks ids only
its footer tells, so only files that neither DuckDB nor Penstock has named are in question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlalchemy import Connection

from penstock.lake.catalog.inlined_columns import Schemas
from penstock.lake.catalog.mappings import mapping_paths
from penstock.lake.files import DataFile, NameMapping, Table

_NAMES = ("/ducklake-", "/penstock-")
_UUID = re.compile("/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[/.]")  # Spark's writes are below one
_FIRST = -1_000_000_000  # no commit, and no transaction, numbers mappings from here


def mapped_by_history(
    connection: Connection, table: Table, files: Iterable[DataFile]
) -> tuple[list[DataFile], Mapping[int, NameMapping]]:
    """The files, those in question under mappings of their own, and these by id."""
    listed = list(files)
    odd = [file for file in listed if file.mapping_id is None and not _is_ours(file.path)]
    if not odd:
        return listed, {}
    schemas = Schemas(connection, table)
    found: dict[int, NameMapping] = {}
    for begin in {file.begin_snapshot or 0 for file in odd}:
        paths = dict(mapping_paths(schemas.in_force(begin).columns))
        found[_FIRST - begin] = NameMapping(_FIRST - begin, paths, unless_ids=True)
    ids = {file.id for file in odd}
    return [_mapped(file, found) if file.id in ids else file for file in listed], found


def _mapped(file: DataFile, mappings: Mapping[int, NameMapping]) -> DataFile:
    own = mappings[_FIRST - (file.begin_snapshot or 0)]
    # A copy of the file (`rollback`) is registered under it.
    return replace(file, mapping_id=own.id, mapping=replace(own, id=None, unless_ids=False))


def _is_ours(path: str) -> bool:
    return any(name in path for name in _NAMES) or _UUID.search(path) is not None
