"""What a process does to a lake until it is killed: commits of each kind, with no Spark.

Each act makes at most one snapshot, and says what the rows of ``t`` are when it has landed.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute  # once, before the forks, which would each import it
from sqlalchemy import event

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.schema import Column, TableSchema, assign_missing_ids
from penstock.lakes.maintenance.compaction import merge_adjacent_files, rewrite_data_files
from penstock.lakes.maintenance.flush_inlined_data import flush_inlined_data
from penstock.lakes.transaction import Transaction
from penstock.spark.session import source
from tests import duck
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

Rows = frozenset[int]
Act = Callable[[Catalog, int], None]
After = Callable[[Rows, int], Rows]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def begin(place: Place) -> Rows:
    """The table ``t`` with one file of two rows; ``m`` to merge, ``r`` to rewrite."""

    def work() -> None:
        with place.open() as catalog:
            for name in ("t", "m", "r"):
                staging.create(catalog, name, staging.columns(id="int64"), rows(-2, -1))
            staging.append(catalog, "m", rows(-4, -3))
            delete(catalog, 0, "r")

    in_fork(work)
    return frozenset({-2, -1})


def latest(place: Place) -> int:
    def work() -> int:
        with place.open() as catalog:
            return catalog.latest().id

    # SQLite, closed before the next fork, needs no child.
    return work() if ":sqlite:" in place.uri else int(in_fork(work))


def duckdb_says(place: Place) -> dict[str, list[int]]:
    """The rows of ``t``, their row ids, those of ``m`` and ``r``, and the snapshots."""
    queries = {
        "rows": "SELECT id FROM t",
        "compacted": "SELECT id FROM m UNION ALL SELECT id FROM r",
        "row ids": "SELECT rowid FROM t",
        "snapshots": "SELECT snapshot_id FROM lk.snapshots()",
    }

    def work() -> dict[str, list[int]]:
        with duck.attach(place.uri) as connection:
            return {
                name: sorted(key for (key,) in connection.execute(query).fetchall())
                for name, query in queries.items()
            }

    seen: dict[str, list[int]] = in_fork(work)
    return seen


def append(catalog: Catalog, at: int) -> None:
    staging.append(catalog, "t", rows(2 * at, 2 * at + 1))


def delete(catalog: Catalog, _: int, name: str = "t") -> None:
    """The first row of each file that has all of its rows."""
    base = catalog.latest()
    table = catalog.table("main", name, base.id)
    whole = [file for file in catalog.files(table, base.id).files if file.delete is None]
    deletes = {
        file.id: staging.stage_deletes(table.path, file.path, [0])
        for file in whole
        if file.id is not None
    }
    if deletes:
        staging.change(catalog, table, base, deletes=deletes)


def replace(catalog: Catalog, at: int) -> None:
    base = catalog.latest()
    table = catalog.table("main", "t", base.id)
    ended = tuple(file.id for file in catalog.files(table, base.id).files if file.id is not None)
    file = staging.stage(table.path, table.schema, rows(2 * at, 2 * at + 1))
    staging.change(catalog, table, base, add=(file,), end=ended)


def create(catalog: Catalog, at: int) -> None:
    staging.create(catalog, f"other{at}", staging.columns(id="int64"), rows(at))


def alter(catalog: Catalog, at: int) -> None:
    base = catalog.latest()
    table = catalog.table("main", "t", base.id)
    wider = TableSchema((*table.schema.columns, Column(f"c{at}", "varchar")))
    schema = assign_missing_ids(wider, catalog.next_column_id(table))
    staging.change(catalog, table, base, schema=schema)


def inline(catalog: Catalog, at: int) -> None:
    """A row that the catalog itself takes."""
    transaction = Transaction(catalog, source(None))
    transaction.table("t").append([{"id": 2 * at + 1}])
    transaction.commit()


@dataclass(frozen=True)
class _Lake:
    catalog: Catalog


def merge(catalog: Catalog, _: int) -> None:
    merge_adjacent_files(_Lake(catalog), "m")


def rewrite(catalog: Catalog, _: int) -> None:
    rewrite_data_files(_Lake(catalog), "r", delete_threshold=0.5)


def flush(catalog: Catalog, _: int) -> None:
    flush_inlined_data(_Lake(catalog), "t")


def _same(before: Rows, _: int) -> Rows:
    return before


# Name -> what it does, and what it leaves; rows that `delete` leaves are the odd ones.
ACTS: Mapping[str, tuple[Act, After]] = {
    "append": (append, lambda before, at: before | {2 * at, 2 * at + 1}),
    "delete": (delete, lambda before, _: frozenset(key for key in before if key % 2)),
    "replace": (replace, lambda _, at: frozenset({2 * at, 2 * at + 1})),
    "create": (create, _same),
    "alter": (alter, _same),
    # After those that look at files only.
    "inline": (inline, lambda before, at: before | {2 * at + 1}),
    "flush": (flush, _same),
    "merge": (merge, _same),
    "rewrite": (rewrite, _same),
}


def die_at(catalog: Catalog, step: int) -> None:
    """Have this process killed at its change number ``step`` (from 0); COMMIT counts as one.

    Queries do not count: what a process leaves that is killed before one, it leaves as well when
    it is killed before the next change.
    """
    left = [step]

    def count(text: str) -> None:
        if text.lstrip().upper().startswith("SELECT"):
            return
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    event.listen(catalog._engine, "commit", lambda _: count("COMMIT"))
    if catalog.kind != "postgres":
        event.listen(catalog._engine, "before_cursor_execute", lambda *args: count(str(args[2])))
        return

    class Counting(psycopg.Cursor[Any]):
        """Where some statements do not go through SQLAlchemy."""

        def execute(self, query: Any, *args: Any, **more: Any) -> Counting:
            count(query.decode() if isinstance(query, bytes) else str(query))
            return super().execute(query, *args, **more)

    def use_it(raw: psycopg.Connection[Any], *_: object) -> None:
        raw.cursor_factory = Counting

    event.listen(catalog._engine, "checkout", use_it)


def in_child(work: Callable[[], object]) -> tuple[int, Any]:
    """Run ``work`` in a fork: how it ended, as `os.waitstatus_to_exitcode` tells, and what it gave.

    Databases are only ever opened in children: their libraries do not survive a fork.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(writing, json.dumps(work()).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, json.loads(said) if said and not code else None


def in_fork(work: Callable[[], object]) -> Any:
    """What ``work`` gives in a fork that must not fail."""
    code, result = in_child(work)
    if code:
        raise RuntimeError(f"a child ended with {code}")
    return result


def on_disk(place: Place) -> set[str]:
    return {str(path) for path in Path(place.data_path).rglob("*.parquet")}
