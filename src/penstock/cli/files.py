"""What `backup` and `restore` say in the end, with what was found of the catalog's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.failure import EXIT_FAILED
from penstock.cli.output import print_json, say

if TYPE_CHECKING:
    from penstock.lake.recovery.missing_files import FileCheck

_SHOWN = 10


def conclude(made: object, said: str, found: FileCheck | None, *, as_json: bool) -> None:
    """Say what was made; the exit code is 1 when a file is missing."""
    if as_json:
        print_json(made)
    else:
        say(said)
        _say_files(found)
    if found is not None and found.missing:
        click.get_current_context().exit(EXIT_FAILED)


def _say_files(found: FileCheck | None) -> None:
    """Say how many files are there, and which are not; nothing where nobody looked."""
    if found is None:
        return
    if not found.missing:
        say(f"Missing files: none of {found.files:,}.")
        return
    say(f"Missing files: {len(found.missing):,} of {found.files:,}:", err=True)
    for path in found.missing[:_SHOWN]:
        say(f"  {path}", err=True)
    if len(found.missing) > _SHOWN:
        say(f"  and {len(found.missing) - _SHOWN:,} more", err=True)
