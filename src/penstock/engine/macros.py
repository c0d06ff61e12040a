"""The macros of a lake in a script's query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.engine.pins import Pins
from penstock.lake.queries.resolver import Resolver
from penstock.lake.queries.running import rewritten
from penstock.model.query import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def names_for(query: Query, text: str, pins: Pins) -> Resolver | None:
    """What names in the macros that ``text`` calls mean; ``None`` where it calls none.

    Macros without a lake's name are those of the lake that tables without one belong to.
    """
    home = query.home
    if home is None or home.lake not in pins.lakes:
        return None
    names = pins.names(home.lake, home.schema, query.names.called(home.lake))
    return names if names.book(text).macros else None


def run(
    session: SparkSession,
    text: str,
    names: Resolver,
    views: Mapping[str, DataFrame],
    args: Mapping[str, Any],
) -> DataFrame:
    """The rows of ``text``, which reads ``views`` and may call macros, of tables too."""
    whole = rewritten(session, text, names, views=views)
    return session.sql(whole.text, args=dict(args), **dict[str, Any](whole.frames))
