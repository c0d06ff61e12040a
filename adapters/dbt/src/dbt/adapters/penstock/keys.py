"""Keys of models and snapshots: reading a row whose key is NULL is an error that shows the row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from penstock.sql.identifiers import fold, quoted
from penstock.sql.literals import plain_text_literal

_COLUMNS = re.compile(r"\s*\w+(?:\s*,\s*\w+)*\s*")  # also as one text: "id, day"
_SHOWN = 10  # columns of the row in the message


def expressions(unique_key: Any) -> list[str]:
    """Return the columns or expressions of a `unique_key`. Raises DbtRuntimeError."""
    if not unique_key:
        return []
    if isinstance(unique_key, str):
        is_list = _COLUMNS.fullmatch(unique_key)
        return [key.strip() for key in unique_key.split(",")] if is_list else [unique_key]
    if isinstance(unique_key, list) and all(isinstance(key, str) for key in unique_key):
        return unique_key
    raise DbtRuntimeError(f"unique_key is a column or a list of columns, not {unique_key!r}")


def present(unique_key: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return a key without columns that there are none of: the strategy fails at those, and the
    first build needs no key.
    """
    names = {fold(column) for column in columns}
    return [key for key in unique_key if fold(key) in names or not _COLUMNS.fullmatch(key)]


def guarded(relation: str, columns: Sequence[str], unique_key: Sequence[str], table: str) -> str:
    """Return the query of a relation's rows that fails at a NULL in the key of ``table``."""
    nulls = " OR ".join(f"({key}) IS NULL" for key in unique_key)
    names = ", ".join(map(quoted, [*dict.fromkeys(columns)][:_SHOWN]))
    key = ", ".join(unique_key)
    message = plain_text_literal(f"the unique_key ({key}) of {table} is NULL in the row ")
    row = f"to_json(struct({names}), map('ignoreNullFields', 'false'))"
    return (
        f"SELECT * FROM {relation} WHERE CASE WHEN {nulls} "
        f"THEN raise_error(concat({message}, {row}, ': select rows with a key')) ELSE true END"
    )
