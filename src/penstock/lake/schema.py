"""Table schemas with field ids (``ducklake_column``); evolution and promotion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column or nested field.

    ``type`` is the format's text (``int32``, ``decimal(10,2)``, ``list``, ``struct``, ``map``).
    A list has one child ``element``; a map two, ``key`` and ``value``; a struct its fields.
    ``id`` is the Parquet field id; ``None`` until a commit assigns it.
    """

    name: str
    type: str
    id: int | None = None
    nullable: bool = True
    children: tuple[Column, ...] = ()
    initial_default: str | None = None
    default: str | None = None

    def walk(self) -> Iterator[Column]:
        """This column and its descendants, parents first: the order of field ids."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class TableSchema:
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def walk(self) -> Iterator[Column]:
        for column in self.columns:
            yield from column.walk()
