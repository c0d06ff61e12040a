"""Find the Delta tables below a root: directories of directories that have a log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from penstock.delta.log_files import list_log
from penstock.lake import storage

_THREADS = 16


def find_tables(root: str) -> list[str]:
    """The names (``schema.table``) of the tables at ``root/schema/table``, sorted."""
    return sorted(f"{schema}.{table}" for schema, table in tables_below(root))


def tables_below(root: str) -> list[tuple[str, str]]:
    """Find the tables of a root.

    Only directories are listed, two levels of them, and of each table its log.

    Args:
        root: The directory of the tables.

    Returns:
        The schema and the name of each.
    """
    top = root.rstrip("/")
    tables = [
        (schema, name) for schema in _directories(top) for name in _directories(f"{top}/{schema}")
    ]
    if not tables:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(tables)), "penstock-delta") as pool:
        logs = pool.map(lambda names: list_log("/".join((top, *names))), tables)
        return sorted(
            names for names, log in zip(tables, logs, strict=True) if log.latest is not None
        )


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


def _directories(directory: str) -> list[str]:
    from pyarrow import fs

    system, path = storage.open_system(directory)
    infos = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    names = [info.base_name for info in infos if info.type == fs.FileType.Directory]
    return [name for name in names if not name.startswith((".", "_"))]
