"""The lake that a command acts on, by the settings alone: scripts that are wrong do not matter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import find_project
from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from penstock.config import LakeSettings


def lake_settings(project_dir: Path | None, name: str | None) -> tuple[str, LakeSettings]:
    """A lake of penstock.toml and its name; without a name the only one there is.

    :raises ArgumentError: there is none of that name, or several to choose from
    """
    from penstock.config import load_settings

    lakes = load_settings(project_dir or find_project()).lakes
    known = ", ".join(lakes)
    if name is None:
        if len(lakes) > 1:
            raise ArgumentError(f"there are several lakes: {known}", hint="name one with --lake")
        name = next(iter(lakes))
    if name not in lakes:
        raise ArgumentError(f"there is no lake {name!r}", hint=f"penstock.toml has {known}")
    return name, lakes[name]
