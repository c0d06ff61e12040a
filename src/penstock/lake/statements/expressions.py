"""Expressions of a statement for DataFrames: macros expanded, values bound by session variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.lake.statements.literals import argument
from penstock.lake.statements.reader import Reader
from penstock.lake.statements.session import Session
from penstock.lake.statements.targets import Target, without_schema
from penstock.lake.travel import in_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class Variables:
    """Values that texts name, each a variable of the session while the statement runs."""

    spark: SparkSession
    prefix: str
    names: dict[str, str] = field(default_factory=dict)

    def of(self, key: str, value: Any) -> str:
        """The name of the variable that has this value."""
        if key not in self.names:
            name = f"{self.prefix}_{len(self.names)}"
            self.spark.sql(f"DECLARE OR REPLACE VARIABLE {name} = :value", args={"value": value})
            self.names[key] = name
        return self.names[key]


@contextmanager
def variables(session: Session) -> Iterator[Variables]:
    """Variables that are gone afterwards."""
    found = Variables(session.spark(), f"__penstock_{uuid4().hex}")
    try:
        yield found
    finally:
        for name in found.names.values():
            found.spark.sql(f"DROP TEMPORARY VARIABLE IF EXISTS {name}")


@dataclass(frozen=True, slots=True)
class Expressions:
    """Reads the expressions of one statement over a target."""

    session: Session
    reader: Reader
    of: Target
    names: Variables

    def text(self, span: tuple[int, int]) -> str:
        """An expression in Spark's SQL without macros and markers.

        Raises UnsupportedFeature for subqueries, ArgumentError for markers without a value.
        """
        parts: list[str] = []
        at = span[0]
        for token in self.reader.tokens:
            if not span[0] <= token.start < span[1]:
                continue
            if token.upper in {"SELECT", "EXISTS"}:
                raise self.reader.unsupported(
                    "a subquery in a clause of MERGE",
                    "join it in the source: USING (SELECT ... JOIN ...) AS s",
                    token.start,
                )
            if token.kind == "marker":
                parts += [self.reader.text[at : token.start], self._marker(token.text[1:])]
                at = token.end
        parts.append(self.reader.text[at : span[1]])
        text = without_schema("".join(parts), self.of)
        return self.session.names(self.session.transaction).expand(text)

    def value(self, value: Any) -> str:
        return self.names.of(f"={value!r}", value)

    def _marker(self, name: str) -> str:
        value = in_zone(argument(name, self.session.args), self.session.zone())
        return self.names.of(f":{name}", value)
