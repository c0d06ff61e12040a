"""A statement as read: what it reads, and the edits that make it ready for Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model.arguments import Argument
from penstock.model.constants import Constant
from penstock.model.lexer import Source
from penstock.model.mapping import Edit
from penstock.model.names import Names
from penstock.model.script import Statement
from penstock.model.sources import QuerySource


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """``text[start:end]`` becomes the name that a run gives ``source``."""

    start: int
    end: int
    source: QuerySource


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a script; ``name`` is set for a temporary table."""

    statement: Statement = field(repr=False)
    name: str | None = None
    sources: tuple[SourceEdit, ...] = ()
    edits: tuple[Edit, ...] = ()
    placeholders: Mapping[str, Constant] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a statement may refer to. ``hidden`` are folded names of temporary tables."""

    source: Source
    names: Names
    dialect: str
    arguments: Mapping[str, Argument]
    partitioned: bool
    hidden: frozenset[str] = frozenset()
