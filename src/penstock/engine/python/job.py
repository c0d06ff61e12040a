"""The job of a step, as JSON, and its process's part: load the file, call ``main``, hand over rows.

This, and all that a step's process loads, imports no Spark and no catalog.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Self
from uuid import UUID, uuid4

from penstock.engine.python.frames import NotRows
from penstock.engine.python.helpers import Context
from penstock.errors import PenstockError

#: how the value of an argument is made of its text (`penstock.model.script.arguments`)
_READ: Mapping[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamptz": datetime.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "json": json.loads,
    "blob": bytes.fromhex,
}
_WRITTEN: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((date, time), lambda value: value.isoformat()),
    ((Decimal, UUID), str),
    (bytes, lambda value: value.hex()),
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A parameter that gets the rows of ``table`` of ``lake`` in a ``form`` (`frames.FORMS`)."""

    form: str
    lake: str
    table: str


@dataclass(frozen=True, slots=True)
class Job:
    """``arguments`` are types and values by parameter; ``given`` are other values, as JSON has
    them; ``sessions`` are parameters that get the Spark session. ``folder`` is for rows and files
    on their way; ``lake`` is that of ``penstock.lake()``. ``remote`` is where a step joins the
    run's session over Spark Connect.
    """

    path: str
    root: str
    folder: str
    lake: str
    partition: str | None = None
    arguments: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)
    sessions: tuple[str, ...] = ()
    remote: str | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        said = json.loads(text)
        rows = {name: Rows(**each) for name, each in said["rows"].items()}
        arguments = {name: tuple(each) for name, each in said["arguments"].items()}
        return cls(
            **{**said, "rows": rows, "arguments": arguments, "sessions": tuple(said["sessions"])}
        )

    @property
    def values(self) -> dict[str, Any]:
        """The arguments as Python has them, and what is given besides."""
        found = {name: _value(kind, value) for name, (kind, value) in self.arguments.items()}
        return {**found, **self.given}


def to_line(message: Mapping[str, Any]) -> str:
    """A message between a step and its run: one line of JSON."""
    return json.dumps(message, default=_tagged) + "\n"


def of_line(line: str) -> Any:
    return json.loads(
        line, object_hook=lambda said: _value(*said[_TAG]) if set(said) == {_TAG} else said
    )


def _tagged(value: object) -> object:
    """Dates, times, decimals, UUIDs and bytes, which JSON does not have."""
    if isinstance(value, datetime):
        return {_TAG: ["timestamptz", value.isoformat()]}
    kind = next((name for name, of in _KINDS.items() if isinstance(value, of)), None)
    return str(value) if kind is None else {_TAG: [kind, written(value)]}


_TAG = "$penstock"
_KINDS = {"date": date, "time": time, "decimal": Decimal, "uuid": UUID, "blob": bytes}


def written(value: object) -> object:
    """A value of an argument as JSON has it."""
    if isinstance(value, list):
        return [written(item) for item in value]
    write = next((write for kind, write in _WRITTEN if isinstance(value, kind)), None)
    return value if write is None else write(value)


def _value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind.endswith("[]"):
        return [_value(kind.removesuffix("[]"), item) for item in value]
    read = _READ.get(kind)
    return value if read is None else read(value)


_MOST_FRAMES = 20
WMILL = (
    "Penstock has its helpers: import penstock, then penstock.lake(...).read, .query, "
    ".upsert_partition, .append_partition, .write_file and .read_file"
)


def perform(job: Job, context: Context) -> dict[str, Any]:
    """``{"rows": ...}``, or ``{"rows": None}`` where ``main`` returned nothing; else
    ``{"failed": ...}``: what it raised, with the lines of the project that led there."""
    try:
        main = _main(job)
        made = main(**_given(job, context))
        if inspect.iscoroutine(made):
            made = asyncio.run(made)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return {"failed": failure(error, job)}
    try:
        return {"rows": None if made is None else context.handed(made)}
    except NotRows as error:
        return {"failed": {"message": f"main returned what cannot be written: {error}"}}
    except Exception as error:  # of a DataFrame whose rows cannot be had
        return {"failed": failure(error, job)}


def _main(job: Job) -> Any:
    """``main`` of the file, which runs now, under a name that no other module has."""
    if job.root not in sys.path:
        sys.path.insert(0, job.root)
    name = f"penstock_step_{Path(job.path).stem}_{uuid4().hex[:8]}"
    spec = importlib.util.spec_from_file_location(name, job.path)
    assert spec is not None, "a .py file has one"
    assert spec.loader is not None, "of the same kind"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look there
    spec.loader.exec_module(module)
    return module.main


def _given(job: Job, context: Context) -> dict[str, Any]:
    given = job.values
    for name, rows in job.rows.items():
        request = {"ask": "read", "lake": rows.lake, "table": rows.table, "partition": None}
        given[name] = context.rows_of(request, rows.form)
    return given | dict.fromkeys(job.sessions, context.session)


def failure(error: BaseException, job: Job) -> dict[str, Any]:
    """Return what to say of an error: its place is the last line of the step's
    file that led to it.
    """
    root = str(Path(job.root).resolve())
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_ours(f.filename, root)]
    if isinstance(error, SyntaxError) and error.filename and _is_ours(error.filename, root):
        frames.append(traceback.FrameSummary(error.filename, error.lineno or 1, "<module>"))
    own = [frame for frame in frames if Path(frame.filename) == Path(job.path)]
    lines = [
        f"{Path(frame.filename).resolve().relative_to(root).as_posix()}:{frame.lineno}, "
        f"in {frame.name}: {frame.line}"
        for frame in frames[-_MOST_FRAMES:]
    ]
    return {
        "message": _said(error),
        "hint": _hint(error),
        "line": own[-1].lineno if own else None,
        "traceback": lines,
    }


def _hint(error: BaseException) -> str | None:
    if isinstance(error, PenstockError):
        return error.hint
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        if error.name.split(".")[0] == "wmill":
            return WMILL
        return f"install it: pip install {error.name.split('.')[0]}"
    return None


def _said(error: BaseException) -> str:
    if isinstance(error, PenstockError):
        return error.message
    if isinstance(error, SystemExit):
        return f"main ended its process: SystemExit({error.code!r})"
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_ours(filename: str, root: str) -> bool:
    """Return whether a file is the project's, not one of a package that is installed below it."""
    if filename.startswith("<"):  # Python's own, such as <frozen importlib._bootstrap>
        return False
    path = Path(filename).resolve()
    if not path.is_relative_to(root):
        return False
    return "site-packages" not in path.relative_to(root).parts


def error_of(answer: Mapping[str, Any]) -> PenstockError:
    """Return what the run answers, as the error that the step's code meets."""
    from penstock import errors

    kind = getattr(errors, str(answer.get("type")), errors.StepError)
    error: PenstockError = kind(str(answer["message"]), hint=answer.get("hint"))
    return error
