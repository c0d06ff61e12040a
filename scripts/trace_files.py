"""Count the source files that an action crosses, and how often its SQL is read.

    python -m scripts.trace_files [--files] [ACTION ...]

Each action runs once to warm up, so that modules are loaded and caches are full, and once more on
a fresh table under the interpreter's profiler, in all threads. A line an action:

files     source files of penstock in which a function ran
passages  how often control passed from one of these files to another, by a call or a return
readings  how often a text that has the action's condition in it was tokenized

``limit`` and ``goal`` are files: a test holds actions to `LIMITS`, which only fall.

``--files`` lists the files with the number of times that control came to each. Importing a module
is no part of an action. Spark's own parser runs in Java and is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import penstock
from penstock import Lake, Project
from penstock.engine.session.spark import start_session
from penstock.events import Event, StepFinished, StepStarted, ignore
from penstock.settings.config import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IN_FUNCTION = 0x01  # CO_OPTIMIZED: the code of modules and classes lacks it
SOURCE = f"{Path(penstock.__file__).parent}/"
MARK = 150  # in each action's condition, and in nothing else that is read meanwhile
MODEL = """-- pipeline
-- partitioned daily
-- materialize ducklake://main/{name} key=id

SELECT id, {value} AS value FROM range(0, 200) WHERE id >= 150 AND '{{partition}}' > ''
"""


@dataclass
class Trace:
    """What happened while it was recording."""

    entered: Counter[str] = field(default_factory=Counter)
    passages: int = 0
    read: list[str] = field(default_factory=list)

    @property
    def readings(self) -> int:
        return sum(str(MARK) in text for text in self.read)


class Tracer:
    """A profiler for all threads that start after it."""

    def __init__(self) -> None:
        self._trace: Trace | None = None
        self._lock = threading.Lock()
        self._own = threading.local()
        self._known: dict[CodeType, str | None] = {}

    def __enter__(self) -> Tracer:
        threading.setprofile(self._notice)
        sys.setprofile(self._notice)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    @contextmanager
    def recording(self) -> Iterator[Trace]:
        trace = self.start()
        try:
            yield trace
        finally:
            self.stop()

    def start(self) -> Trace:
        self._trace = trace = Trace()
        return trace

    def stop(self) -> None:
        self._trace = None

    def _notice(self, frame: FrameType, event: str, _: object) -> None:
        trace = self._trace
        if trace is None:
            self._own.last = None
            return
        if event not in {"call", "return"}:
            return
        if event == "call":
            self._note_text(trace, frame)
            file = self._file(frame)
        else:
            file = self._caller(frame)
        if file is None:
            return
        last, self._own.last = getattr(self._own, "last", None), file
        if file != last:
            with self._lock:
                trace.entered[file] += 1
                trace.passages += last is not None

    def _note_text(self, trace: Trace, frame: FrameType) -> None:
        """Of sqlglot's tokenizer and penstock's own, whose argument is ``sql`` or ``text``."""
        code = frame.f_code
        ours = code.co_filename.startswith(SOURCE)
        reads = code.co_name in ({"scan", "words"} if ours else {"tokenize"})
        if reads and code.co_filename.endswith("/tokens.py"):
            text = frame.f_locals.get("sql", frame.f_locals.get("text"))
            if isinstance(text, str):
                trace.read.append(text)

    def _caller(self, frame: FrameType) -> str | None:
        """The file that control returns to, if one of ours called one of ours."""
        if self._file(frame) is None:
            return None
        above = frame.f_back
        while above is not None and (file := self._file(above)) is None:
            above = above.f_back
        return None if above is None else file

    def _file(self, frame: FrameType) -> str | None:
        """A file of penstock's, unless the frame is of an import."""
        code = frame.f_code
        if code not in self._known:
            ours = code.co_filename.startswith(SOURCE) and code.co_flags & _IN_FUNCTION
            self._known[code] = code.co_filename.removeprefix(SOURCE) if ours else None
        return self._known[code]


def filled(lake: Lake, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT, value STRING)")
    for start in (0, 100):
        values = f"SELECT id, 'a' FROM range({start}, {start + 100})"
        lake.sql(f"INSERT INTO {name} {values}")


def _empty(lake: Lake, name: str) -> None:
    lake.sql(f"CREATE TABLE {name} (id BIGINT, value VARCHAR)")


@dataclass(frozen=True)
class Action:
    """``prepare`` leads to what ``run`` is traced on; both take the lake and a table's name."""

    title: str
    run: Callable[[Lake, str], object]
    prepare: Callable[[Lake, str], object] = filled


def _insert(lake: Lake, name: str) -> object:
    return lake.sql(f"INSERT INTO {name} SELECT id, 'b' FROM range(200) WHERE id >= {MARK}")


def _append(lake: Lake, name: str) -> object:
    import pyarrow as pa

    rows = pa.table({"id": list(range(100)), "value": ["b"] * 100})
    return lake.table(name).append(rows)


@dataclass(frozen=True)
class Limit:
    """The number of files that an action may cross, which only falls, until it is ``goal``."""

    files: int
    goal: int


LIMITS: Mapping[str, Limit] = {
    "DELETE by condition": Limit(52, goal=60),
    "Table.delete by condition": Limit(49, goal=50),
    "append of 100 rows": Limit(40, goal=40),
    "penstock run of one merge step": Limit(199, goal=140),
    "the merge step in it": Limit(128, goal=100),
}


ACTIONS: Mapping[str, Action] = {
    "delete": Action(
        "DELETE by condition",
        lambda lake, name: lake.sql(f"DELETE FROM {name} WHERE id >= {MARK}"),
    ),
    "method": Action(
        "Table.delete by condition", lambda lake, name: lake.table(name).delete(f"id >= {MARK}")
    ),
    "insert": Action("INSERT of a query", _insert),
    "append": Action("append of 100 rows", _append, _empty),
    "query": Action(
        "SELECT with a condition",
        lambda lake, name: lake.sql(f"SELECT sum(id) FROM {name} WHERE id >= {MARK}").collect(),
    ),
}


def trace_action(tracer: Tracer, action: Action, lake: Lake) -> Trace:
    for name in ("warm", "measured"):
        action.prepare(lake, name)
        with tracer.recording() as trace:
            action.run(lake, name)
    return trace


def trace_merge(tracer: Tracer, root: Path, spark: SparkSession) -> dict[str, Trace]:
    """``penstock run`` of one merge step whose slice has rows already, some of them changed."""
    (root / "models").mkdir(parents=True)
    (root / "penstock.toml").write_text(
        '[lakes.main]\ncatalog = "sqlite:meta.sqlite"\ndata_path = "data"\n'
    )
    for name in ("warm", "measured"):
        for value in ("id", "id % 7"):
            (root / "models" / f"{name}.sql").write_text(MODEL.format(name=name, value=value))
            with tracer.recording() as whole, Project.load(root, spark=spark) as project:
                project.run("2026-01-01", [name], on_event=ignore)
    steps: list[Trace] = []

    def hear(event: Event) -> None:
        if isinstance(event, StepStarted):
            steps.append(tracer.start())
        elif isinstance(event, StepFinished):
            tracer.stop()

    (root / "models" / "measured.sql").write_text(MODEL.format(name="measured", value="id % 5"))
    with Project.load(root, spark=spark) as project:
        project.run("2026-01-01", ["measured"], on_event=hear)
    return {"penstock run of one merge step": whole, "the merge step in it": steps[0]}


def measure(
    tracer: Tracer, names: Sequence[str], spark: SparkSession | None, work: Path
) -> dict[str, Trace]:
    traces: dict[str, Trace] = {}
    for name in names:
        if name == "merge":
            assert spark is not None, "a merge step's query is Spark's"
            traces |= trace_merge(tracer, work / name, spark)
            continue
        uri = f"ducklake:sqlite:{work / name}.sqlite"
        with Lake.attach(uri, data_path=f"{work / name}", spark=spark, new_catalog=True) as lake:
            action = ACTIONS[name]
            traces[action.title] = trace_action(tracer, action, lake)
    return traces


def show(traces: Mapping[str, Trace], with_files: bool) -> None:
    print("| action | files | limit | goal | passages | readings |\n|---|---|---|---|---|---|")
    for title, trace in traces.items():
        limit = LIMITS.get(title)
        held = (limit.files, limit.goal) if limit else ("", "")
        cells = (title, len(trace.entered), *held, trace.passages, trace.readings)
        print(f"| {' | '.join(map(str, cells))} |")
    for title, trace in traces.items() if with_files else ():
        print(f"\n{title}")
        for file, times in trace.entered.most_common():
            print(f"{times:7} {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("actions", nargs="*", metavar="ACTION", help=", ".join((*ACTIONS, "merge")))
    parser.add_argument("--files", action="store_true", help="list the files too")
    options: Any = parser.parse_args()
    unknown = set(options.actions) - {*ACTIONS, "merge"}
    if unknown:
        parser.error(f"no such action: {', '.join(sorted(unknown))}")
    conf = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    spark = start_session(SparkSettings(master="local[2]", conf=conf), "penstock-trace")
    with tempfile.TemporaryDirectory() as folder, Tracer() as tracer:
        traces = measure(tracer, options.actions or [*ACTIONS, "merge"], spark, Path(folder))
        spark.stop()
    show(traces, options.files)


if __name__ == "__main__":
    main()
