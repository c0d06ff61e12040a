"""The data tests of one step, over its candidate state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.checks.run import build, proven, run_checks
from penstock.engine.checks.scope import ReferencedTable, Scope
from penstock.engine.pins import Pins, Readable, Rows
from penstock.engine.resolve import resolve
from penstock.engine.results import CheckResult
from penstock.engine.views import Views
from penstock.errors import ArgumentError, Location, NotFound
from penstock.lake.spark.failures import explained
from penstock.model.asset import Asset, table_of
from penstock.model.constants import Bindings
from penstock.model.model import Model
from penstock.sql.conditions import Predicate

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Tester:
    """``pins`` show the step's own table in its candidate state, other tables as the step sees
    them; ``views`` live as long as the step."""

    model: Model
    bindings: Bindings
    session: SparkSession
    pins: Pins
    views: Views
    root: Path

    def run(self, candidate: Readable) -> tuple[CheckResult, ...]:
        """Results in the order of the script's lines. ``candidate`` is the slice.

        Views that no test of Spark's reads are never made.
        """
        view = self.views.name()
        made = {view: candidate.rows}
        checks = []
        for number, test in enumerate(self.model.annotations.data_tests):
            place = self.model.annotations.places.get(f"data_test:{number}")
            scope = Scope(
                view=view,
                types=candidate.types,
                prefix=f"t{number}",
                location=place,
                tables=self._tables(place, made),
                scripts=self._script,
            )
            checks.append(build(test, scope))
        passes = proven(checks, candidate.few)
        left = [check for check, passed in zip(checks, passes, strict=True) if not passed]
        with explained():
            for name in dict.fromkeys(name for check in left for name in check.views):
                self.views.put(name, made[name](None).df)
            found = iter(run_checks(self.session, left, view))
        return tuple(
            CheckResult(check.name, passed=True, failures=0) if passed else next(found)
            for check, passed in zip(checks, passes, strict=True)
        )

    def _tables(
        self, place: Location | None, made: dict[str, Callable[[Predicate | None], Rows]]
    ) -> Callable[[Asset], ReferencedTable]:
        """How to find a table that a test refers to; ``made`` gets what its view is made of."""

        def find(asset: Asset) -> ReferencedTable:
            table = table_of(asset)
            if table is None:
                raise ArgumentError(
                    f"{asset.path} is no table, which a relationships test refers to",
                    hint="write -> ducklake://lake/table.column",
                    location=place,
                )
            try:
                found = self.pins.readable(table)
            except NotFound as error:
                error.location = error.location or place
                raise
            view = self.views.name()
            made[view] = found.rows
            return ReferencedTable(view, tuple(found.types), lambda name: _few(found, name))

        return find

    def _script(self, path: str) -> Rows:
        """A test script's rows; its errors are placed in its own file."""
        found = resolve(
            next(script.query for script in self.model.test_scripts if script.name == path),
            self.bindings,
            self.pins,
            session=self.session,
            views=self.views,
            root=self.root,
        )
        return Rows(found.df, found.one_task)


def _few(table: Readable, column: str) -> pa.ChunkedArray | None:
    rows = table.few([column])
    return None if rows is None else rows[column]
