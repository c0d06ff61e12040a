"""Temporary views and macros of one step, under names that no other step uses, dropped after it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.engine.pins import Pins
from penstock.lake.queries.resolver import Resolver
from penstock.lake.queries.running import rewritten
from penstock.model.query import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Views:
    """A context: what was put is dropped at its end, by ``later`` where there is one.

    Spark looks through all that it keeps in memory for each view that goes: some 4 ms, which no
    step need wait for.
    """

    def __init__(self, session: SparkSession, later: Executor | None = None) -> None:
        self._session = session
        self._later = later
        self._prefix = f"penstock_{uuid4().hex[:12]}"
        self._names: list[str] = []

    def name(self) -> str:
        """A name for a view that `put` makes later."""
        self._names.append(f"{self._prefix}_{len(self._names)}")
        return self._names[-1]

    def put(self, name: str, df: DataFrame) -> None:
        """Make the view whose name was given out."""
        df.createOrReplaceTempView(name)

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        names, self._names = self._names, []
        if self._later is None:
            self._drop(names)
        else:
            self._later.submit(self._drop, names)

    def _drop(self, names: Sequence[str]) -> None:
        # A view that stays is no harm, and an error on the way out would hide the one before it.
        with contextlib.suppress(Exception):
            for name in names:
                self._session.catalog.dropTempView(name)


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
