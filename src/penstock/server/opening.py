"""Open what serves a project: its agenda, its watches and its pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext
    from penstock.server.agenda_store import AgendaStore


def find_home(context: ProjectContext) -> str:
    """Return the lake whose catalog has the agenda of a project.

    Args:
        context: The project.

    Returns:
        The first lake of penstock.toml that is no root of Delta tables.

    Raises:
        ArgumentError: The project has no such lake.
    """
    from penstock.settings.keys import DELTA

    for name, lake in context.settings.lakes.items():
        if lake.kind != DELTA:
            return name
    raise ArgumentError(
        "the agenda of a project is in the catalog of a lake, and this project has none",
        hint='add one to penstock.toml: [lakes.main] with catalog = "sqlite:meta.sqlite"',
    )


def open_agenda(context: ProjectContext) -> AgendaStore:
    """Open the agenda of a project. Creates the catalog and its tables if they do not exist.

    Args:
        context: The project.

    Returns:
        The agenda.

    Raises:
        ArgumentError: The project has no lake for it.
        LakeError: The catalog cannot be opened.
    """
    from penstock.engine.state.store import State
    from penstock.server.agenda_store import AgendaStore

    catalog = context.lake(find_home(context)).catalog
    State(catalog).prepare()
    return AgendaStore(catalog)
