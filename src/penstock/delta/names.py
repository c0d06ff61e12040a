"""Resolve the names in a query as tables of a Delta root, at a version where one is named."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.delta.place import Place
from penstock.errors import TableNotFound
from penstock.lake.queries.rewriters import CommitContext, Rows, Wanted
from penstock.lake.snapshot import LATEST
from penstock.sql.identifiers import DEFAULT_SCHEMA, fold, quote_identifier
from penstock.sql.lake_functions import Arguments
from penstock.sql.tables import Analysis
from penstock.sql.tokens import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class DeltaNames:
    """Names of a root that SQL calls ``name``; ``place`` gives a table's place."""

    name: str
    place: Callable[[str], Place]

    def read(self, wanted: Wanted) -> Rows:
        """The rows of a table. Raises TableNotFound, SnapshotNotFound, UnsupportedFeature."""
        named = wanted.reference
        if named.catalog is not None and fold(named.catalog) != fold(self.name):
            raise TableNotFound(
                f"{named.catalog} does not exist: this root is called {self.name}",
                hint=f"write {named.schema}.{named.name}",
                data={"table": named.name},
            )
        parts = (named.schema or DEFAULT_SCHEMA, named.name)
        place = self.place(".".join(map(quote_identifier, parts)))
        at = wanted.at or LATEST
        version = place.at(at.version, at.timestamp)
        return Rows(place.read(version, wanted.predicate))

    def functions(self) -> Collection[str]:
        return ()

    def call(self, name: str, before: tuple[str, ...], arguments: Arguments) -> DataFrame:  # noqa: ARG002 - of the protocol
        raise AssertionError(f"{name} is none of functions()")

    def answer(self, analysis: Analysis, context: CommitContext) -> DataFrame | None:  # noqa: ARG002 - of the protocol
        return None

    def expanded(self, text: str) -> SqlText:
        return SqlText(text)
