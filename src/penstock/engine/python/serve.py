"""Serve a step in Python: read for it, keep what is to be published, and publish its files.

A request names what it asks for (`penstock.engine.python.helpers`). Rows go to the step as Parquet
files that Spark writes, as a view of a session that both have, or as a DataFrame.

Publish the files that a step wrote: moved to their places, and recorded as slices.

A file is in its place before its record is in the catalog: a run that is killed between the two
writes it again. Each temporary directory of a step names the process that owns it, so that the next
run can remove what a killed run has left.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.engine.inputs.pinned_tables import Pins
from penstock.engine.inputs.resolve import Reader, Views, resolve
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.state.records import (
    WHOLE,
    ProcessId,
    Publication,
    SliceRecord,
    is_gone,
    this_process,
)
from penstock.errors import ArgumentError, PartitionError, PenstockError, StepError
from penstock.lakes import storage
from penstock.lazy import pq
from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.python_steps import APPEND, UPSERT, table_in
from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script import arguments
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import why_no_segment
from penstock.model.time.time_macros import TOKEN
from penstock.model.values.asset import DEFAULT_SCHEMA, TableName
from penstock.model.values.strategy import FILES
from penstock.spark.failures import explained
from penstock.spark.functions import arrow_frame, fn
from penstock.sql.identifiers import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """``uri`` is as the code has it, ``{partition}`` in it; ``place`` is of this slice. ``path`` is
    where the file waits."""

    uri: str
    place: str
    path: str


def move(files: Iterable[WrittenFile]) -> None:
    """Put each file in its place, whole. Raises DataPathError."""
    for file in files:
        if storage.is_remote(file.place):
            with storage.output(file.place) as out:
                out.write(Path(file.path).read_bytes())
            continue
        place = Path(file.place)
        storage.make_directory(str(place.parent))
        near = place.with_name(f".{place.name}.{uuid4().hex[:8]}")
        with storage.writing_to(file.place):
            shutil.copyfile(file.path, near)
            near.replace(place)


def fingerprint(files: Iterable[WrittenFile]) -> str:
    """Of the places and the bytes of the files."""
    whole = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.place):
        content = hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
        whole.update(f"{file.place}\0{content}\0".encode())
    return whole.hexdigest()


def are_there(files: Iterable[WrittenFile]) -> bool:
    return all(storage.exists(file.place) for file in files)


def record(
    run_id: str, planned: PlannedStep, uri: str, files: tuple[WrittenFile, ...], state: str = "done"
) -> Publication:
    """The slice of an asset, which these files are."""
    return replace(
        Publication.of(planned.model, run_id, WHOLE if planned.slice is None else planned.slice),
        state=state,
        target=uri,
        strategy=FILES.name,
        rows=len(files),
        fingerprint=fingerprint(files),
        keys=None,
    )


def records(
    run_id: str, planned: PlannedStep, files: tuple[WrittenFile, ...]
) -> tuple[Publication, ...]:
    """The slices of the assets that a step wrote besides its own target."""
    uris = dict.fromkeys(file.uri for file in files if file.uri != planned.model.target.qualified)
    return tuple(
        record(run_id, planned, uri, tuple(file for file in files if file.uri == uri))
        for uri in uris
    )


def is_unchanged(known: SliceRecord | None, files: tuple[WrittenFile, ...]) -> bool:
    """Return whether the files of a slice are those that its record is of, each in its place."""
    return known is not None and known.fingerprint == fingerprint(files) and are_there(files)


_PREFIX, _OWNER = "penstock-step-", "owner.json"


@contextmanager
def scratch() -> Iterator[str]:
    """A directory for the rows and files of one step, which goes with it."""
    with TemporaryDirectory(prefix=_PREFIX) as around:
        Path(around, _OWNER).write_text(json.dumps(asdict(this_process())), encoding="utf-8")
        folder = Path(around, "step")
        folder.mkdir(mode=0o700)
        yield str(folder)


def remove_abandoned() -> tuple[Path, ...]:
    """Remove this user's directories whose process is gone for certain; returns them.

    Those of other users, and those that cannot be read or removed, are left alone.
    """
    removed: list[Path] = []
    for path in sorted(Path(gettempdir()).glob(f"{_PREFIX}*")):
        try:
            mine = path.lstat().st_uid == os.getuid() and not path.is_symlink()
            if not mine:
                continue
            owner = ProcessId(**json.loads((path / _OWNER).read_text(encoding="utf-8")))
            if is_gone(owner):
                shutil.rmtree(path)
                removed.append(path)
        except (OSError, ValueError, TypeError):
            continue  # another run removes it, or it is not ours to judge
    return tuple(removed)


@dataclass(frozen=True, slots=True)
class HandedRows:
    """Rows that a step handed over. ``of_values``: of Python, whose types are those of values;
    ``nulls`` are columns that they have besides, without a value."""

    df: DataFrame
    of_values: bool = False
    nulls: tuple[str, ...] = ()


@dataclass(slots=True)
class Server:
    """``column`` holds the slices of a lake's tables, by its name. ``folder`` is the step's own.

    ``shares_files``: Spark reads and writes the files of this machine. ``writes`` are the rows that
    helpers handed over, ``files`` those by their places.
    """

    model: Model
    bindings: Bindings
    pins: Pins
    session: SparkSession
    views: Views
    root: Path
    folder: str
    columns: Mapping[str, str]
    shares_files: bool = True
    writes: list[HandedRows | None] = field(default_factory=list)
    files: dict[str, WrittenFile] = field(default_factory=dict)

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to a request; what it raises goes to the step's code."""
        with explained():
            return _ANSWERS[str(request["ask"])](self, request)

    def answered(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same, for a step in another process: its errors are part of the answer."""
        try:
            return self(request)
        except PenstockError as error:
            said = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
            return {"error": said}
        except Exception as error:  # the step's process shall not wait for ever
            first = next(iter(str(error).splitlines()), "")
            return {"error": {"type": "StepError", "message": f"{type(error).__name__}: {first}"}}

    def handed(self, rows: Mapping[str, Any]) -> HandedRows | None:
        """Rows that a step handed over; None for those of an empty list."""
        if "empty" in rows:
            return None
        if "frame" in rows:
            return HandedRows(rows["frame"])
        if "view" in rows:
            return HandedRows(self.session.table(rows["view"]))
        if self.shares_files:
            df = self.session.read.parquet(f"file://{rows['path']}")
        else:
            df = arrow_frame(self.session, pq.read_table(rows["path"]))
        return HandedRows(df, True, tuple(rows["nulls"]))

    def _give(self, df: DataFrame, way: str) -> Mapping[str, Any]:
        if way == "frame":
            return {"frame": df}
        if way == "view":
            name = self.views.name()
            self.views.put(name, df)
            return {"view": name}
        path = str(Path(self.folder) / str(uuid4()))
        if self.shares_files:
            df.write.parquet(f"file://{path}")
        else:
            path = f"{path}.parquet"
            pq.write_table(df.toArrow(), path)
        return {"path": path}

    def read(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        table = self.model.query.names.place(_table(request))
        self._require_lake(table.lake)
        df = self.pins.read(table).df
        column, partition = self.columns[table.lake], request.get("partition")
        if partition is not None:
            if column not in df.columns:
                raise ArgumentError(
                    f"{table} is not partitioned: it has no slice {partition!r}",
                    hint="leave out the partition",
                )
            df = df.where(fn.col(quote_identifier(column, mark="`")) == partition)
        return self._give(df, str(request["as"]))

    def query(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        own = self.model.query
        names = replace(own.names, use=(str(request["lake"]), DEFAULT_SCHEMA))
        spec = self.model.partition
        query, findings = read_query(
            str(request["sql"]),
            own.path,
            names=names,
            dialect=own.dialect,
            kind=ScriptKind(partition=spec),
        )
        if query is None:
            wrong = next(finding for finding in findings if finding.severity == "error")
            raise ArgumentError(f"in the query: {wrong.message}", hint=wrong.hint)
        for lake in query.lakes:
            self._require_lake(lake)
        value = self.bindings.partition
        bound = arguments.bind(query.arguments, {}, partition=value, spec=spec)
        reader = Reader(self.pins, self.session, self.views, self.root)
        resolved = resolve(query, Bindings(value, bound), reader, args=request["args"])
        try:
            return self._give(resolved.df, str(request["as"]))
        except PenstockError as error:
            raise resolved.placed(error) from error.__cause__

    def _require_lake(self, lake: str) -> None:
        if lake not in self.pins.versions:
            known = ", ".join(self.pins.versions)
            raise ArgumentError(
                f"the run has not opened the lake {lake}, as nothing showed that the step reads it",
                hint=f"add `# on ducklake://{lake}/TABLE` to the header; it has opened {known}",
            )

    def write(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Rows of a helper; with ``check`` only whether they may be written."""
        table, helper = self.model.query.names.place(_table(request)), str(request["helper"])
        own, keys = self.model.target, request.get("keys")
        if table_key(table) != table_key(own):
            raise StepError(
                f"the step writes {table}, and its table is {own}",
                hint="let another step write it, or name it in the materialize line",
            )
        if self.model.strategy.helper != helper:
            right = "append" if helper == APPEND else "key=column"
            raise StepError(
                f"{helper} is not how a table of {self.model.strategy} is written",
                hint=f"write `{right}` in the materialize line",
            )
        if helper == UPSERT and keys is not None and tuple(keys) != self.model.keys:
            said = ", ".join(self.model.keys)
            message = f"the key is {', '.join(keys)} here, and {said} in the header"
            raise StepError(message, hint="leave it out here")
        partition = request.get("partition")
        if partition is not None and partition != self.bindings.partition:
            raise PartitionError(
                f"the step writes the slice {partition!r}, and the run makes "
                f"{self.bindings.partition or 'the whole table'}",
                hint="leave the partition out: a run writes its own slice",
            )
        if not request.get("check"):
            self.writes.append(self.handed(request["rows"]))
        return {}

    def write_file(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        place = self.place_of(str(request["uri"]))
        self.files[place] = WrittenFile(str(request["uri"]), place, str(request["path"]))
        return {"place": place}

    def read_file(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        place = self.place_of(str(request["uri"]))
        own = self.files.get(place)  # written before by the step itself
        try:
            content = storage.read_bytes(place if own is None else own.path)
            Path(str(request["path"])).write_bytes(content)
        except FileNotFoundError:
            raise StepError(f"file {place} does not exist", hint="is its path right?") from None
        return {}

    def place_of(self, uri: str) -> str:
        """Return where a file is: a URI of S3, or a path below the project
        unless it is absolute.
        """
        value = self.bindings.partition
        if TOKEN in uri and value is None:
            raise PartitionError(
                f"{uri} has {TOKEN}, and the step is not partitioned",
                hint="add `# partitioned daily` to the header",
            )
        spec = self.model.partition
        reason = why_no_segment(value) if value and spec and spec.key else None
        if TOKEN in uri and reason is not None:
            raise PartitionError(f"the partition {value!r} becomes part of a path and {reason}")
        place = uri.replace(TOKEN, value or "")
        if storage.is_remote(place):
            if place.startswith("s3:///"):
                raise ArgumentError(
                    f"{uri} names no bucket", hint="write s3://bucket/path, or a path"
                )
            storage.refuse_unknown(place)
            return place
        return str((self.root / place).resolve())


def _table(request: Mapping[str, Any]) -> TableName:
    written_name = str(request["table"])
    table = table_in(str(request["lake"]), written_name)
    if table is None:
        raise ArgumentError(f"{written_name!r} names no table", hint="write table or schema.table")
    return table


_ANSWERS: Mapping[str, Callable[[Server, Mapping[str, Any]], Mapping[str, Any]]] = {
    "read": Server.read,
    "query": Server.query,
    "write": Server.write,
    "write_file": Server.write_file,
    "read_file": Server.read_file,
}
