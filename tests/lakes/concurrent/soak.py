"""Penstock and DuckDB change and compact one table side by side: both read each snapshot.

    python -m tests.lakes.concurrent.soak --runs 20 --seconds 60
    python -m tests.lakes.concurrent.soak --catalog sqlite --catalog postgres --inline 20

Two writers of each: one of both stays attached throughout, the other attaches anew for each change.
Without inlining deletes and updates take turns: DuckDB 1.5.5 does not see another delete of a file
that had deletes before, its own either (``--beside`` lets them race, and shows it). With
``--inline`` all changes take turns, and DuckDB does not rewrite files: docs/lakes.md says what it
gets wrong there alone. Each writer inserts, deletes and updates rows that it has looked up
in its transaction, compacts, rewrites, expires and cleans up now and then, and says what it did in
which snapshot. Readers read old snapshots meanwhile. In the end each snapshot that is left must
hold in both engines what the writers said, and so must what the readers saw.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import CommitUnknown, DataFileMissing, PenstockError
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import ROW_ID_COLUMN, DataFile, FileSet
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, SNAPSHOT_ID
from penstock.lakes.lake import Lake
from penstock.lakes.reading.deleted.positions import Whose, load
from penstock.lakes.reading.scan import Scan
from penstock.lakes.rows.change import MatchedRows
from penstock.lakes.rows.deletes import remove
from penstock.lakes.rows.stager import write_found
from penstock.lakes.transaction import Transaction
from penstock.lakes.writing.arrow import write_history
from penstock.spark.session import source
from tests import duck, postgres
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential import places

KEPT = 40  # snapshots that expiry leaves
Row = tuple[int, int]  # id and version
# File (None: in the catalog), position and row id.
Placed = Mapping[Row, tuple[DataFile | None, int, int]]


@dataclass(frozen=True)
class Job:
    uri: str
    data_path: str
    number: int
    log: str
    seconds: float
    seed: int
    inline: int = 0  # the number of rows up to which they are inlined
    anew: bool = False  # attaches for each change


@dataclass(frozen=True)
class Done:
    """What was committed in ``snapshot``; of a reader, the rows that it saw there (``added``)."""

    by: str
    act: str
    snapshot: int | None = None
    added: tuple[Row, ...] = ()
    gone: tuple[Row, ...] = ()
    error: str | None = None


class Penstock:
    """A writer that needs no Spark: rows are looked up by Arrow, and removed as DELETE does it."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.attach()

    def attach(self) -> None:
        self.lake = Lake.attach(self._job.uri, data_path=self._job.data_path)

    def insert(self, rows: Sequence[Row]) -> Done:
        with self._begun() as transaction:
            transaction.table("t").append([{"id": id_, "v": v} for id_, v in rows])
            made = transaction.commit()
        return Done("penstock", "insert", made.id if made else None, tuple(rows))

    def delete(self, pick: Callable[[list[Row]], list[Row]]) -> Done:
        return self._changed("delete", pick)

    def update(self, pick: Callable[[list[Row]], list[Row]]) -> Done:
        return self._changed("update", pick)

    def _changed(self, act: str, pick: Callable[[list[Row]], list[Row]]) -> Done:
        with self._begun() as transaction:
            table = transaction.table("t")
            scanned = table.scan_all()
            there = rows_of(scanned)
            rows = pick(sorted(there))
            if not rows:
                return Done("penstock", act)
            by_file: dict[str, list[int]] = {}
            keys = scanned.keys()
            for row in rows:
                file, position, _ = there[row]
                if file is not None:
                    by_file.setdefault(keys.key(file.path), []).append(position)
            inlined = tuple(there[row][2] for row in rows if there[row][0] is None)
            positions = {
                key: pa.array(sorted(at_file), pa.int64()) for key, at_file in by_file.items()
            }
            new = tuple((id_, v + 1) for id_, v in rows) if act == "update" else ()
            ids = pa.chunked_array([pa.array([there[row][2] for row in rows], pa.int64())])
            values = pa.table({"id": [r[0] for r in new], "v": [r[1] for r in new]})
            if self._job.inline:
                found = MatchedRows.of(positions, inlined)
                found = found.with_values(values, ids) if new else found
                write_found(table, scanned, found).stage(table)
            else:
                counts = {key: len(array) for key, array in positions.items()}
                spark: Any = None  # few rows on a local disk are written without it
                removed = remove(spark, scanned, positions, counts, str(table.candidate.path))
                target = table.target(None)
                written = [write_history(values, target, {EMBEDDED_ROW_ID: ids})[0]] if new else []
                table.take(removed, written)
            made = transaction.commit()
        return Done("penstock", act, made.id if made else None, new, tuple(rows))

    def maintain(self, act: str) -> None:
        if act == "expire":
            versions = [snapshot.id for snapshot in self.lake.snapshots()][:-KEPT]
            if versions:
                self.lake.expire_snapshots(versions=versions)
        elif act == "merge":
            self.lake.merge_adjacent_files("main.t")
        elif act == "rewrite":
            self.lake.rewrite_data_files("main.t", delete_threshold=0.2)
        elif act == "flush":
            self.lake.flush_inlined_data("main.t")
        else:
            self.lake.cleanup_old_files(cleanup_all=True)

    def read(self, version: int) -> list[Row]:
        return sorted(rows_at(self.lake.catalog, version))

    def versions(self) -> list[int]:
        return [snapshot.id for snapshot in self.lake.snapshots()]

    def close(self) -> None:
        self.lake.close()

    def _begun(self) -> Transaction:
        return Transaction(self.lake.catalog, source(None))


class DuckDB:
    def __init__(self, job: Job) -> None:
        self._job = job
        self.attach()

    def attach(self) -> None:
        job = self._job
        self.connection = duck.attach(job.uri, job.data_path.rstrip("/"), inline=job.inline)
        self.connection.execute("SET enable_progress_bar = false")

    def insert(self, rows: Sequence[Row]) -> Done:
        values = ", ".join(map(str, rows))
        self._run(f"INSERT INTO t VALUES {values}")
        return Done("duckdb", "insert", self._made(), tuple(rows))

    def delete(self, pick: Callable[[list[Row]], list[Row]]) -> Done:
        return self._changed("delete", pick, "DELETE FROM t WHERE id IN ({})")

    def update(self, pick: Callable[[list[Row]], list[Row]]) -> Done:
        return self._changed("update", pick, "UPDATE t SET v = v + 1 WHERE id IN ({})")

    def _changed(self, act: str, pick: Callable[[list[Row]], list[Row]], text: str) -> Done:
        self._run("BEGIN")
        rows = pick(sorted(self._run("SELECT id, v FROM t")))
        if not rows:
            self._run("ROLLBACK")
            return Done("duckdb", act)
        self._run(text.format(", ".join(str(id_) for id_, _ in rows)))
        self._run("COMMIT")
        new = tuple((id_, v + 1) for id_, v in rows) if act == "update" else ()
        return Done("duckdb", act, self._made(), new, tuple(rows))

    def maintain(self, act: str) -> None:
        versions = self.versions()[:-KEPT] if act == "expire" else []
        if act == "expire" and not versions:
            return
        if act == "rewrite" and self._job.inline:
            return
        self._run(
            {
                "flush": "CALL ducklake_flush_inlined_data('lk', table_name => 't')",
                "merge": "CALL ducklake_merge_adjacent_files('lk', 't')",
                "rewrite": "CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.2)",
                "expire": f"CALL ducklake_expire_snapshots('lk', versions => {versions})",
                "clean": "CALL ducklake_cleanup_old_files('lk', cleanup_all => true)",
            }[act]
        )

    def read(self, version: int) -> list[Row]:
        return sorted(self._run(f"SELECT id, v FROM t AT (VERSION => {version})"))

    def versions(self) -> list[int]:
        return sorted(version for (version,) in self._run("SELECT snapshot_id FROM lk.snapshots()"))

    def rows(self, query: str) -> list[Any]:
        return self._run(query)

    def close(self) -> None:
        self.connection.close()

    def _made(self) -> int:
        ((made,),) = self._run("FROM ducklake_last_committed_snapshot('lk')")
        return int(made)

    def _run(self, text: str) -> list[Any]:
        try:
            return self.connection.execute(text).fetchall()
        except duckdb.Error:
            with suppress(duckdb.Error):
                self.connection.execute("ROLLBACK")
            raise


ENGINES: Mapping[str, type[Penstock] | type[DuckDB]] = {"penstock": Penstock, "duckdb": DuckDB}
_ACTS = ("insert", "delete", "update", "merge", "rewrite", "expire", "clean", "flush")
_WEIGHTS = (8, 10, 5, 2, 2, 1, 1, 2)
_TURNS = ("delete", "update")  # which exclude each other
# The table went ahead, or the file was cleaned up: what a writer or a reader has to live with.
_PASSING = (duckdb.Error, PenstockError)


def write(name: str, job: Job, turns: AbstractContextManager[Any]) -> None:
    chosen = random.Random(job.seed)
    fresh = iter(range(job.number * 1_000_000, (job.number + 1) * 1_000_000))
    with closing(ENGINES[name](job)) as engine, Path(job.log).open("a") as log:
        until = time.monotonic() + job.seconds
        while time.monotonic() < until:
            act = chosen.choices(_ACTS, _WEIGHTS)[0]
            done = Done(name, act)
            try:
                with turns if job.inline or act in _TURNS else nullcontext():
                    if job.anew:
                        engine.close()
                        engine.attach()
                    if act == "insert":
                        rows = [(next(fresh), 0) for _ in range(chosen.randint(1, 12))]
                        done = engine.insert(rows)
                    elif act in _TURNS:
                        done = getattr(engine, act)(
                            lambda rows: chosen.sample(rows, min(len(rows), chosen.randint(1, 5)))
                        )
                    else:
                        engine.maintain(act)
            except CommitUnknown as error:
                done = replace(done, act="unknown", error=str(error))
            except _PASSING as error:
                done = replace(done, error=f"{type(error).__name__}: {error}"[:300])
            print(json.dumps(asdict(done)), file=log, flush=True)


def watch(name: str, job: Job, turns: AbstractContextManager[Any]) -> None:
    chosen = random.Random(job.seed)
    with closing(ENGINES[name](job)) as engine, Path(job.log).open("a") as log:
        until = time.monotonic() + job.seconds
        while time.monotonic() < until:
            try:
                version = chosen.choice(engine.versions()[1:] or [1])
                rows = tuple(engine.read(version))
                if version in engine.versions():  # else it expired while it was read
                    done = Done(name, "read", version, rows)
                else:
                    done = Done(name, "read", error="expired")
            except _PASSING as error:
                done = Done(name, "read", error=f"{type(error).__name__}: {error}"[:300])
            print(json.dumps(asdict(done)), file=log, flush=True)
            time.sleep(0.2)


def rows_at(catalog: Catalog, version: int) -> list[Row]:
    table = catalog.table("main", "t", version)
    files = catalog.files(table, version)
    return list(rows_of(Scan("main.t", table.schema, files, version)))


def rows_of(scanned: Scan) -> Placed:
    """The rows of a scan with their places, read by Arrow. Raises AssertionError for one twice."""
    placed: dict[Row, tuple[DataFile | None, int, int]] = {}
    for file in scanned.files.files:
        content = _read(file)
        gone = _gone(scanned.files, file, scanned.snapshot_id)
        begins = content.get(SNAPSHOT_ID) if file.partial is not None else None
        ids = content.get(EMBEDDED_ROW_ID) or [None] * file.record_count
        for at, row in enumerate(zip(content["id"], content["v"], strict=True)):
            late = begins is not None and begins[at] > (scanned.snapshot_id or 0)
            if at not in gone and not late:
                assert row not in placed, f"row {row} comes twice"
                own = ids[at]
                placed[row] = (file, at, (file.row_id_start or 0) + at if own is None else own)
    for row, row_id in _inlined(scanned):
        assert row not in placed, f"row {row} comes twice"
        placed[row] = (None, 0, row_id)
    return placed


def _inlined(scanned: Scan) -> Iterator[tuple[Row, int]]:
    """The rows that the catalog holds, with their ids."""
    for part in () if scanned.files.inlined is None else scanned.files.inlined.parts:
        columns = {column.name: str(column.id) for column in part.schema.columns}
        names = (columns["id"], columns["v"], ROW_ID_COLUMN)
        for id_, v, row_id in zip(*(part.rows[n].to_pylist() for n in names), strict=True):
            yield (int(id_), int(v)), row_id


def _read(file: DataFile) -> Mapping[str, list[Any]]:
    try:
        return pq.read_table(file.path, partitioning=None).to_pydict()  # type: ignore[no-any-return] # untyped
    except FileNotFoundError as error:
        raise DataFileMissing(str(error)) from error


def _gone(files: FileSet, file: DataFile, version: int | None) -> set[int]:
    listed = [replace(file, delete=delete, more_deletes=()) for delete in file.deletes]
    gone = {
        at
        for deleted in load(listed, Whose("main.t", version))
        for at in deleted.positions.to_pylist()
    }
    if files.inlined_deletes is not None:
        rows = files.inlined_deletes.rows
        of_file = rows.filter(pc.equal(rows["file_id"], file.id))
        gone.update(of_file["position"].to_pylist())
    return gone


@dataclass(frozen=True)
class Result:
    problems: tuple[str, ...]
    counts: Counter[str]
    snapshots: int
    compared: int


def soak(
    place: Place, folder: Path, seconds: float, seed: int, *, beside: bool = False, inline: int = 0
) -> Result:
    with place.open() as catalog:
        staging.create(catalog, "t", staging.columns(id="int64", v="int64"))
    with Lake.attach(place.uri, data_path=place.data_path) as lake:
        lake.set_option("data_inlining_row_limit", inline)
    job = Job(place.uri, place.data_path, 0, "", seconds, seed, inline)
    context = get_context("spawn")
    turns = nullcontext() if beside else context.Lock()
    people = [(write, "penstock"), (write, "duckdb")] * 2 + [(watch, "penstock"), (watch, "duckdb")]
    own = (
        replace(job, number=at, log=f"{folder}/{at}.log", seed=seed * 100 + at, anew=at in {3, 4})
        for at in range(1, len(people) + 1)
    )
    jobs = [(*each, own_job) for each, own_job in zip(people, own, strict=True)]
    processes = [
        context.Process(target=act, args=(name, arguments, turns)) for act, name, arguments in jobs
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(seconds + 120)
    problems = [
        f"a process ended with {process.exitcode}" for process in processes if process.exitcode
    ]
    for process in processes:
        process.kill()
    done = [said(line) for entry in jobs for line in Path(entry[2].log).read_text().splitlines()]
    compared, differences = _compare(place, job, done)
    counts = Counter(f"{step.by} {step.act}{' failed' if step.error else ''}" for step in done)
    last = max((step.snapshot or 0 for step in done), default=0)
    return Result((*problems, *differences), counts, last, compared)


def said(line: str) -> Done:
    values = json.loads(line)
    rows = {key: tuple(map(tuple, values[key])) for key in ("added", "gone")}
    return Done(**{**values, **rows})


def _compare(place: Place, job: Job, done: Sequence[Done]) -> tuple[int, list[str]]:
    """How many snapshots were read, and what is wrong with them."""
    changes = {
        step.snapshot: step for step in done if step.snapshot is not None and step.act != "read"
    }
    problems = [f"unknown: {step.error}" for step in done if step.act == "unknown"]
    truth: dict[int, Counter[Row]] = {}
    now: Counter[Row] = Counter()
    for version in range(1, max(changes, default=1) + 1):
        change = changes.get(version)
        if change is not None:
            now = now - Counter(change.gone) + Counter(change.added)
        truth[version] = now
    end = truth[max(truth)]
    for seen in done:
        if seen.act == "read" and seen.snapshot is not None:
            wanted = truth.get(seen.snapshot, end)
            problems += _differs(
                f"{seen.by} read, while others wrote,", seen.snapshot, seen.added, wanted
            )
    theirs = DuckDB(job)
    engines: list[tuple[str, Penstock | DuckDB]] = [("penstock", Penstock(job)), ("duckdb", theirs)]
    versions = [version for version in engines[0][1].versions() if version]
    for version in versions:
        for name, engine in engines:
            try:
                rows = engine.read(version)
            except (AssertionError, *_PASSING) as error:
                problems.append(f"{name} at {version}: {type(error).__name__}: {error}"[:300])
                continue
            problems += _differs(name, version, rows, truth.get(version, end))
    query = "SELECT count(*) - count(DISTINCT rowid) FROM t"
    ((twice,),) = theirs.rows(query)
    problems += [f"{twice} row ids come twice"] if twice else []
    for _, engine in engines:
        engine.close()
    return len(versions), problems


def _differs(who: str, version: int, rows: Sequence[Row], wanted: Counter[Row]) -> Iterator[str]:
    there = Counter(rows)
    if there != wanted:
        yield (
            f"{who} at {version}: {sum(there.values())} rows for {sum(wanted.values())}, "
            f"lost {sorted(wanted - there)[:5]}, too many {sorted(there - wanted)[:5]}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beside", action="store_true", help="deletes do not take turns")
    parser.add_argument("--catalog", choices=("sqlite", "postgres"), action="append")
    parser.add_argument("--inline", type=int, default=0, help="rows that the catalog takes")
    options = parser.parse_args(arguments)
    wrong = 0
    kinds = options.catalog or ["postgres"]
    with postgres.server() if "postgres" in kinds else nullcontext("") as conninfo:
        for seed, kind in product(range(options.seed, options.seed + options.runs), kinds):
            with tempfile.TemporaryDirectory(prefix="soak-") as folder:
                home = places.make(kind, Path(folder) / "lake", conninfo)
                place = Place(home.uri, home.data_path)
                how = {"beside": options.beside, "inline": options.inline}
                result = soak(place, Path(folder), options.seconds, seed, **how)
                if kind == "postgres":
                    places.drop(home)
            print(f"{kind}, seed {seed}: {result.snapshots} snapshots, {result.compared} compared,")
            print(f"  {dict(sorted(result.counts.items()))}")
            print(
                *result.problems[:20], f"  {len(result.problems)} differences", sep="\n", flush=True
            )
            wrong += len(result.problems)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
