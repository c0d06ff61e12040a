"""One tree of errors. Each carries its data; each message ends with the next step.

::

    PenstockError
    ├── InputError                 what the user gave is wrong (exit code 2)
    │   ├── ConfigError            penstock.toml, environment or flags
    │   ├── ModelError             a script; holds every diagnostic found
    │   ├── PartitionError         a partition value or its options
    │   ├── ArgumentError          an argument of a script or a command
    │   └── EnvironmentMissing     Java, PySpark or an extra is not installed
    ├── PlanMoved                  what a saved plan was made from has changed (exit code 4)
    ├── LakeError
    │   ├── CatalogError
    │   │   ├── CatalogMissing     nothing there, and creation was not asked for
    │   │   ├── CatalogVanished    nothing there, but its data path holds a lake's files
    │   │   ├── CatalogLocked      another process held it for too long
    │   │   ├── CatalogCancelled   its server cancelled a statement, which changed nothing
    │   │   ├── CatalogFull        its disk has no room for what is written
    │   │   ├── CatalogUnreachable the server or file cannot be opened
    │   │   ├── CatalogVersionUnsupported
    │   │   └── CatalogCorrupt     a row that the format does not allow
    │   ├── NotFound
    │   │   ├── SchemaNotFound
    │   │   ├── TableNotFound
    │   │   ├── ColumnNotFound
    │   │   ├── SnapshotNotFound
    │   │   └── DataFileMissing    a catalog or a log names a file that is not there
    │   ├── DataFileCorrupt        a data or delete file that is not what it should be
    │   ├── UnsupportedFeature     part of the format that this version does not support
    │   ├── SchemaMismatch         a DataFrame does not fit its table
    │   ├── NameTaken              there is a table, view, schema or column of this name
    │   ├── ReadOnlyLake
    │   ├── LakeClosed             used after it was closed
    │   ├── DataPathError          the data path cannot be written
    │   └── CommitError
    │       ├── CommitConflict     did not land: another commit excludes it
    │       ├── ClaimLost          did not land: another run has taken over its slices
    │       ├── RetriesExhausted   did not land: too many others were quicker
    │       └── CommitUnknown      the connection was lost during COMMIT
    └── StepError                  a step of a run failed (exit code 1)
        ├── QueryFailed            Spark refused or failed the SELECT; a LakeError too
        ├── PythonFailed           a step in Python raised, ended or ran past its timeout
        ├── SparkLost              Spark's process has ended; a LakeError too
        ├── MergeKeyError          NULL or duplicate keys in a merge source; a LakeError too
        ├── DefinitionChanged      the script's definition does not fit the rows that are there
        └── DataTestFailed         the slice was not published
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source file: lines and columns count from 1.

    ``inside`` says which macro was called there, and where that is written, for what is wrong in
    the macro.
    """

    path: str | Path
    line: int | None = None
    column: int | None = None
    inside: str | None = None

    def __str__(self) -> str:
        parts = [str(self.path)]
        parts += [str(n) for n in (self.line, self.column) if n is not None]
        where = ":".join(parts)
        return f"{where} (in {self.inside})" if self.inside else where


class Position(NamedTuple):
    """A place in the text of a statement. Lines and columns count from 1.

    Attributes:
        line: The line.
        column: The column; None where only the line is known.
    """

    line: int
    column: int | None = None

    def __str__(self) -> str:
        """Return ``3:4``, or the line alone."""
        return str(self.line) if self.column is None else f"{self.line}:{self.column}"


class PenstockError(Exception):
    """Root of the tree. ``str()`` is one message: place, cause, next step::

        try:
            project.run()
        except PenstockError as error:
            print(error.message, error.hint)

    Attributes:
        cause: What is wrong, without a place.
        position: Where it is in the text of a statement.
        location: Where it is in a file.
        hint: The next step.
        data: The parts of the message as values, for programs.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        location: Location | None = None,
        data: Mapping[str, Any] | None = None,
        position: Position | None = None,
    ) -> None:
        self.cause = message
        self.position = position
        self.hint = hint
        self.location = location
        self.data: dict[str, Any] = dict(data or {})
        super().__init__(message)

    @property
    def message(self) -> str:
        """The cause, with its position in the statement where that is known."""
        return self.cause if self.position is None else f"{self.cause}, at line {self.position}"

    def __str__(self) -> str:
        text = f"{self.location}: {self.message}" if self.location else self.message
        return f"{text}\n  → {self.hint}" if self.hint else text

    #: Whether notebooks show the whole traceback: ``PenstockError.full_traceback = True``.
    full_traceback: ClassVar[bool] = False

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the message, which says where and what next, not how it came
        up.
        """
        if self.full_traceback:
            return "".join(traceback.format_exception(self)).splitlines()
        return f"{type(self).__name__}: {self}".splitlines()


class InputError(PenstockError):
    exit_code = 2


class ConfigError(InputError):
    pass


class PartitionError(InputError):
    pass


class ArgumentError(InputError):
    pass


class EnvironmentMissing(InputError):
    pass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a script. ``severity`` is ``error`` or ``warning``."""

    severity: str
    message: str
    location: Location
    hint: str | None = None
    rule: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"{self.location}: {self.severity}: {self.message}"
        return f"{text}\n  → {self.hint}" if self.hint else text


class ModelError(InputError):
    """One or more scripts are wrong; ``diagnostics`` holds all findings, in file order."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(str(d) for d in self.diagnostics))


class PlanMoved(PenstockError):
    """``data``: ``moved``, what has changed since, each as a text."""

    exit_code = 4


class LakeError(PenstockError):
    pass


class CatalogError(LakeError):
    exit_code = 2


class CatalogMissing(CatalogError):
    pass


class CatalogVanished(CatalogError):
    """``data``: ``catalog``, ``data_path`` and one ``file`` below it."""


class CatalogLocked(CatalogError):
    exit_code = 1


class CatalogCancelled(CatalogError):
    exit_code = 1


class CatalogFull(CatalogError):
    exit_code = 1


class CatalogUnreachable(CatalogError):
    pass


class CatalogVersionUnsupported(CatalogError):
    pass


class CatalogCorrupt(CatalogError):
    pass


class NotFound(LakeError):
    exit_code = 2


class SchemaNotFound(NotFound):
    pass


class TableNotFound(NotFound):
    pass


class ColumnNotFound(NotFound):
    pass


class SnapshotNotFound(NotFound):
    pass


class DataFileMissing(NotFound):
    exit_code = 1


class DataFileCorrupt(LakeError):
    """``data``: ``path``, and where known ``table`` and ``snapshot_id``."""


class UnsupportedFeature(LakeError):
    """Part of the format that this version of Penstock refuses, rather than guess."""

    exit_code = 2


class SchemaMismatch(LakeError):
    pass


class NameTaken(LakeError):
    exit_code = 2


class ReadOnlyLake(LakeError):
    exit_code = 2


class LakeClosed(LakeError):
    """Raised by every call of a closed lake or project."""

    exit_code = 2


class DataPathError(LakeError):
    exit_code = 2


class CommitError(LakeError):
    pass


class CommitConflict(CommitError):
    """Did not land: a snapshot of another writer excludes it. Staged files are removed."""


class ClaimLost(CommitError):
    """Did not land: the run was silent for too long, and its claim of the slices has ended."""


class RetriesExhausted(CommitError):
    """Did not land: other writers were quicker each time. May be tried again."""


class CommitUnknown(CommitError):
    """The connection was lost during COMMIT and the catalog cannot be asked: touch nothing."""


class StepError(PenstockError):
    pass


class QueryFailed(StepError, LakeError):
    """Raised by `Lake.sql` and by steps alike, so it is an error of both."""


class PythonFailed(StepError):
    """``data``: ``traceback``, the lines of the project that led to it, the last one last."""


class SparkLost(StepError, LakeError):
    """Spark's Java process has ended, or has stopped what ran in it."""


class MergeKeyError(StepError, LakeError):
    """``data``: ``null_count``, ``duplicate_count``, ``samples`` (rows as dicts)."""


class DefinitionChanged(StepError):
    """``data``: ``table``, and ``slices``, the values of those of another kind."""


class DataTestFailed(StepError):
    """``data``: ``results``, the outcome of every test of the step."""
