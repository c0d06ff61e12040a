"""Assets: what steps read and make, as the documents write them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asset:
    """``kind`` is ``ducklake``, ``s3object``, ``resource``, ``datatable`` or ``volume``."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class TableName:
    """A managed table. ``lake`` is a name in penstock.toml; ``schema`` defaults to ``main``."""

    lake: str
    schema: str
    table: str

    @property
    def qualified(self) -> str:
        return f"{self.schema}.{self.table}"

    def __str__(self) -> str:
        return f"{self.lake}.{self.schema}.{self.table}"
