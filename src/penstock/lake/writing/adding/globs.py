"""Files that are named by a path, a directory or a pattern, on a local disk or in a store.

Patterns as DuckDB has them: ``*`` and ``?`` within a name, ``[ab]``, ``**`` across directories.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

from pyarrow import fs

from penstock.errors import DataFileMissing
from penstock.lake.storage import list_files, open_system

_MAGIC = re.compile(r"[*?\[]")
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|[^*?\[]+|\[")


def expand(patterns: str | Sequence[str]) -> list[str]:
    """The files that are meant, each once, in the order of the patterns and then by name.

    Paths come absolute. Raises DataFileMissing for what names no file.
    """
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    found: dict[str, None] = {}
    for pattern in listed:
        files = _expand(_absolute(os.fspath(pattern)))
        if not files:
            raise DataFileMissing(
                f"there is no file {pattern}",
                hint="check the path; patterns take *, ?, [ab] and ** for any directories",
                data={"path": pattern},
            )
        found.update(dict.fromkeys(files))
    return list(found)


def _absolute(pattern: str) -> str:
    if pattern.startswith("file:"):
        pattern = unquote("/" + pattern.removeprefix("file:").lstrip("/"))
    if "://" in pattern:
        return pattern
    return os.path.abspath(Path(pattern).expanduser())  # noqa: PTH100 - links stay what they are


def _expand(pattern: str) -> Iterable[str]:
    system, place = open_system(pattern)
    kind = system.get_file_info(place).type
    if kind == fs.FileType.File:
        return [pattern]
    if kind == fs.FileType.Directory:
        return list_files(pattern)
    if not _MAGIC.search(pattern):
        return []
    if "://" not in pattern:
        found = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - Path takes none that are absolute
        return sorted(path for path in found if Path(path).is_file())
    return matching(system, pattern, place)


def matching(system: fs.FileSystem, pattern: str, place: str) -> list[str]:
    """Stores have no directories: everything below the last plain one is listed and compared."""
    match = _MAGIC.search(place)
    assert match is not None
    base = place[: match.start()].rpartition("/")[0]
    scheme = pattern[: len(pattern) - len(place)]
    wanted = re.compile("".join(map(_token, _TOKEN.findall(place))))
    infos = system.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
    return sorted(
        f"{scheme}{info.path}" for info in infos if info.is_file and wanted.fullmatch(info.path)
    )


def _token(token: str) -> str:
    fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if token in fixed:
        return fixed[token]
    if len(token) > 2 and token.startswith("["):
        return token.replace("[!", "[^")
    return re.escape(token)
