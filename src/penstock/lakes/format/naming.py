"""Names in a lake: directories, and those that its SQL knows as well."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from penstock.sql.identifiers import (
    DEFAULT_SCHEMA,
    LAKES,
    TableRef,
    called,
    fold,
    names_of,
    quote_identifier,
)
from penstock.uuid7 import new_uuid7, uuid7_time

__all__ = [
    "DEFAULT_SCHEMA", "LAKES", "TableRef", "called", "directory_name", "fold", "names_of",
    "new_uuid7", "quote_identifier", "uuid7_time",
]  # fmt: skip
_PLAIN_DIRECTORY = re.compile(r"[A-Za-z0-9_-]+")


def schema_in_lake(
    before: Sequence[str], lakes: Collection[str], schemas: Iterable[str]
) -> tuple[str, ...] | None:
    """The schema (or nothing) in ``before``, the qualifier of a function's name.

    It names the lake, a schema, or both; the answer is ``None`` where it names another lake.
    """
    parts = tuple(before)
    known = {fold(schema) for schema in schemas}
    if parts and fold(parts[0]) in lakes and not (len(parts) == 1 and fold(parts[0]) in known):
        parts = parts[1:]
    return parts if not parts or (len(parts) == 1 and fold(parts[0]) in known) else None


def directory_name(name: str, uuid_text: str) -> str:
    """The directory of a schema or table: its name when that is plain, else its UUID.

    Measured on the real extension, which also takes ``_`` and ``-`` for plain.
    """
    return f"{name if _PLAIN_DIRECTORY.fullmatch(name) else uuid_text}/"
