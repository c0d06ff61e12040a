"""The `external` materialization: a model's rows as Parquet, CSV or JSON files, written by Spark.

A location that ends like a file (``orders.parquet``) is one file, which is replaced by a rename.
Any other one, and every partitioned one, is a directory. ``ref`` reads the files by Spark's own
text, ``csv.`path` WITH ('header' = 'true')``, as no view of a lake may name files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dbt_common.exceptions import DbtRuntimeError

from penstock.lakes import storage

if TYPE_CHECKING:
    from pyarrow import fs
    from pyspark.sql import DataFrame

MATERIALIZATION = "external"
_SUFFIX = re.compile(r"\.(?P<format>parquet|csv|json)(?:\.\w+)?\Z", re.I)
_RENAMED = {"codec": "compression", "delimiter": "sep"}  # DuckDB's name: Spark's
_WRITTEN = {  # a quote in a text is doubled, as other programs have it
    "csv": {"header": "true", "escape": '"'},
    "json": {},
    "parquet": {"outputTimestampType": "TIMESTAMP_MICROS"},
}
_READ = {"csv": {"inferSchema": "true"}, "json": {}, "parquet": {}}
_OF_WRITING = frozenset({"compression", "outputTimestampType"})  # readers find these in the files


@dataclass(frozen=True, slots=True)
class Files:
    """Where the rows of a model are, and in what form; ``options`` are Spark's."""

    location: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, config: Mapping[str, Any], root: str = ".") -> Files:
        """Read a model's configuration, with dbt-duckdb's names. Raises DbtRuntimeError."""
        given = dict(config.get("options") or {})
        if config.get("delimiter"):
            given.setdefault("delimiter", config["delimiter"])
        partitions = given.pop("partition_by", None) or config.get("partition_by") or ()
        if isinstance(partitions, str):
            partitions = [part.strip() for part in partitions.split(",")]
        location = config.get("location") or ""
        kind = str(given.pop("format", None) or config.get("format") or _format(location)).lower()
        if kind not in _WRITTEN:
            raise DbtRuntimeError(f"format {kind!r} of {name}: it is parquet, csv or json")
        location = _absolute(location or f"{root.rstrip('/')}/{name}.{kind}")
        if "`" in location:
            raise DbtRuntimeError(f"the location of {name} has a backquote: rename {location}")
        options = {_RENAMED.get(str(k), str(k)): _text(v) for k, v in given.items()}
        return cls(location, kind, _WRITTEN[kind] | options, tuple(partitions))

    @property
    def single(self) -> bool:
        """Return whether it is one file."""
        return not self.partition_by and _SUFFIX.search(Path(self.location).name) is not None

    @property
    def reading(self) -> str:
        """Spark's text of a table that is these files."""
        shared = {k: v for k, v in self.options.items() if k not in _OF_WRITING}
        options = ", ".join(
            f"{_literal(key)} = {_literal(value)}"
            for key, value in (_READ[self.format] | shared).items()
        )
        return f"{self.format}.`{self.location}`" + (f" WITH ({options})" if options else "")

    def write(self, frame: DataFrame) -> int:
        """Replace the files by the rows of a frame; how many they are. Raises DbtRuntimeError."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as fn

        counted = Observation()
        rows = frame.observe(counted, fn.count(fn.lit(1)).alias("rows"))
        with self._staging() as (staged, place, system):
            writer = (rows.coalesce(1) if self.single else rows).write.options(**self.options)
            if self.partition_by:
                writer = writer.partitionBy(*self.partition_by)
            writer.format(self.format).save(staged)
            self._publish(system, place)
        return int(counted.get["rows"])

    @contextmanager
    def _staging(self) -> Iterator[tuple[str, str, fs.FileSystem]]:
        """A directory beside the files: for Spark, and within its file system."""
        folder = self.location.rstrip("/").rpartition("/")[0]
        staged = f"{folder}/_penstock_{uuid4()}"
        system, place = storage.open_system(staged)
        try:
            yield staged, place, system
        finally:
            if storage.exists(staged):
                system.delete_dir(place)

    def _publish(self, system: fs.FileSystem, staged: str) -> None:
        from pyarrow import fs

        _, target = storage.open_system(self.location.rstrip("/"))
        kind = system.get_file_info(target).type
        if kind == (fs.FileType.Directory if self.single else fs.FileType.File):
            what = "directory" if self.single else "file"
            raise DbtRuntimeError(f"{self.location} is a {what}: remove it, or name another one")
        files = dict(_files(system, staged))
        if self.single:
            system.move(next(iter(files.values())) if files else _empty(system, staged), target)
            return
        existing = dict(_files(system, target))
        self._check_own(existing)
        if not storage.is_remote(self.location):
            _swap(Path(staged), Path(target))
            return
        for name, path in files.items():  # an object store cannot rename a directory
            system.move(path, f"{target}/{name}")
        for path in existing.values():
            system.delete_file(path)

    def _check_own(self, existing: Mapping[str, str]) -> None:
        """Refuse a directory that holds other files: all of it is replaced."""
        others = [
            name for name in sorted(existing) if self.format not in Path(name).name.split(".")[1:]
        ]
        if others:
            raise DbtRuntimeError(
                f"{self.location} holds files that are not {self.format}, such as {others[0]}, and "
                "would be replaced: name a directory of its own as the location"
            )


def of_relation(of: Any, root: str | None) -> Files | None:
    """The files of a model that is materialized so; None of anything else."""
    config = of.config
    if config is None or config.get("materialized") != MATERIALIZATION:
        return None
    return Files.of(of.identifier, config, root or ".")


def _empty(system: fs.FileSystem, staged: str) -> str:
    """A file without rows: Spark writes none where JSON has none."""
    with system.open_output_stream(path := f"{staged}/empty"):
        return path


def _swap(staged: Path, target: Path) -> None:
    """Rename a directory into the place of another one."""
    before = staged.with_name(f"{staged.name}_before")
    if target.exists():
        target.rename(before)
    staged.rename(target)
    if before.exists():
        import shutil

        shutil.rmtree(before)


def _files(system: fs.FileSystem, directory: str) -> Iterator[tuple[str, str]]:
    """The data files below a directory: names within it, and paths."""
    from pyarrow import fs

    if system.get_file_info(directory).type != fs.FileType.Directory:
        return
    for info in system.get_file_info(fs.FileSelector(directory, recursive=True)):
        if info.is_file and not info.base_name.startswith((".", "_")):
            yield info.path[len(directory) :].lstrip("/"), info.path


def _format(location: str) -> str:
    found = _SUFFIX.search(Path(location).name)
    return found["format"] if found else "parquet"


def _absolute(location: str) -> str:
    """A local path is relative to the project, where dbt runs."""
    return location if storage.is_remote(location) else str(Path(location).absolute())


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _literal(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t")
    return f"'{escaped}'"
