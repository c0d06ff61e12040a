"""Scripts that write their table themselves (``materialize manual``): all in one transaction.

seeds/materialization.md: the script's own statements run, and that its slice was materialized is
recorded with them. Nothing is tested, and a second run does again what the statements say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.destinations.values import Staged
from penstock.engine.inputs.pinned_tables import Pins, table_name
from penstock.engine.inputs.resolve import called, place, read_source
from penstock.errors import PenstockError, QueryFailed, StepError
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.query.render import trial_names
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import QuerySource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.destinations.destination import StagedTable, Transaction


def run_statements(
    query: Query,
    lake: str,
    bindings: Bindings,
    tx: Transaction,
    pins: Pins,
    *,
    session: SparkSession,
    root: Path,
) -> None:
    """Run the statements of a manual script, or those behind a query, within ``tx`` on ``lake``.

    Tables of this lake are read as the statements before have left them; files, earlier
    snapshots and tables of other lakes as they were. Raises what `Transaction.sql` raises, placed
    in the script.
    """
    own = {s for s in query.tables if s.table.lake == lake and s.at is None}
    others = [source for source in query.sources if source not in own]
    views: dict[QuerySource, str] = trial_names(others)
    frames: dict[str, DataFrame] = {
        view: read_source(source, query, bindings, pins, session=session, root=root).df
        for source, view in views.items()
    }
    names: dict[QuerySource, str] = {source: table_name(source.table) for source in own}
    names.update(views)
    shown = {view: called(source, bindings) for source, view in views.items()}
    for part, statement in zip(query.parts, query.render_statements(names), strict=True):
        try:
            tx.sql(statement.sql, statement.args(bindings), frames, dialect=query.dialect)
        except PenstockError as error:
            position, error.position = error.position, None  # of the statement alone
            if isinstance(error, QueryFailed):
                raise place(error, statement, shown) from error.__cause__
            at = query.source.location(part.statement.start)
            if position is not None:
                at = statement.locate(position.line, (position.column or 1) - 1)
            error.location = error.location or at
            raise


def counts_slice(table: StagedTable, slice_: tuple[str, str] | None) -> bool:
    """Whether the rows of a slice can be told from those of others: the whole table, or one that
    has the slice's column.
    """
    return slice_ is None or slice_[0] in table.schema.names


def recorded(model: Model, table: StagedTable, slice_: tuple[str, str] | None) -> Staged:
    """What the statements left in the table, or in a slice of it where it has the slice's column.

    Raises StepError where they did not make the table.
    """
    if not table.exists:
        raise StepError(
            f"the script did not make its table {model.target}",
            hint="let one of its statements be CREATE TABLE IF NOT EXISTS ...",
            location=model.place("target"),
        )
    return Staged(slice_rows=table.count_rows(slice_ if counts_slice(table, slice_) else None))
