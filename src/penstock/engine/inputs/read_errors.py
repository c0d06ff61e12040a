"""Errors of Spark about the user's files: which file one is about, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import PenstockError
from penstock.spark.failures import local_path

_READING = re.compile(r"reading file (file:\S*?)\. ")
_CAUSED_BY = re.compile(r"Caused by: [\w.$]+: (?:\[[\w.]+\] )?(.+?)(?: SQLSTATE: .*)?(?:\n|$)")
_MALFORMED = "MALFORMED_RECORD"
FILE = "file"  # in the data of an error: the path of the file that is wrong


def innermost(error: PenstockError) -> str:
    """Return why a file could not be read: the message of Spark itself names only the file."""
    causes = _CAUSED_BY.findall(str(error.__cause__))
    return causes[-1].strip() if causes else ""


def cause_of(error: PenstockError) -> str:
    """Return all that Spark says of an error."""
    return f"{error.message}\n{error.__cause__ or ''}"


def path_in(error: PenstockError) -> Path | None:
    """Return the file that an error names."""
    named = error.data.get("path") or next(iter(_READING.findall(cause_of(error))), None)
    return None if named is None else Path(local_path(str(named)))


def is_about(error: PenstockError, paths: Sequence[str]) -> bool:
    """Return whether an error may be about one of these files."""
    path = path_in(error)
    if path is None:
        return str(error.data.get("condition")).startswith(_MALFORMED)
    return any(path.is_relative_to(parent) for parent in paths)
