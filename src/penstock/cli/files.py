"""What was found of the files that a catalog names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.output import count

if TYPE_CHECKING:
    from penstock.lake.missing_files import FileCheck

_SHOWN = 10


def say_files(found: FileCheck | None) -> None:
    """Say how many files are there, and which are not; nothing where nobody looked."""
    if found is None:
        return
    if not found.missing:
        click.echo(f"All of its {count(found.files, 'file')} are there.")
        return
    click.echo(f"{count(len(found.missing), 'file')} of {found.files:,} are missing:", err=True)
    for path in found.missing[:_SHOWN]:
        click.echo(f"  {path}", err=True)
    if len(found.missing) > _SHOWN:
        click.echo(f"  and {len(found.missing) - _SHOWN:,} more", err=True)
