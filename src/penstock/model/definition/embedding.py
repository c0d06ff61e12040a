"""EMBEDDED models in their readers, and what a query may not have that others evaluate.

An EMBEDDED model makes nothing: its query stands in each that reads it (kinds.md, EMBEDDED). The
query of a VIEW is kept as text in its lake, where every reader must be able to run it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from penstock.errors import Diagnostic, Location
from penstock.model.definition.graph import Graph, table_key
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.script.sources import (
    FileSource,
    FunctionSource,
    QuerySource,
    TableSource,
    table_read,
)
from penstock.model.values.asset import TableName
from penstock.model.values.strategy import Output


def embed(models: Sequence[Model]) -> tuple[tuple[Model, ...], tuple[Diagnostic, ...]]:
    """The models, in order of name, with the queries of EMBEDDED models in their readers.

    A reader depends also on what the query in it reads, and its definition changes with it.
    ``models`` must be without cycles.
    """
    findings: list[Diagnostic] = []
    if not all(model.strategy.runs for model in models):
        made: dict[str, Model] = {}
        for model in Graph.of(models).ordered(models):
            made[model.name] = _with_embedded(model, _embedded(made.values()))
        models = [made[model.name] for model in models]
    embedded = _embedded(models)
    for model in models:
        findings += _findings(model)
        findings += _of_python(model, embedded)
    return tuple(models), tuple(findings)


def embed_in(model: Model, models: Iterable[Model]) -> Model:
    """Return one model with the queries of EMBEDDED ones of ``models``, as `embed` made them."""
    return _with_embedded(model, _embedded(models))


def _embedded(models: Iterable[Model]) -> dict[str, Model]:
    return {table_key(model.target): model for model in models if not model.strategy.runs}


def _with_embedded(model: Model, known: Mapping[str, Model]) -> Model:
    query = _embedding(model.query, known)
    scripts = tuple(
        replace(each, query=_embedding(each.query, known)) for each in model.test_scripts
    )
    if query is model.query and scripts == model.test_scripts:
        return model
    inner = [known[table_key(table)] for table in query.embeds]
    hashes = "\n".join([model.definition_hash, *(each.definition_hash for each in inner)])
    tests = (table for script in scripts for table in script.query.reads)
    return replace(
        model,
        query=query,
        reads=tuple(dict.fromkeys((*model.reads, *query.reads))),
        definition_hash=sha256(hashes.encode()).hexdigest() if inner else model.definition_hash,
        test_scripts=scripts,
        test_reads=tuple(
            dict.fromkeys(t for t in (*model.test_reads, *tests) if t != model.target)
        ),
    )


def _embedding(query: Query, known: Mapping[str, Model]) -> Query:
    embeds: dict[TableName, Query] = {}
    for source in query.mentioned:
        table = table_read(source)
        inner = None if table is None else known.get(table_key(table))
        if table is not None and inner is not None:
            embeds[table] = inner.query
    return replace(query, embeds=embeds) if embeds else query


def _findings(model: Model) -> Iterator[Diagnostic]:
    for query in (model.query, *(script.query for script in model.test_scripts)):
        yield from _not_now(query)
    if model.strategy.keeps_text:
        yield from _other_dialect(model.query)
    if model.strategy.output is Output.VIEW:
        yield from _of_view(model)


def _of_python(model: Model, embedded: Mapping[str, Model]) -> Iterator[Diagnostic]:
    """An EMBEDDED query has a place in a query only."""
    for table in model.reads if model.python is not None else ():
        if table_key(table) in embedded:
            message = f"a step in Python cannot read {table}, which is EMBEDDED and no table"
            place = model.places.get("on:0") or model.python_place
            yield Diagnostic("error", message, place, "write kind VIEW or FULL there", "by-readers")


def _not_now(query: Query) -> Iterator[Diagnostic]:
    """An EMBEDDED model has no versions and no changes."""
    for source in query.mentioned:
        table = table_read(source)
        if table in query.embeds and query.embedded(source) is None:
            message = f"{table} is an EMBEDDED model, which has no snapshots"
            yield _error(query, source, message, "read it by its name alone")


def _other_dialect(query: Query) -> Iterator[Diagnostic]:
    for source in query.mentioned:
        inner = query.embedded(source)
        if inner is not None and query.dialect not in {"spark", inner.dialect}:
            message = f"{called(source)} is written in {inner.dialect}, and what embeds it here is "
            hint = f"write both in one dialect: dialect {query.dialect}"
            yield _error(query, source, f"{message}kept in {query.dialect}", hint)


def _of_view(model: Model) -> Iterator[Diagnostic]:
    """A view of a lake reads what its lake has, as it is now."""
    query = model.query
    for source in query.sources:
        if isinstance(source, TableSource) and source.at is None:
            if source.table.lake == model.target.lake:
                continue
            problem = f"reads {source.table}, which is in another lake than the view"
        elif isinstance(source, TableSource):
            problem = f"reads {source.table} at an earlier snapshot"
        else:
            problem = f"calls {called(source)}, which only a run can read"
        message = f"the query of a VIEW {problem}"
        yield _error(query, source, message, "store the rows: write kind FULL")


def called(source: QuerySource) -> str:
    """Return what a query calls a source."""
    match source:
        case TableSource():
            return str(source.table)
        case FileSource() | FunctionSource():
            return source.function


def _error(query: Query, source: QuerySource, message: str, hint: str) -> Diagnostic:
    where = source.location or Location(query.path)
    return Diagnostic("error", message, where, hint, "by-readers")
