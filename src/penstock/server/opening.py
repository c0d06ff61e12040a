"""Open what serves a project: its agenda, its watches and its pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext
    from penstock.server.agenda_store import AgendaStore


def find_home(context: ProjectContext) -> str:
    """Return the lake whose catalog has the agenda of a project.

    Args:
        context: The project.

    Returns:
        The first lake of penstock.toml that is no root of Delta tables. Each project has one.
    """
    from penstock.settings.keys import DELTA

    lakes = context.settings.lakes
    return next(name for name, lake in lakes.items() if lake.kind != DELTA)


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
        The agenda; None where nothing has created the lake.
    """
    from penstock.server.agenda_store import AgendaStore

    catalog = context.catalog(find_home(context))
    return None if catalog is None else AgendaStore(catalog)
