"""Run a step's file: load it, call ``main`` with what it needs, hand over what it returns."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.engine.python.frames import NotRows
from penstock.engine.python.helpers import Context
from penstock.engine.python.job import Job
from penstock.errors import PenstockError

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
