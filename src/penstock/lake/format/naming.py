"""Names in a lake: table references, directories, UUIDs."""

from __future__ import annotations

import datetime as dt
import re
import secrets
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from penstock.errors import ArgumentError
from penstock.sql.identifiers import (
    DEFAULT_SCHEMA,
    LAKES,
    called,
    dotted,
    fold,
    quote_identifier,
)

__all__ = [
    "DEFAULT_SCHEMA", "LAKES", "TableRef", "called", "directory_name", "fold", "new_uuid7",
    "quote_identifier",
]  # fmt: skip
_PLAIN_DIRECTORY = re.compile(r"[A-Za-z0-9_-]+")
_UUID7 = re.compile(
    r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(?![0-9a-f])"
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def names_of(names: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """The names that a caller gave as ``argument``: a text is one name, not its letters.

    Raises ArgumentError for anything that is not a name.
    """
    if isinstance(names, str):
        names = (names,)
    elif not isinstance(names, Iterable):
        raise _not_names(names, argument)
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str) or not name:
            raise _not_names(name, argument)
    return listed


def _not_names(value: object, argument: str) -> ArgumentError:
    return ArgumentError(
        f"{argument} takes names, and {value!r} is not a name",
        hint=f'write {argument}="a", or {argument}=["a", "b"]',
    )


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


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table's name within one lake."""

    schema: str
    name: str

    @classmethod
    def parse(cls, text: str, *, default_schema: str = DEFAULT_SCHEMA) -> TableRef:
        """Read ``table`` or ``schema.table``; parts may be quoted with ``"`` or a backtick."""
        parts = dotted(text)
        if len(parts) == 1:
            return cls(default_schema, parts[0])
        if len(parts) == 2:
            return cls(parts[0], parts[1])
        raise ArgumentError(
            f"{text!r} is not the name of a table",
            hint="write table or schema.table, with quotes around parts that hold dots",
        )

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def new_uuid7() -> str:
    """A version 7 UUID (RFC 9562, 5.7): 48 bits of milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    return str(uuid.UUID(int=value | 0b10 << 62 | secrets.randbits(62)))


def uuid7_time(path: str) -> dt.datetime | None:
    """Return when the oldest version 7 UUID in the names of a path was made; ``None`` without any.

    Both DuckDB and Penstock name each file, or the directory of one write, by such a UUID. Those
    in ``column=value`` directories are the user's values.
    """
    names = (name for name in path.split("/") if "=" not in name)
    texts = [text for name in names for text in _UUID7.findall(name)]
    times = [uuid.UUID(text).int >> 80 for text in texts]
    return None if not times else _EPOCH + dt.timedelta(milliseconds=min(times))


def directory_name(name: str, uuid_text: str) -> str:
    """The directory of a schema or table: its name when that is plain, else its UUID.

    Measured on the real extension, which also takes ``_`` and ``-`` for plain.
    """
    return f"{name if _PLAIN_DIRECTORY.fullmatch(name) else uuid_text}/"
