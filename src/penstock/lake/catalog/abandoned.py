"""Data paths that hold files of a lake whose catalog is not there.

A new catalog over them would show an empty lake, and every file of the old one would be an orphan.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import CatalogVanished, DataPathError
from penstock.lake.catalog.database.location import CatalogLocation, absolute_directory
from penstock.lake.format.naming import uuid7_time
from penstock.lake.storage import bucket_of, is_remote, open_system

LAKE_FILES = (".parquet", ".puffin")
_DIRECTORIES = 2000  # listed at most; a lake's files lie a few directories below its data path


def refuse_abandoned(location: CatalogLocation, data_path: str | None) -> None:
    """Raise CatalogVanished where there is no catalog and its data path holds a lake's files.

    ``None``: where a catalog of this kind keeps its files by default. Raises DataPathError where
    the data path cannot be listed.
    """
    path = data_path or default_data_path(location)
    if path is None:
        return
    path = absolute_directory(path)
    file = _lake_file(path)
    if file is None:
        return
    raise CatalogVanished(
        f"there is no catalog at {location}, and its data path {path} holds the files of a lake "
        f"({file.removeprefix(path)})",
        hint="check the catalog's path; if it is right, bring the catalog back with `penstock "
        "restore BACKUP`; to begin a new lake, give another data path, or pass --new-catalog to "
        "`penstock run` (new_catalog=True to Lake.attach): then no table has these files",
        data={"catalog": str(location), "data_path": path, "file": file},
    )


def default_data_path(location: CatalogLocation) -> str | None:
    """Where a new catalog keeps its files when nobody says; ``None`` on a server."""
    if location.kind == "postgres":
        return None
    return absolute_directory(f"{location.target}.files")


def _lake_file(data_path: str) -> str | None:
    """A data or delete file below ``data_path``: DuckDB and Penstock name theirs by a UUID."""
    if is_remote(data_path) and bucket_of(data_path) is None:
        return None  # no store that Penstock writes to
    try:
        return next(_lake_files(data_path.rstrip("/")), None)
    except OSError as error:
        raise DataPathError(
            f"the data path {data_path} cannot be listed: {str(error).splitlines()[0]}",
            hint="check that it can be reached and read; a new catalog is only made over a data "
            "path without files of another",
            data={"path": data_path},
        ) from error


def _lake_files(directory: str) -> Iterator[str]:
    """Depth first, so that the first file is met after a few listings, in a bucket too."""
    from pyarrow import fs  # late: a catalog that is there does without

    system, root = open_system(directory)
    waiting = [root]
    for _ in range(_DIRECTORIES):
        if not waiting:
            return
        selector = fs.FileSelector(waiting.pop(), allow_not_found=True)
        for info in sorted(system.get_file_info(selector), key=lambda one: str(one.path)):
            below = str(info.path)[len(root) :]
            if info.type == fs.FileType.Directory:
                waiting.append(str(info.path))
            elif below.endswith(LAKE_FILES) and uuid7_time(below) is not None:
                yield directory + below
