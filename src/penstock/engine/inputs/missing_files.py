"""``missing = 'empty'`` of a call that reads files: a file that does not exist has no rows.

A day without a delivery is an empty slice then, and not a failure. The call declares its columns,
as there may be no file that says them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.engine.inputs.file_reader import NoFiles, no_files
from penstock.engine.inputs.input_files import matching
from penstock.errors import ArgumentError, Location
from penstock.model.script.sources import FileSource

OPTION, EMPTY = "missing", "empty"


def without_option(
    options: Mapping[str, Any], location: Location | None
) -> tuple[dict[str, Any], bool]:
    """Return the other options of a call, and whether its files may be missing.

    Raises ArgumentError.
    """
    others = {name: value for name, value in options.items() if name.lower() != OPTION}
    values = [value for name, value in options.items() if name.lower() == OPTION]
    if values and (not isinstance(values[0], str) or values[0].lower() != EMPTY):
        raise ArgumentError(
            f"{OPTION} is {values[0]!r}",
            hint=f"write {OPTION} = '{EMPTY}', or leave it out: a missing file is an error then",
            location=location,
        )
    return others, bool(values)


def existing(
    source: FileSource, path: object, options: Mapping[str, Any], root: Path
) -> list[str] | NoFiles:
    """Return the paths of a call that lead to files, or no files in its columns.

    Raises ArgumentError for files of another machine, and where no columns are declared.
    """
    texts = [str(text) for text in path] if isinstance(path, list | tuple) else [str(path)]
    remote = next((text for text in texts if "://" in text), None)
    if remote is not None:
        raise ArgumentError(
            f"{OPTION} = '{EMPTY}' is for files of this machine, and {remote} is not one",
            hint="read a pattern that always matches a file, or leave the option out",
            location=source.location,
        )
    if not {"columns"} & {name.lower() for name in options}:
        raise ArgumentError(
            f"{OPTION} = '{EMPTY}' needs the columns of the file, which may not be there",
            hint="declare them: columns = {'id': 'BIGINT', ...}",
            location=source.location,
        )
    present = [text for text in texts if matching(text, root)]
    if present:
        return present
    nothing = no_files(source.function, options, source.location)
    assert nothing is not None, "its columns are declared"
    return nothing
