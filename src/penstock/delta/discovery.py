"""Find the Delta tables below a root: directories of directories that have a log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from penstock.delta.log_files import list_log
from penstock.lake import storage

if TYPE_CHECKING:
    from pyarrow import fs

_THREADS = 16


def find_tables(root: str) -> list[str]:
    """The names (``schema.table``) of the tables at ``root/schema/table``, sorted.

    Only directories are listed, two levels of them, and of each table its log is looked for.
    """
    system, top = storage.open_system(root)
    places = [
        (schema, table, f"{root.rstrip('/')}/{schema}/{table}")
        for schema in _directories(system, top)
        for table in _directories(system, f"{top}/{schema}")
    ]
    if not places:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(places)), "penstock-delta") as pool:
        there = list(pool.map(lambda place: list_log(place[2]).latest is not None, places))
    pairs = zip(places, there, strict=True)
    return sorted(f"{schema}.{table}" for (schema, table, _), found in pairs if found)


def tables_below(root: str) -> list[tuple[str, str]]:
    """Find the tables of a root.

    Args:
        root: The directory of the tables.

    Returns:
        The schema and the name of each.
    """
    pairs = (name.split(".", 1) for name in find_tables(root.rstrip("/")))
    return [(schema, table) for schema, table in pairs]


def is_empty(root: str) -> bool:
    """Return whether nothing is below a root, or it is not there.

    Args:
        root: The directory of the tables.

    Returns:
        Whether there is nothing.
    """
    from pyarrow import fs

    system, top = storage.open_system(root.rstrip("/"))
    return not system.get_file_info(fs.FileSelector(top, allow_not_found=True))


def _directories(system: fs.FileSystem, path: str) -> list[str]:
    from pyarrow import fs

    infos = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    names = [info.base_name for info in infos if info.type == fs.FileType.Directory]
    return [name for name in names if not name.startswith((".", "_"))]
