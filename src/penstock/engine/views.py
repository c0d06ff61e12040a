"""Temporary views of one step: named so that steps side by side never meet, and dropped after."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Views:
    """A context: what was added is dropped at its end."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._prefix = f"penstock_{uuid4().hex[:12]}"
        self._names: list[str] = []

    def name(self) -> str:
        """A name for a view that `put` makes later."""
        self._names.append(f"{self._prefix}_{len(self._names)}")
        return self._names[-1]

    def put(self, name: str, df: DataFrame) -> None:
        """Make the view whose name was given out."""
        df.createOrReplaceTempView(name)

    def add(self, df: DataFrame) -> str:
        """The name of a new view of ``df``."""
        name = self.name()
        self.put(name, df)
        return name

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        # A view that stays is no harm, and an error on the way out would hide the one before it.
        with contextlib.suppress(Exception):
            for name in self._names:
                self._session.catalog.dropTempView(name)
        self._names.clear()
