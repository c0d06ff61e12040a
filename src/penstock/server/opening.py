"""Open the agenda of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext
    from penstock.server.agenda_store import AgendaStore


def find_home(context: ProjectContext) -> str:
    """Return the name of the lake whose catalog contains the agenda.

    Args:
        context: The project.

    Returns:
        The first lake of penstock.toml that is not a Delta root. Each project has one.
    """
    from penstock.settings.keys import DELTA

    lakes = context.settings.lakes
    return next(name for name, lake in lakes.items() if lake.kind != DELTA)


def open_agenda(context: ProjectContext) -> AgendaStore:
    """Open the agenda of a project. Creates the lake if it does not exist.

    Args:
        context: The project.

    Returns:
        The agenda.
    """
    from penstock.lakes.catalog.catalog import Catalog
    from penstock.server.agenda_store import AgendaStore

    home = find_home(context)
    context.lake(home)  # creates a missing lake
    settings = context.settings.lakes[home]
    moved = settings.override_data_path
    # The agenda needs its own connection: the project closes its lakes when it releases Spark.
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
        The agenda; None if the lake does not exist.
    """
    from penstock.server.agenda_store import AgendaStore

    catalog = context.catalog(find_home(context))
    return None if catalog is None else AgendaStore(catalog)
