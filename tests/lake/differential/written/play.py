"""Play a script: on a lake, by whom it says, and on the model; remember each snapshot's rows."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from penstock.errors import PenstockError, UnsupportedFeature
from tests.duckdb_process import DuckDBError, DuckDBProcess
from tests.lake.differential import places
from tests.lake.differential.places import Home
from tests.lake.differential.written.model import Effect, Model
from tests.lake.differential.written.ours import Penstock
from tests.lake.differential.written.script import Script, Step
from tests.lake.differential.written.theirs import Answer, Theirs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Played:
    """``states`` are the model's rows by snapshot and table; ``refused`` what Penstock refuses by
    name; ``failed`` what fails on both; ``problems`` what went wrong while it played;
    ``seconds`` what the steps took, by who ran them, and the reading."""

    script: Script
    home: Home
    states: dict[int, dict[str, pa.Table]] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    last: list[Answer] = field(default_factory=list)  # those of the lake as it is at the end
    refused: list[tuple[Step, str]] = field(default_factory=list)
    failed: list[tuple[Step, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


class _Fault(Exception):
    """The lake did not take a statement. ``refused``: it said that it does not do such."""

    def __init__(self, said: str, *, refused: bool) -> None:
        super().__init__(said)
        self.refused = refused


class Player:
    def __init__(
        self, spark: SparkSession, duckdb: DuckDBProcess, script: Script, home: Home
    ) -> None:
        self.script, self.home = script, home
        self.ours = Penstock(spark, home, script.inline)
        self.theirs = Theirs(duckdb, home, script.inline)
        self.model = Model()
        self.found = Played(script, home)
        self.latest = 0
        self.open_by: str | None = None  # who has the open transaction
        self.dead = False  # the open transaction has failed: the rest of it is left out

    def run(self, limit: int | None = None) -> Played:
        try:
            for step in self.script.steps:
                if step.destroys:
                    self.turn("duckdb")
                    self.found.answers += self.theirs.read(limit, step.text)
                self.step(step)
            if self.open_by is not None:
                self.step(Step("ROLLBACK", self.open_by))
            self.turn("duckdb")
            with self.timed("reading"):
                self.found.last = self.theirs.read(limit, self.script.text)
            self.found.answers += self.found.last
        finally:
            self.ours.close()
            with suppress(DuckDBError):
                self.theirs.close()
            self.model.close()
        return self.found

    def turn(self, by: str) -> None:
        """One of them at the lake at a time, as a DuckDB file wants it."""
        (self.ours if by == "duckdb" else self.theirs).close()

    def step(self, step: Step) -> None:
        if self.dead:
            if step.closes:
                self.dead = False
            return
        with self.timed(f"{step.by} {step.text.split(None, 1)[0].upper()}"):
            if step.opens or step.closes:
                self.bracket(step)
            else:
                self.statement(step)
            if self.open_by is None:
                self.note(step)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.found.seconds[what] += time.monotonic() - started

    def bracket(self, step: Step) -> None:
        try:
            self.lake(step, None, None)
        except _Fault as fault:
            self.blame(step, fault)
            self.undo(step)
            self.open_by, self.dead = None, step.opens
            return
        self.model.run(step.text)
        self.open_by = step.by if step.opens else None

    def statement(self, step: Step) -> None:
        alone = self.open_by is None
        if alone:
            self.model.run("BEGIN")
        effect, error = self.on_model(step)
        created = None
        if error is None and step.table and step.text.upper().startswith("CREATE"):
            created = self.model.read(step.table)
        try:
            if step.by == "methods" and error is not None:
                raise _Fault("it is given what the model did", refused=False)
            if step.by != "model":
                self.check_count(step, effect, self.lake(step, effect, created))
        except _Fault as fault:
            self.blame(step, fault, error)
            self.undo(step)
            return
        if error is not None:
            if step.by != "model":
                self.found.problems.append(f"{step}: only the model says {error}")
            self.undo(step)
        elif alone:
            self.model.run("COMMIT")
            self.check_snapshots(step, effect)

    def on_model(self, step: Step) -> tuple[Effect, str | None]:
        text = step.for_model
        text = text and text.replace("{dir}", str(self.home.files))
        try:
            if text is None:
                return Effect(None), None
            if step.by == "methods" and step.table and not text.upper().startswith("CREATE"):
                return self.model.effect(text, step.table), None
            return Effect(self.model.run(text)), None
        except duckdb.Error as error:
            return Effect(None), str(error)

    def lake(self, step: Step, effect: Effect | None, created: pa.Table | None) -> int | None:
        self.turn(step.by)
        try:
            if step.by == "duckdb":
                self.theirs.run(step.text)
                return None
            return self.ours.run(step, effect, created)
        except DuckDBError as error:
            raise _Fault(f"DuckDB: {error}", refused=False) from error
        except UnsupportedFeature as error:
            raise _Fault(str(error), refused=True) from error
        except PenstockError as error:
            raise _Fault(f"{type(error).__name__}: {error}", refused=False) from error
        except Exception as error:  # any other is a finding by itself
            said = f"{type(error).__name__}: {str(error)[:600]}"
            self.found.problems.append(f"{step}: no error of Penstock's: {said}")
            raise _Fault(said, refused=False) from error

    def blame(self, step: Step, fault: _Fault, error: str | None = None) -> None:
        if fault.refused:
            self.found.refused.append((step, str(fault)))
        elif error is not None or step.by == "duckdb":
            self.found.failed.append((step, str(fault)))
        else:
            self.found.problems.append(f"{step}: only the lake says {fault}")

    def undo(self, step: Step) -> None:
        """The statement, or the open transaction it is in, never was."""
        self.model_or_nothing("ROLLBACK")
        with suppress(Exception):  # there may be nothing to roll back
            if step.by == "duckdb":
                self.theirs.run("ROLLBACK")
            elif self.open_by is not None:
                self.ours.rollback(step.by)
        if self.open_by is not None:
            self.open_by, self.dead = None, True

    def model_or_nothing(self, text: str) -> None:
        with suppress(duckdb.Error):
            self.model.run(text)

    def check_count(self, step: Step, effect: Effect, count: int | None) -> None:
        if count is not None and effect.count is not None and count != effect.count:
            self.found.problems.append(f"{step}: {count} rows touched, in DuckDB {effect.count}")

    def check_snapshots(self, step: Step, effect: Effect) -> None:
        """No row touched, no snapshot; else one."""
        touched = effect.count
        if step.by not in {"sql", "methods"} or not step.counts or touched is None:
            return
        made = self.ours.latest() - self.latest
        if made != (1 if touched else 0):
            self.found.problems.append(f"{step}: {made} snapshots made, {touched} rows touched")

    def note(self, step: Step) -> None:
        if step.by == "model":
            return
        self.turn(step.by)
        latest = (self.theirs if step.by == "duckdb" else self.ours).latest()
        if latest != self.latest:
            state = self.model.state()
            for version in range(self.latest + 1, latest + 1):
                self.found.states[version] = state
            self.latest = latest


def play(
    spark: SparkSession,
    duckdb: DuckDBProcess,
    script: Script,
    kind: str,
    folder: Path,
    *,
    postgres: str | None = None,
    limit: int | None = None,
) -> Played:
    """Play ``script`` on a lake of its own below ``folder``; DuckDB answers ``limit`` questions."""
    shutil.rmtree(folder, ignore_errors=True)
    home = places.make(kind, folder, postgres if kind == "postgres" else None)
    return Player(spark, duckdb, script, home).run(limit)
