"""Paths of a lake: absolute inside Penstock, relative in the catalog wherever that is possible."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def absolute_directory(text: str) -> str:
    """``text`` as an absolute directory that ends in ``/``; remote URIs stay what they are.

    ``file:`` URIs become plain paths. What is relative is relative to the working directory, as
    for DuckDB.
    """
    if text.startswith("file:"):
        text = unquote("/" + text.removeprefix("file:").lstrip("/"))
    path = text if _REMOTE.match(text) else str(Path(text).expanduser().absolute())
    return path if path.endswith("/") else f"{path}/"


def is_remote(path: str) -> bool:
    return _REMOTE.match(path) is not None


def resolve(base: str, path: str, is_relative: bool | None) -> str:
    """The absolute path of what the catalog stores; a NULL flag counts as relative.

    Text is put to text, as DuckDB does it: a directory without ``/`` at its end is the beginning
    of a name.
    """
    if is_relative is None or is_relative:
        return f"{base}{path}"
    return path if _is_absolute(path) else f"{Path.cwd()}/{path}"


def _is_absolute(path: str) -> bool:
    return _REMOTE.match(path) is not None or Path(path).is_absolute()


def resolve_directory(base: str, path: str | None, is_relative: bool | None) -> str:
    """`resolve` of a schema's or a table's path, which may be missing."""
    return resolve(base, path or "", is_relative)


def store(base: str, path: str) -> tuple[str, bool]:
    """What the catalog stores for an absolute path: the text, and whether it is relative."""
    if path.startswith(base) and len(path) > len(base):
        return path[len(base) :], True
    return path, False


def stored_path(base: str, path: str) -> dict[str, Any]:
    """`store` as the two columns it goes to."""
    text, is_relative = store(base, path)
    return {"path": text, "path_is_relative": is_relative}
