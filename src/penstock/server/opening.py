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
    """
    from penstock.lakes.catalog.catalog import Catalog
    from penstock.server.agenda_store import AgendaStore

    home = find_home(context)
    context.lake(home)  # which creates a new lake as its settings say
    settings = context.settings.lakes[home]
    moved = settings.override_data_path
    # A connection of its own: the project closes its lakes when it releases Spark.
    catalog = Catalog.open(
        settings.catalog,
        data_path=settings.data_path if moved else None,
        override_data_path=moved,
        metadata_schema=settings.metadata_schema,
    )
    return AgendaStore(catalog)


def find_agenda(context: ProjectContext) -> AgendaStore | None:
    """Return the agenda of a project to read it. Creates neither a lake nor tables.

    Args:
        context: The project.

    Returns:
        The agenda; None where no lake can have one, or nothing has created the lake.
    """
    from penstock.server.agenda_store import AgendaStore

    try:
        catalog = context.catalog(find_home(context))
    except ArgumentError:
        return None
    return None if catalog is None else AgendaStore(catalog)
