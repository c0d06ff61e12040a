"""A merge by rules: keys that are expressions, ``when_matched`` and ``merge_filter``.

It is a MERGE of the lake, in the script's dialect. Rows that a clause would leave as they are stay
where they are, so that a run over the same rows changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.destinations.values import Staged
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.strategies.target import Step, WriteTarget
from penstock.errors import PenstockError
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.rows.merge_source import Source, check_keys
from penstock.model.definition.model import Model
from penstock.model.values.upsert import SOURCE, TARGET, Matched, on_side
from penstock.sql.dialect import DUCKDB, to_spark
from penstock.sql.identifiers import fold, quote_identifier, quoted
from penstock.sql.tokens import unsubstituted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable

_VIEW = "penstock_source"


@dataclass(frozen=True, slots=True)
class Options:
    """The model says the rules, and the MERGE is one of the step's transaction."""

    model: Model
    step: Step


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[Options]) -> Staged:
    """Raises MergeKeyError for NULL and double keys of ``df``."""
    model, tx = target.options.model, target.options.step.tx
    rows, name = df.persist(), table_name(model.target)
    try:
        _check_keys(rows, model)
        if not table.exists:
            return table.append(rows)
        merge = statement(name, rows.columns, model)
        try:
            tx.sql(merge, views={_VIEW: rows}, dialect=model.query.dialect)
        except PenstockError as error:
            error.location = error.location or model.place("when_matched")
            raise
        return Staged(slice_rows=table.count_rows())
    finally:
        rows.unpersist()


def _check_keys(rows: DataFrame, model: Model) -> None:
    """As a merge by columns has it: no key is NULL, and none comes twice."""
    keys = keys_of(rows, model)
    check_keys(Source(keys, schema_of(keys), model.keys), table=model.target.qualified)


def keys_of(rows: DataFrame, model: Model) -> DataFrame:
    """The keys of rows, in columns that are called as the script calls them."""
    return rows.selectExpr(
        *(unsubstituted(key_in_spark(key, model)) + f" AS {quoted(key)}" for key in model.keys)
    )


def key_in_spark(key: str, model: Model) -> str:
    """A key of the model, a column or an expression, in Spark's SQL."""
    if key not in model.key_expressions:
        return quoted(key)
    return to_spark(key, model.query.dialect, expression=True)


def keys_in_spark(model: Model) -> tuple[tuple[str, str], ...]:
    """All keys of the model, by their names in the script."""
    return tuple((key, key_in_spark(key, model)) for key in model.keys)


def statement(name: str, columns: Sequence[str], model: Model) -> str:
    """The MERGE of rows with these ``columns`` into the table called ``name``."""
    upsert = model.upsert
    on = [_key(key, model) for key in model.keys]
    if upsert.merge_filter:
        on.append(f"({upsert.merge_filter})")
    keys = {fold(key) for key in model.keys}
    others = [column for column in columns if fold(column) not in keys]
    everything = tuple((column, _of(SOURCE, column, model)) for column in others)
    matched = upsert.matched or ((Matched(None, everything),) if everything else ())
    clauses = [clause for each in matched for clause in _clauses(each, model)]
    return (
        f"MERGE INTO {name} AS {TARGET} USING {_VIEW} AS {SOURCE} ON {' AND '.join(on)} "
        f"{' '.join(clauses)} WHEN NOT MATCHED THEN INSERT *"
    )


def _key(key: str, model: Model) -> str:
    if key not in model.key_expressions:
        return f"{_of(TARGET, key, model)} = {_of(SOURCE, key, model)}"
    sides = (on_side(key, side, model.query.dialect) for side in (TARGET, SOURCE))
    return " = ".join(sides)


def _of(side: str, column: str, model: Model) -> str:
    mark = '"' if model.query.dialect == DUCKDB else "`"
    return f"{side}.{quote_identifier(column, mark=mark)}"


def _clauses(matched: Matched, model: Model) -> Iterator[str]:
    when = f"WHEN MATCHED AND ({matched.condition})" if matched.condition else "WHEN MATCHED"
    if not matched.sets:
        yield f"{when} THEN DELETE"
        return
    sets = [(_of(TARGET, column, model), value) for column, value in matched.sets]
    same = " AND ".join(f"{column} IS NOT DISTINCT FROM ({value})" for column, value in sets)
    yield f"{when} AND {same} THEN DO NOTHING"
    yield f"{when} THEN UPDATE SET {', '.join(f'{column} = {value}' for column, value in sets)}"
