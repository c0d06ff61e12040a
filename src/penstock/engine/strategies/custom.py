"""custom: what a class of the project makes of the rows, within the step's own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.destinations.values import Staged
from penstock.engine.strategies.target import WriteTarget
from penstock.errors import PenstockError, StepError
from penstock.model.files.python_code import module_of, said
from penstock.model.values.custom_strategy import Custom

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[Custom]) -> Staged:
    """Raises StepError for what the class raises, with the line of its file."""
    made = target.options.materialization
    try:
        instance: Any = getattr(module_of(made.path), made.class_name)()
        instance.insert(table, df, dict(target.options.properties))
    except PenstockError:
        raise
    except Exception as error:  # of the project's code: it is said with its place
        raise StepError(
            f"the materialization {made.name} failed at {said(error, made.path)}",
            hint="fix it; nothing of what it staged was published",
        ) from error
    if not table.exists:
        raise StepError(
            f"the materialization {made.name} made no table",
            hint="stage the rows: table.append(df), table.merge(df, keys), table.replace(df)",
        )
    return Staged(slice_rows=table.count_rows())
