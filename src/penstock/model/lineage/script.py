"""A script's query, read by the project's own front end, as the relation that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.model.lineage.queries import relation_of
from penstock.model.lineage.relation import Column, Doubt, Relation, Rest, Value, table
from penstock.model.lineage.values import Input, Lack, OutputColumn, Unknown
from penstock.model.query.query import Query
from penstock.model.query.render import trial_names, whole_text
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import text_of
from penstock.model.script.references import own_masks
from penstock.model.script.sources import FileSource, FunctionSource, QuerySource, TableSource
from penstock.sql.dialect import parse
from penstock.sql.identifiers import FEEDS, fold
from penstock.sql.query.edits import Mapped
from penstock.sql.text import Unreadable, mask
from penstock.sql.tokens import tokenize

#: the relation of a managed table
Tables = Callable[[TableSource], Relation]
#: what table_changes() and its like add to the columns of their table
_CHANGES = ("snapshot_id", "rowid", "change_type")


@dataclass(frozen=True, slots=True)
class QueryLineage:
    """Lineage of a query, as `penstock.model.lineage.values.ModelLineage` has it."""

    columns: tuple[OutputColumn, ...] = ()
    rows: tuple[Input, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    complete: bool = False
    lacks: tuple[Lack, ...] = ()


def query_lineage(query: Query, tables: Tables) -> QueryLineage:
    """The columns that a query makes of its tables; of one that cannot be read, only why."""
    if query.manual:
        return _unreadable("a manual script writes its table by statements of its own")
    names = trial_names(query.mentioned)
    text = whole_text(query.source, query.parts, names)
    visible = {fold(names[each]): _relation(each, tables) for each in query.mentioned}
    try:
        tree = parse(_masked(text.text, query), query.dialect)[0]
        relation, lacks = relation_of(tree, visible, query.dialect)
    except Unreadable as error:
        return _unreadable(f"the query cannot be read{error}")
    except RecursionError:
        return _unreadable("the query is nested too deeply to be read")
    return replace(_said(relation, text, query), lacks=_lacks(lacks, text, query))


def _lacks(doubts: Sequence[Doubt], text: Mapped, query: Query) -> tuple[Lack, ...]:
    """The columns that the query names and nothing returns, in the order of their places."""
    found: dict[Lack, None] = {}
    for doubt in sorted(doubts, key=lambda doubt: doubt.offset or 0):
        if doubt.lacks is not None and doubt.offset is not None:
            place = query.source.location(text.back(doubt.offset))
            found[Lack(*doubt.lacks, place.line, place.column)] = None
    return tuple(found)


def _unreadable(reason: str) -> QueryLineage:
    return QueryLineage(unknown=(Unknown(reason),))


def _masked(text: str, query: Query) -> str:
    """Without the words that the parser does not know."""
    if "MATCH_CONDITION" not in text.upper():
        return text
    return mask(text, own_masks(tokenize(text, query.dialect)))


def _relation(source: QuerySource, tables: Tables) -> Relation:
    if isinstance(source, TableSource):
        return tables(source)
    if isinstance(source, FileSource):
        path = text_of(source.path)
        why = f"the columns of {path} are not known without reading it"
        return table(path, _named(source), why)
    return _function(source, tables)


def _named(source: FileSource) -> Sequence[str] | None:
    """The columns of a file that its call names; ``None`` where it names none."""
    named = next((value for name, value in source.options if fold(name) == "columns"), None)
    names = None if named is None else named.evaluate(Bindings())
    return [str(name) for name in names] if isinstance(names, Mapping | list) else None


def _function(source: FunctionSource, tables: Tables) -> Relation:
    name = f"{source.lake}.{source.function}(...)"
    if source.function not in FEEDS or source.table is None:
        return table(name, None, f"the columns of {name} are not known")
    read = tables(TableSource(source.table))
    added = tuple(Column(column, Value(read.counted)) for column in _CHANGES)
    rest = (Rest(read),) if read.missing is not None else ()
    columns = (*added, *read.columns)
    unsure = read.unsure
    return Relation(columns, missing=read.missing, rest=rest, counted=read.counted, unsure=unsure)


def _said(relation: Relation, text: Mapped, query: Query) -> QueryLineage:
    columns = tuple(
        _column(column, number, text, query) for number, column in enumerate(relation.columns, 1)
    )
    missing = () if relation.missing is None else (relation.missing,)
    unknown = _unknown((*missing, *relation.rows.doubts), text, query)
    named = all(column.name for column in relation.columns)
    return QueryLineage(columns, _inputs(relation.rows), unknown, named and not missing)


def _column(column: Column, number: int, text: Mapped, query: Query) -> OutputColumn:
    doubts = column.value.doubts
    if not column.name:
        doubts = (*doubts, Doubt("the query gives the column no name"))
    unknown = _unknown(doubts, text, query)
    return OutputColumn(column.name or f"(column {number})", _inputs(column.value), unknown=unknown)


def _inputs(value: Value) -> tuple[Input, ...]:
    return tuple(Input(*dependency) for dependency in sorted(value.inputs))


def _unknown(doubts: tuple[Doubt, ...], text: Mapped, query: Query) -> tuple[Unknown, ...]:
    return tuple(dict.fromkeys(Unknown(d.reason, _line(d, text, query)) for d in doubts))


def _line(doubt: Doubt, text: Mapped, query: Query) -> int | None:
    if doubt.offset is None:
        return None
    return query.source.location(text.back(doubt.offset)).line
