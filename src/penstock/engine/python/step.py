"""A step in Python run once: where it runs, what it is given, and what it made.

docs/adr/0011-python-steps.md says why a step that uses Spark runs in a process of its own over
Spark Connect and beside the run's session otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.inputs.pinned_tables import Pins
from penstock.engine.inputs.resolve import Views
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.python.frames import declared, fitted, with_nulls
from penstock.engine.python.helpers import Context
from penstock.engine.python.job import Job, Rows, written
from penstock.engine.python.runners import Limits, Stopped, TimedOut, run_process, run_thread
from penstock.engine.python.serve import HandedRows, Server, WrittenFile
from penstock.engine.session.run_context import Cancelled, RunContext
from penstock.errors import Location, PenstockError, PythonFailed, StepError
from penstock.events import Notice, StepOutput
from penstock.model.definition.model import Model
from penstock.model.python_steps import PAYLOAD, ROWS, SPARK, PythonStep
from penstock.model.script.arguments import OF_SLICE
from penstock.model.values.asset import DEFAULT_SCHEMA, TableName
from penstock.model.values.strategy import Output
from penstock.settings.quantities import seconds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.destinations.destination import StagedTable

IN_PROCESS = (
    "runs in the run's own process, as it uses Spark and the session is not Spark Connect's"
)


@dataclass(frozen=True, slots=True)
class PythonMade:
    """Rows that a step handed over, as `StepRows` has them."""

    df: DataFrame
    start: Location

    def placed(self, error: PenstockError) -> PenstockError:
        error.location = error.location or self.start
        return error


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a step: ``rows`` in the order of handing them over, None for those of an
    empty list; ``files`` wait to be moved."""

    rows: tuple[HandedRows | None, ...]
    files: tuple[WrittenFile, ...]


@dataclass(frozen=True, slots=True)
class Runner:
    context: RunContext
    planned: PlannedStep
    server: Server

    @property
    def model(self) -> Model:
        return self.planned.model

    @property
    def step(self) -> PythonStep:
        step = self.model.python
        assert step is not None, "only such steps come here"
        return step

    def run(self) -> Outcome:
        """Raises PythonFailed, StepError, Cancelled."""
        try:
            done = self._done()
        except Stopped:
            raise Cancelled from None
        except TimedOut:
            raise PythonFailed(
                f"the step ran past its timeout of {_duration(self._timeout)} and was stopped",
                hint="give it more: `# timeout 2h` in its header, or [python] timeout",
                location=self.model.place("timeout") if self.model.timeout else self.step.place,
            ) from None
        if "failed" in done:
            raise self._failed(done["failed"])
        if "ended" in done:
            raise self._ended(int(done["ended"]))
        return self._outcome(done)

    def _done(self) -> Mapping[str, Any]:
        context = self.context
        limits = Limits(self._timeout, context.cancelled.is_set)
        remote = remote_of(context.session, context.settings.spark.master)
        job = self._job(remote if self.step.uses_spark else None)
        if not self.step.uses_spark or remote is not None:
            return run_process(job, self.server.answered, self._say, limits)
        context.sink(Notice(IN_PROCESS, self.model.name))
        thread = Context(
            self.server, job.folder, job.root, job.lake, context.session, spark_rows="frame"
        )
        return run_thread(job, thread, self._say, limits)

    def _job(self, remote: str | None) -> Job:
        model, bindings = self.model, self.planned.bindings
        payload = self.context.plan.request.payload
        given = {p.name: dict(payload or {}) for p in self.step.parameters if p.role == PAYLOAD}
        known = self.context.plan.args
        arguments = {
            argument.name: (argument.type, written(bindings.arguments[argument.name]))
            for argument in self.step.arguments
            if argument.default is None or argument.name in known or argument.name in OF_SLICE
        }
        return Job(
            path=str(model.path),
            root=str(self.context.settings.root),
            folder=self.server.folder,
            lake=model.target.lake,
            partition=bindings.partition,
            arguments=arguments,
            given=given,
            rows={
                p.name: Rows(p.form, p.table.lake, _written_name(p.table))
                for p in self.step.parameters
                if p.role == ROWS and p.table is not None
            },
            sessions=tuple(p.name for p in self.step.parameters if p.role == SPARK),
            remote=remote,
        )

    @property
    def _timeout(self) -> float | None:
        own = self.model.timeout
        return seconds_of(own) if own else self.context.settings.python_timeout

    def _say(self, stream: str, line: str) -> None:
        self.context.sink(StepOutput(self.model.name, line, stream))

    def _failed(self, said: Mapping[str, Any]) -> PythonFailed:
        """Its first line is the cause; the lines of the project that led to it follow."""
        lines = said.get("traceback") or []
        trace = "".join(f"\n    {line}" for line in lines) if len(lines) > 1 else ""
        line = said.get("line")
        place = self.step.place if line is None else Location(self.model.path, line)
        return PythonFailed(
            f"{said['message']}{trace}",
            hint=said.get("hint"),
            location=place,
            data={"traceback": list(lines)},
        )

    def _ended(self, code: int) -> PythonFailed:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return PythonFailed(
            f"the step's process {how} before main returned",
            hint="it may have run out of memory, or called os._exit",
            location=self.step.place,
            data={"code": code},
        )

    def _outcome(self, done: Mapping[str, Any]) -> Outcome:
        server, rows = self.server, done["rows"]
        wrote = bool(server.writes)
        if self.model.strategy.output is Output.FILES:
            if rows is not None:
                raise self._wrong(
                    "main returned rows, and the step has no table",
                    "add `# materialize ducklake://main/table`, or return nothing",
                )
            if not server.files:
                raise self._wrong("the step wrote no file", "write it by lake(...).write_file")
        elif rows is None and not wrote:
            raise self._wrong(
                "main returned no rows",
                "return a DataFrame, an Arrow table or a list of dicts; one without rows too",
            )
        elif rows is not None and wrote:
            raise self._wrong(
                "main returned rows, and wrote others by a helper", "do one of the two"
            )
        made = server.writes if rows is None else [server.handed(rows)]
        return Outcome(tuple(made), tuple(server.files.values()))

    def _wrong(self, message: str, hint: str) -> StepError:
        return StepError(message, hint=hint, location=self.step.place)


def made_rows(
    outcome: Outcome, model: Model, table: StagedTable, managed: str
) -> Iterator[PythonMade]:
    """The rows of a step, to be staged one after the other: each as the table is by then.

    ``managed`` is the column that holds the slice's value. Raises StepError.
    """
    step = model.python
    assert step is not None, "only such steps come here"
    for rows in outcome.rows:
        if rows is None and not table.exists:
            raise StepError(
                f"main returned an empty list, and {model.target} does not exist yet, "
                "so its columns are unknown",
                hint="return an Arrow table with a schema",
                location=step.place,
            )
        if rows is None:
            yield PythonMade(table.to_df().drop(managed).limit(0), step.place)
            continue
        kept = table.schema if table.exists and model.keeps_columns else None
        df = with_nulls(rows.df, rows.nulls, model.column_types, kept, step.place)
        df = declared(df, model.column_types)
        if rows.of_values and table.exists and (model.keeps_columns or len(outcome.rows) > 1):
            df = fitted(df, table.schema)
        yield PythonMade(df, step.place)


def remote_of(session: SparkSession, master: str | None) -> str | None:
    """Return where another process joins the session; None where it has no address."""
    if not is_connect(session) or master is None or not master.startswith("sc://"):
        return None
    number = getattr(session, "session_id")  # noqa: B009 - Connect's sessions alone have it
    parts = master.removeprefix("sc://").split("/", 1)
    options = parts[1] if len(parts) > 1 else ""
    return f"sc://{parts[0]}/{options.rstrip(';')};session_id={number}"


def is_connect(session: SparkSession) -> bool:
    return ".connect." in type(session).__module__


def shares_files(session: SparkSession) -> bool:
    """Return whether Spark reads and writes the files of this machine."""
    return not is_connect(session) and str(session.conf.get("spark.master")).startswith("local")


def _written_name(table: TableName) -> str:
    return table.table if table.schema == DEFAULT_SCHEMA else table.qualified


def _duration(seconds: float | None) -> str:
    return f"{seconds or 0:g} s"


def runner_of(
    context: RunContext, planned: PlannedStep, pins: Pins, views: Views, folder: str
) -> Runner:
    """Return what runs the planned step, with its rows and files in ``folder``."""
    server = Server(
        model=planned.model,
        bindings=planned.bindings,
        pins=pins,
        session=context.session,
        views=views,
        root=context.settings.root,
        folder=folder,
        columns={name: lake.partition_column for name, lake in context.settings.lakes.items()},
        shares_files=shares_files(context.session),
    )
    return Runner(context, planned, server)
