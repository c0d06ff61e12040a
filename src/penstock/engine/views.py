"""Temporary views of one step: named so that steps side by side never meet, and dropped after."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING
from uuid import uuid4

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
