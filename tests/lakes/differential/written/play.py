"""Play a script: on a lake, by whom it says, and on the model; remember each snapshot's rows."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from penstock.errors import CommitConflict, PenstockError, UnsupportedFeature
from tests.duckdb_process import DuckDBError, DuckDBProcess
from tests.lakes.differential import places
from tests.lakes.differential.places import Home
from tests.lakes.differential.written.beside import Done, NotTogether, together
from tests.lakes.differential.written.model import KEY, Effect, Model
from tests.lakes.differential.written.ours import Penstock
from tests.lakes.differential.written.script import Script, Step
from tests.lakes.differential.written.shown import of_arrow
from tests.lakes.differential.written.theirs import Answer, Theirs
from tests.lakes.differential.written.watch import Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Played:
    """``states`` are the model's rows by snapshot and table; ``refused`` what Penstock refuses by
    name; ``failed`` what fails on both; ``problems`` what went wrong while it played;
    ``again`` the keys of rows that were deleted and are back; ``seconds`` what the steps took, by
    who ran them, and the reading."""

    script: Script
    home: Home
    states: dict[int, dict[str, pa.Table]] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    last: list[Answer] = field(default_factory=list)  # those of the lake as it is at the end
    refused: list[tuple[Step, str]] = field(default_factory=list)
    failed: list[tuple[Step, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    again: set[int] = field(default_factory=set)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


class _Fault(Exception):
    """The lake did not take a statement. ``refused``: it said that it does not do such."""

    def __init__(self, said: str, *, refused: bool = False, conflict: bool = False) -> None:
        super().__init__(said)
        self.refused, self.conflict = refused, conflict


@dataclass
class _Open:
    """The transaction that is open: ``base`` is what was done before it, ``others`` beside it."""

    by: str
    base: Done
    others: list[str] = field(default_factory=list)


class Player:
    def __init__(
        self,
        spark: SparkSession,
        duckdb: DuckDBProcess,
        script: Script,
        home: Home,
        watch: Watch | None = None,
    ) -> None:
        self.script, self.home = script, home
        self.ours = Penstock(spark, home, script.inline)
        self.beside = Penstock(spark, home, script.inline)  # somebody else, as @other
        self.theirs = Theirs(duckdb, home, script.inline)
        self.watch = watch
        self.model = Model()
        self.played = Played(script, home)
        self.latest = 0
        self.open: _Open | None = None
        self.dead = False  # the open transaction has failed: the rest of it is left out
        self.astray = False  # a statement has failed: those after it may make no sense

    def run(self, limit: int | None = None) -> Played:
        try:
            for step in self.script.steps:
                if step.destroys:
                    self.turn("duckdb")
                    self.played.answers += self.theirs.read(limit, step.text)
                self.step(step)
            if self.open is not None:
                self.step(Step("ROLLBACK", self.open.by))
            self.turn("duckdb")
            self.insert_beside()
            with self.timed("reading"):
                self.played.last = self.theirs.read(limit, self.script.text)
            self.played.answers += self.played.last
        finally:
            self.beside.close()
            self.ours.close()
            with suppress(DuckDBError):
                self.theirs.close()
            if self.watch is not None:
                self.watch.close()
            self.model.close()
        return self.played

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
            elif step.asks:
                self.ask(step)
            elif step.by == "other" and self.open is not None:
                self.other(step, self.open)
            else:
                self.statement(replace(step, by="sql") if step.by == "other" else step)
            if self.open is None:
                self.note(step)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.played.seconds[what] += time.monotonic() - started

    def bracket(self, step: Step) -> None:
        try:
            self.lake(step, None, None)
        except _Fault as fault:
            if fault.conflict and self.open is not None and self.open.others:
                self.played.failed.append((step, str(fault)))
            else:
                self.blame(step, fault)
            self.undo(step)
            self.dead = step.opens
            return
        if step.opens:
            self.open = _Open(step.by, tuple(self.model.done))
        elif self.open is not None:
            self.settle(step, self.open)
            self.open = None

    def settle(self, step: Step, done: _Open) -> None:
        """The model after a transaction that ended as the step says."""
        if step.text.upper() == "ROLLBACK":
            self.model.become([*done.base, *done.others])
        elif done.others:
            own = self.model.done[len(done.base) :]
            try:
                self.model.become(together(done.base, own, done.others))
            except (NotTogether, duckdb.Error) as error:
                self.played.problems.append(f"{step}: it should be a conflict: {error}")

    def other(self, step: Step, beside: _Open) -> None:
        """A statement of another program, which knows nothing of the open transaction."""
        text = step.for_model
        done = [*beside.base, *beside.others, *([text] if text else [])]
        try:
            with Model(done) as model:
                state = model.state()
        except duckdb.Error:
            return
        try:
            self.beside.run(replace(step, by="sql"), None, None)
            latest = self.beside.latest()
        except PenstockError as error:
            self.played.failed.append((step, str(error)))
            return
        finally:
            self.beside.close()
        beside.others += [text] if text else []
        for version in range(self.latest + 1, latest + 1):
            self.played.states[version] = state
        self.latest = max(latest, self.latest)

    def ask(self, step: Step) -> None:
        try:
            wanted = answer_of_model(self.model, step)
        except duckdb.Error:  # it is of what a transaction would have made that has failed
            return
        self.turn(step.by)
        try:
            answer = (self.theirs if step.by == "duckdb" else self.ours).answer(step)
        except Exception as error:  # whatever it is: the model has an answer
            if not self.astray:
                self.played.problems.append(f"{step}: only the lake says {str(error)[:600]}")
            return
        if answer != wanted:
            self.played.problems.append(f"{step}: {answer}\n  in the model {wanted}")

    def statement(self, step: Step) -> None:
        before = tuple(self.model.done)
        effect, error = self.on_model(step)
        created = None
        if error is None and step.table and step.text.upper().startswith("CREATE"):
            created = self.model.read(step.table)
        try:
            if step.by == "methods" and step.of_rows and error is not None:
                raise _Fault("it is given what the model did")
            if step.by != "model":
                self.check_count(step, effect, self.lake(step, effect, created))
        except _Fault as fault:
            self.blame(step, fault, error)
            self.leave_out(step, before)
            return
        if error is not None:
            if step.by != "model":
                self.played.problems.append(f"{step}: only the model says {error}")
            self.undo(step)
        elif self.open is None:
            self.check_snapshots(step, effect)

    def leave_out(self, step: Step, before: Done) -> None:
        """After a failure `Transaction` continues without it; one begun in SQL has ended."""
        self.astray = True
        if self.open is None or step.by == "methods":
            self.model.become(before)
        else:
            self.undo(step)

    def on_model(self, step: Step) -> tuple[Effect, str | None]:
        text = step.for_model
        text = text and text.replace("{dir}", str(self.home.files))
        try:
            if text is None:
                return Effect(None), None
            if step.by == "methods" and step.table and step.of_rows:
                effect = self.model.effect(text, step.table)
                self.played.again |= self.known_keys() & set(keys_of(effect.inserted))
                return effect, None
            return Effect(self.model.run(text)), None
        except duckdb.Error as error:
            return Effect(None), str(error)

    def known_keys(self) -> set[int]:
        """Of rows that were in any table at any snapshot."""
        states = self.played.states.values()
        return {key for state in states for rows in state.values() for key in keys_of(rows)}

    def lake(self, step: Step, effect: Effect | None, created: pa.Table | None) -> int | None:
        self.turn(step.by)
        try:
            if step.by == "duckdb":
                self.theirs.run(step.text)
                return None
            return self.ours.run(step, effect, created)
        except DuckDBError as error:
            raise _Fault(f"DuckDB: {error}") from error
        except UnsupportedFeature as error:
            raise _Fault(str(error), refused=True) from error
        except CommitConflict as error:
            raise _Fault(f"CommitConflict: {error}", conflict=True) from error
        except PenstockError as error:
            raise _Fault(f"{type(error).__name__}: {error}") from error
        except Exception as error:  # any other is a finding on its own
            said = f"{type(error).__name__}: {str(error)[:600]}"
            self.played.problems.append(f"{step}: no error of Penstock's: {said}")
            raise _Fault(said) from error

    def blame(self, step: Step, fault: _Fault, error: str | None = None) -> None:
        if fault.refused:
            self.played.refused.append((step, str(fault)))
        elif error is not None or step.by == "duckdb" or self.excused(step, fault):
            self.played.failed.append((step, str(fault)))
        else:
            self.played.problems.append(f"{step}: only the lake says {fault}")

    def excused(self, step: Step, fault: _Fault) -> bool:
        """Whether it may be of columns that are not there, as a statement before it has failed:
        the model has no layout, and sees types only where there are rows."""
        return self.astray and (step.of_lakes or str(fault).startswith("SchemaMismatch"))

    def undo(self, step: Step) -> None:
        """The open transaction never was."""
        self.astray = True
        with suppress(Exception):  # there may be nothing to roll back
            if step.by == "duckdb":
                self.theirs.run("ROLLBACK")
            elif self.open is not None:
                self.ours.rollback(step.by)
        if self.open is not None:
            self.model.become([*self.open.base, *self.open.others])
            self.open, self.dead = None, not step.closes

    def check_count(self, step: Step, effect: Effect, count: int | None) -> None:
        if count is None or effect.count is None or step.model is not None:  # that counts otherwise
            return
        if count != effect.count:
            self.played.problems.append(f"{step}: {count} rows touched, in DuckDB {effect.count}")

    def check_snapshots(self, step: Step, effect: Effect) -> None:
        """No row touched, no snapshot; else one."""
        touched = effect.count
        if step.by not in {"sql", "methods"} or not step.counts or touched is None:
            return
        made = self.ours.latest() - self.latest
        if made != (1 if touched else 0):
            self.played.problems.append(f"{step}: {made} snapshots made, {touched} rows touched")

    def note(self, step: Step) -> None:
        if step.by == "model":
            return
        self.turn(step.by)
        latest = (self.theirs if step.by == "duckdb" else self.ours).latest()
        if latest != self.latest:
            self.remember(latest)
            self.look(step)

    def remember(self, latest: int) -> None:
        """The model's rows as those of the snapshots since the last look."""
        if latest != self.latest:
            state = self.model.state()
            for version in range(self.latest + 1, latest + 1):
                self.played.states[version] = state
            self.latest = latest

    def look(self, step: Step) -> None:
        """Ask the DuckDB that stays attached."""
        if self.watch is not None:
            with self.timed("watching"):
                problems = self.watch.problems(self.model)
                self.played.problems += [f"{step}: {problem}" for problem in problems]

    def insert_beside(self) -> None:
        """The DuckDB that stays attached inserts rows, whose ids are compared as all are."""
        if self.watch is None:
            return
        with self.timed("watching"):
            for table in self.model.tables():
                self.watch.insert(self.model, table)
                self.remember(self.theirs.latest())


def keys_of(rows: pa.Table | None) -> list[int]:
    return [] if rows is None else [int(key) for key in rows.column(KEY).to_pylist()]


def answer_of_model(model: Model, step: Step) -> object:
    return of_arrow(model.read(step.shows)) if step.shows else model.numbers(step.text)


def play(
    spark: SparkSession,
    duckdb: DuckDBProcess,
    script: Script,
    kind: str,
    folder: Path,
    *,
    postgres: str | None = None,
    limit: int | None = None,
    watching: DuckDBProcess | None = None,
) -> Played:
    """Play ``script`` on a lake of its own below ``folder``; DuckDB answers ``limit`` questions.

    ``watching`` is attached throughout, where the catalog takes several at a time.
    """
    shutil.rmtree(folder, ignore_errors=True)
    home = places.make(kind, folder, postgres if kind == "postgres" else None)
    watch = None
    if watching is not None and kind != "duckdb":
        watch = Watch(watching, home, script.inline)
    return Player(spark, duckdb, script, home, watch).run(limit)
