"""Seeds of dbt's: the CSV file, and the types that dbt would find in it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path

from penstock.dbt_import.manifest import Fields, config_of
from penstock.errors import ArgumentError

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def path_of(seed: Fields, root: Path) -> Path:
    """The seed's file. Raises ArgumentError where it is not there."""
    path = root / str(seed["original_file_path"])
    if not path.is_file():
        raise ArgumentError(
            f"the seed {seed['name']} has no file: {path} does not exist",
            hint="import from the directory of the dbt project",
        )
    return path


def text_of(path: Path) -> str:
    """The content of a seed's file. Raises ArgumentError where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"{path} cannot be read as UTF-8: {error}", hint="save the file as UTF-8"
        ) from None


def columns_of(seed: Fields, path: Path) -> list[tuple[str, str]]:
    """The columns of a seed with their types: those that it says, others by their values."""
    config = config_of(seed)
    given = {str(k): str(v) for k, v in dict(config.get("column_types") or {}).items()}
    rows = list(
        csv.reader(io.StringIO(text_of(path)), delimiter=str(config.get("delimiter") or ","))
    )
    if not rows:
        raise ArgumentError(f"{path} has no header", hint="write the names of its columns there")
    header, body = rows[0], [row for row in rows[1:] if row]
    ragged = next((row for row in body if len(row) != len(header)), None)
    if ragged is not None:
        raise ArgumentError(
            f"{path} has a row of {len(ragged)} values below {len(header)} names: {ragged}",
            hint="correct the row, or the seed's delimiter",
        )
    by_column = zip(*body, strict=True) if body else [()] * len(header)
    return [
        (column, given.get(column) or type_of([value for value in values if value]))
        for column, values in zip(header, by_column, strict=True)
    ]


def type_of(values: Sequence[str]) -> str:
    """The type of a column by all its values that are not empty; TEXT where it has none."""
    for kind, fits in _TYPES.items():
        if values and all(map(fits, values)):
            return kind
    return "TEXT"


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2026-01-01") and bool(date.fromisoformat(text))
    except ValueError:
        return False


_TYPES: dict[str, Callable[[str], object]] = {
    "BOOLEAN": lambda text: text.lower() in {"true", "false"},
    "BIGINT": _WHOLE.fullmatch,
    "DOUBLE": _NUMBER.fullmatch,
    "DATE": _is_date,
    "TIMESTAMP_NTZ": _is_moment,
}
