"""Tell why a model may make other rows although nothing that it reads has changed. Pure.

Such a model is never up to date: what it makes follows from the clock, from chance, or from sources
that nobody can date. Nor is one that does something once a run: an append, and the statements of a
manual script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from penstock.model.definition.graph import makers_by_table, table_key
from penstock.model.definition.model import Model
from penstock.model.python_steps import PAYLOAD
from penstock.model.query.query import Query
from penstock.model.script.sources import FunctionSource
from penstock.model.slicing.needs import Sliced, sliced
from penstock.model.time.time_macros import TYPES, as_written, is_of_interval
from penstock.model.values.asset import FileName
from penstock.model.values.data_test import AggregateTest, ExpressionTest, QueryTest
from penstock.model.values.strategy import Output
from penstock.sql.determinism import volatile_calls
from penstock.sql.identifiers import FEEDS
from penstock.sql.tokens import tokenize


def why_undated(model: Model, views: Iterable[Model] = ()) -> str | None:
    """Return the first reason; ``views`` are the VIEW models that it reads, however far."""
    return next((why for rule in _RULES for why in rule(model)), None) or next(
        (f"{view.name}: {why}" for view in views for why in _volatile(view)), None
    )


def why_unrepeatable(model: Model, views: Iterable[Model] = ()) -> str | None:
    """Return the first reason why a step may make other rows of the same inputs at the same moment
    of a run; ``views`` as above.
    """
    own = (why for rule in (_python, _sources, _calls) for why in rule(model))
    return next(own, None) or next(
        (f"{view.name}: {why}" for view in views for why in _calls(view)), None
    )


def views_read(
    models: Iterable[Model], makers: Mapping[str, Model] | None = None
) -> Mapping[str, tuple[Model, ...]]:
    """Return the VIEW models that each model reads, those that they read among them, by its name;
    without those that read none. ``makers`` are the models of the project by their tables, where
    these are not all.
    """
    models = tuple(models)
    makers = makers_by_table(models) if makers is None else makers
    found = {
        model.name: tuple({view.name: view for view in _views(model, makers)}.values())
        for model in models
    }
    return {name: views for name, views in found.items() if views}


def _views(model: Model, made: Mapping[str, Model]) -> Iterator[Model]:
    for table in model.changing_inputs:
        maker = made.get(table_key(table))
        if maker is not None and maker is not model and maker.strategy.output is Output.VIEW:
            yield maker
            yield from _views(maker, made)


def _once_a_run(model: Model) -> Iterator[str]:
    strategy = model.strategy
    by_slices = strategy.only_adds and sliced(model) is not Sliced.NOT  # each is added once
    once = strategy.may_repeat and not by_slices
    if once or strategy.output not in {Output.TABLE, Output.VIEW}:
        yield f"{strategy} does what it does once a run"


def _python(model: Model) -> Iterator[str]:
    step = model.python
    if step is None:
        return
    if not step.reads:
        yield "its code declares no table that it reads"
    if any(isinstance(each, FileName) for each in step.reads):
        yield "its code reads files"
    if step.uses_spark:
        yield "its code may read whatever Spark does"
    if any(each.role == PAYLOAD for each in step.parameters):
        yield "its code reads the payload of the run"


def _calls(model: Model) -> Iterator[str]:
    for query in _queries(model.query):
        for part in (*query.parts, *query.after):
            for token in volatile_calls(part.statement.tokens):
                yield f"{token.text} differs from run to run"


def _volatile(model: Model) -> Iterator[str]:
    yield from _calls(model)
    for query in _queries(model.query):
        if query.calls_others:
            yield "it calls functions that Spark does not have, perhaps macros of a lake"


def _tests(model: Model) -> Iterator[str]:
    """By data tests: one with ``now()`` may fail later on rows that have passed it."""
    texts = [test.sql for test in model.data_tests if isinstance(test, _WITH_SQL)]
    for token in (token for text in texts for token in volatile_calls(tokenize(text))):
        yield f"{token.text} of a data test differs from run to run"
    for script in model.test_scripts:
        for query in _queries(script.query):
            for part in query.parts:
                for token in volatile_calls(part.statement.tokens):
                    yield f"{token.text} of a data test differs from run to run"


def _queries(query: Query) -> Iterator[Query]:
    yield query
    for inner in query.embeds.values():
        yield from _queries(inner)


def _times(model: Model) -> Iterator[str]:
    is_whole = model.partition is None and model.by_time is None
    for argument in model.run_arguments:
        if argument.name in TYPES and (is_whole or not is_of_interval(argument.name)):
            yield f"{as_written(argument.name)} follows the moment of the run"


def _sources(model: Model) -> Iterator[str]:
    for source in model.query.sources:
        if not isinstance(source, FunctionSource):
            continue
        if source.function not in FEEDS or source.table is None:
            yield f"{source.function}() tells what the lake is now"


_WITH_SQL = (ExpressionTest, AggregateTest, QueryTest)
_RULES: tuple[Callable[[Model], Iterator[str]], ...] = (
    _once_a_run,
    _python,
    _times,
    _sources,
    _volatile,
    _tests,
)
