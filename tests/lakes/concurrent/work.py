"""One writer of many: a process that commits to a lake and keeps a log of what became of it.

    python -m tests.lakes.concurrent.work JSON

Each line of the log is one commit, written when its outcome is known: what it did, to which table,
and whether it was committed (with its snapshot), failed, or its outcome is unknown. Rows are
``(id)``; every id is used once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa

from penstock.errors import CommitUnknown, PenstockError
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.snapshot import Snapshot
from penstock.lakes.transaction import Transaction
from penstock.spark.session import source
from tests.lakes.catalog import staging


@dataclass(frozen=True)
class Task:
    """``number`` identifies the writer."""

    uri: str
    data_path: str
    log: str
    number: int
    commits: int
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    writer: int
    table: str
    state: str  # "committed", "failed" or "unknown"
    inserted: tuple[int, ...] = ()
    deleted: tuple[int, ...] = ()
    snapshot: int | None = None
    error: str | None = None


@dataclass
class _Writer:
    catalog: Catalog
    task: Task
    # Committed files of this writer with one live row besides others, by table: path and its ids.
    files: dict[str, list[tuple[str, list[int]]]] = field(default_factory=dict)

    def append(self, table: str, ids: list[int]) -> tuple[Snapshot, list[int], list[int]]:
        base = self.catalog.latest()
        info = self.catalog.table("main", table, base.id)
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        file = staging.stage(info.path, info.schema, rows)
        made = staging.change(self.catalog, info, base, add=(file,))
        self.files.setdefault(table, []).append((file.path, ids))
        return made, ids, []

    def delete(self, table: str, ids: list[int]) -> tuple[Snapshot, list[int], list[int]]:
        """One row of a file of its own, if there is one; else it appends."""
        if not self.files.get(table):
            return self.append(table, ids)
        path, there = self.files[table][-1]
        base = self.catalog.latest()
        info = self.catalog.table("main", table, base.id)
        listed = self.catalog.files(info, base.id).files
        file_id = next((file.id for file in listed if file.path == path), None)
        if file_id is None:  # somebody has merged it
            self.files[table].pop()
            return self.append(table, ids)
        deletes = staging.stage_deletes(info.path, path, [0])
        made = staging.change(self.catalog, info, base, deletes={file_id: deletes})
        self.files[table].pop()
        return made, [], there[:1]

    def inline(self, table: str, ids: list[int]) -> tuple[Snapshot, list[int], list[int]]:
        """Rows that the catalog itself takes."""
        transaction = Transaction(self.catalog, source(None))
        transaction.table(table).append([{"id": key} for key in ids])
        made = transaction.commit()
        assert made is not None
        return made, ids, []


_Act = Callable[[_Writer, str, list[int]], tuple[Snapshot, list[int], list[int]]]
_ACTS: tuple[_Act, ...] = (_Writer.append, _Writer.inline, _Writer.append, _Writer.delete)


def work(task: Task) -> None:
    with (
        Catalog.open(task.uri, data_path=task.data_path) as catalog,
        Path(task.log).open("a") as log,
    ):
        writer = _Writer(catalog, task)
        for at in range(task.commits):
            table = task.tables[(at + task.number) % len(task.tables)]
            act = _ACTS[at % len(_ACTS)]
            first = task.number * 1_000_000 + at * 10
            _say(log, _try(writer, act, table, [first, first + 1]))


def _try(writer: _Writer, act: _Act, table: str, ids: list[int]) -> Outcome:
    number = writer.task.number
    try:
        made, inserted, deleted = act(writer, table, ids)
    except CommitUnknown as error:
        return Outcome(number, table, "unknown", tuple(ids), error=str(error))
    except PenstockError as error:
        said = f"{type(error).__name__}: {error}"
        return Outcome(number, table, "failed", tuple(ids), error=said)
    return Outcome(number, table, "committed", tuple(inserted), tuple(deleted), made.id)


def _say(log: IO[str], outcome: Outcome) -> None:
    log.write(json.dumps(asdict(outcome)) + "\n")
    log.flush()


def outcome(line: str) -> Outcome:
    values = json.loads(line)
    lists = {key: tuple(values[key]) for key in ("inserted", "deleted")}
    return Outcome(**{**values, **lists})


def task(text: str) -> Task:
    values = json.loads(text)
    return Task(**{**values, "tables": tuple(values["tables"])})


if __name__ == "__main__":
    work(task(sys.argv[1]))
