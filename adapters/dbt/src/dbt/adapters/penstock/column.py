"""Columns as dbt's macros know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt.adapters.base.column import Column

_STRINGS = {"string", "varchar", "char", "character", "character varying", "text"}
_INTEGERS = {
    *("tinyint", "smallint", "int", "integer", "bigint", "hugeint"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
}


@dataclass
class PenstockColumn(Column):
    """``dtype`` is the whole type, ``decimal(18,3)`` too. Texts have no length."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "TEXT": "string",
        "TIMESTAMP": "timestamp_ntz",
        "FLOAT": "double",
        "FLOAT8": "double",
    }

    @property
    def data_type(self) -> str:
        """The type as statements write it."""
        return self.dtype

    def is_string(self) -> bool:
        """Return whether it is a text."""
        return self.dtype.lower() in _STRINGS

    def is_integer(self) -> bool:
        """Return whether it is a whole number."""
        return self.dtype.lower() in _INTEGERS

    def is_numeric(self) -> bool:
        """Return whether it is a decimal."""
        return self.dtype.lower().startswith(("decimal", "numeric"))

    def can_expand_to(self, other_column: Column) -> bool:
        """Texts need no longer type."""
        return False

    @classmethod
    def string_type(cls, size: int) -> str:
        """The type of texts of every length."""
        return "string"
