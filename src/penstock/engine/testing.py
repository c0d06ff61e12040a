"""The data tests of one step, over its candidate state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.checks.registry import build
from penstock.engine.checks.run import run_checks
from penstock.engine.checks.scope import Scope
from penstock.engine.resolve import Pins, resolve
from penstock.engine.results import CheckResult
from penstock.engine.views import Views
from penstock.errors import ArgumentError, Location, NotFound
from penstock.lake.failures import explained
from penstock.model.asset import Asset, table_of
from penstock.model.constants import Bindings
from penstock.model.model import Model

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


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

    def run(self, candidate: DataFrame) -> tuple[CheckResult, ...]:
        """Results in the order of the script's lines. ``candidate`` is the slice."""
        view = self.views.add(candidate)
        types = dict(candidate.dtypes)
        checks = []
        for number, test in enumerate(self.model.annotations.data_tests):
            place = self.model.annotations.places.get(f"data_test:{number}")
            scope = Scope(
                view=view,
                types=types,
                prefix=f"t{number}",
                location=place,
                tables=self._tables(place),
                scripts=self._script,
            )
            checks.append(build(test, scope))
        with explained():
            return run_checks(self.session, checks, view)

    def _tables(self, place: Location | None) -> Callable[[Asset], tuple[str, tuple[str, ...]]]:
        def find(asset: Asset) -> tuple[str, tuple[str, ...]]:
            table = table_of(asset)
            if table is None:
                raise ArgumentError(
                    f"{asset.path} is no table, which a relationships test refers to",
                    hint="write -> ducklake://lake/table.column",
                    location=place,
                )
            try:
                df = self.pins.read(table)
            except NotFound as error:
                error.location = error.location or place
                raise
            return self.views.add(df), tuple(df.columns)

        return find

    def _script(self, path: str) -> str:
        """The view of a test script's rows; its errors are placed in its own file."""
        resolved = resolve(
            next(one.query for one in self.model.test_scripts if one.name == path),
            self.bindings,
            self.pins,
            session=self.session,
            views=self.views,
            root=self.root,
        )
        return self.views.add(resolved.df)
