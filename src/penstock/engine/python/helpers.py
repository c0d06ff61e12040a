"""``penstock.lake("main")`` in a step: what its run reads for it and writes for it.

What is read is as it was when the step began. What is written is staged, tested and published when
``main`` has returned, in one commit; a step that fails leaves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.engine.python import frames
from penstock.errors import ArgumentError, StepError
from penstock.lazy import pq

Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(slots=True)
class Context:
    """A step as its code meets it. ``ask`` asks the run and raises what it answers; ``session`` is
    there in steps that use Spark, and ``spark_rows`` says how rows of Spark come and go."""

    ask: Ask
    folder: str
    root: str
    lake: str
    session: Any = None
    spark_rows: str = "files"
    written: list[str] = field(default_factory=list)

    def rows_of(self, request: Mapping[str, Any], form: str | None) -> Any:
        """The rows that a request is answered with, in a form."""
        wanted = form or ("spark" if self.session is not None else "arrow")
        if wanted not in frames.FORMS:
            known = ", ".join(frames.FORMS)
            raise ArgumentError(f"form {wanted!r} is not known", hint=f"it is one of {known}")
        if wanted != "spark":
            answer = self.ask({**request, "as": "files"})
            return frames.from_files(answer["path"], wanted)
        if self.session is None:
            raise ArgumentError(
                "the step has no Spark session", hint="give main a parameter spark: SparkSession"
            )
        answer = self.ask({**request, "as": self.spark_rows})
        return answer["frame"] if "frame" in answer else self.session.table(answer["view"])

    def handed(self, rows: Any) -> dict[str, Any]:
        """Rows on their way to the run."""
        if not frames.is_spark(rows):
            return frames.to_file(rows, self.folder)
        if self.spark_rows == "frame":
            return {"frame": rows}
        name = f"penstock_step_{uuid4().hex}"
        rows.createOrReplaceTempView(name)  # in the session that the run has too
        return {"view": name}


CURRENT: ContextVar[Context | None] = ContextVar("penstock_step", default=None)
# In a process of its own a step is the only one, for all of its threads.
_OF_PROCESS: list[Context] = []


def set_for_process(context: Context) -> None:
    _OF_PROCESS[:] = [context]


def lake(name: str | None = None) -> StepLake:
    """Return the lake ``name`` of the project, or that of the step's table.

    Only in a step that a run has started; elsewhere attach it by `Lake.attach`::

        orders = penstock.lake("main").read("orders")
    """
    context = CURRENT.get() or next(iter(_OF_PROCESS), None)
    if context is None:
        raise StepError(
            "penstock.lake(...) is for steps, and no run has started this code",
            hint="start it by penstock run, or attach a lake: penstock.Lake.attach(...)",
        )
    return StepLake(name or context.lake, context)


@dataclass(frozen=True, slots=True)
class StepLake:
    """A lake within a step. Tables are named ``table`` or ``schema.table``.

    Rows come in a ``form``: ``arrow`` (a pyarrow Table, the default), ``rows`` (dicts), ``pandas``
    or ``spark`` (the default in a step that uses Spark).
    """

    name: str
    _context: Context = field(repr=False)

    def read(self, table: str, partition: str | None = None, *, form: str | None = None) -> Any:
        """The rows of a table, or of a slice of it: ``lake.read("orders", partition)``."""
        request = {"ask": "read", "lake": self.name, "table": table, "partition": partition}
        return self._context.rows_of(request, form)

    def query(
        self, sql: str, args: Mapping[str, Any] | None = None, *, form: str | None = None
    ) -> Any:
        """The rows of a SELECT, as a script has it: ``lake.query("SELECT * FROM orders")``.

        ``args`` are the values of ``:name`` markers; ``'{partition}'`` is the slice.
        """
        request = {"ask": "query", "lake": self.name, "sql": sql, "args": dict(args or {})}
        return self._context.rows_of(request, form)

    def upsert_partition(
        self,
        table: str,
        rows: Any,
        key: str | Sequence[str] | None = None,
        *,
        partition: str | None = None,
    ) -> None:
        """Merge rows by ``key`` into the run's slice of the step's own table."""
        keys = None if key is None else [key] if isinstance(key, str) else list(key)
        self._write("upsert_partition", table, rows, keys, partition)

    def append_partition(self, table: str, rows: Any, *, partition: str | None = None) -> None:
        """Append rows to the run's slice of the step's own table."""
        self._write("append_partition", table, rows, None, partition)

    def _write(
        self, helper: str, table: str, rows: Any, keys: list[str] | None, partition: str | None
    ) -> None:
        about = {"helper": helper, "lake": self.name, "table": table, "keys": keys}
        request = {"ask": "write", **about, "partition": partition}
        self._context.ask({**request, "check": True})
        self._context.ask({**request, "rows": self._context.handed(rows)})
        self._context.written.append(helper)

    def write_file(self, uri: str, data: Any) -> str:
        """Write a file to a path of the project or to ``s3://``, when the step is published.

        ``{partition}`` in ``uri`` is the run's slice. ``data`` is bytes, text, what JSON has, or
        rows, for a path that ends in ``.parquet`` or ``.csv``. Returns the file's place.
        """
        path = str(Path(self._context.folder) / str(uuid4()))
        _write_data(data, path, uri)
        answer = self._context.ask({"ask": "write_file", "uri": uri, "path": path})
        return str(answer["place"])

    def read_file(self, uri: str) -> bytes:
        """The bytes of a file of the project or of ``s3://``; ``{partition}`` is the slice."""
        path = str(Path(self._context.folder) / str(uuid4()))
        self._context.ask({"ask": "read_file", "uri": uri, "path": path})
        return Path(path).read_bytes()


def _write_data(data: Any, path: str, uri: str) -> None:
    ending = uri.rpartition(".")[2].lower()
    if isinstance(data, bytes | bytearray | memoryview):
        Path(path).write_bytes(data)
    elif isinstance(data, str):
        Path(path).write_text(data, encoding="utf-8", newline="")
    elif ending == "parquet":
        pq.write_table(frames.to_arrow(data), path)
    elif ending == "csv":
        from pyarrow import csv

        csv.write_csv(frames.to_arrow(data), path)
    else:
        Path(path).write_text(json.dumps(data, ensure_ascii=False, default=str), encoding="utf-8")
