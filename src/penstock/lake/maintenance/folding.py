"""Inlined deletes as delete files, together with the delete files that their data files have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from penstock.lake import storage
from penstock.lake.format.changes import FlushInlined, NewFile
from penstock.lake.format.files import DataFile, DeleteFile, FileSet, Table
from penstock.lake.format.files import write as write_deletes
from penstock.lake.format.naming import new_uuid7
from penstock.lake.reading.deleted.positions import Whose, combined, load
from penstock.lazy import pa, pc


@dataclass(frozen=True, slots=True)
class Folding:
    """One table, read at a snapshot; ``directories`` are those that it has written."""

    table: Table
    snapshot_id: int
    directories: list[str]

    def fold(self, flush: FlushInlined, rows: pa.Table, files: Sequence[DataFile]) -> FlushInlined:
        """The flush with delete files of ``rows``, inlined deletes of some of ``files``."""
        by_id = {file.id: file for file in files if file.id is not None}
        hit = [by_id[id_] for id_ in rows["file_id"].unique().to_pylist()]
        before = [file for file in hit if file.delete is not None]
        gone = load(before, Whose(self.table.qualified_name, self.snapshot_id))
        earlier = {positions.file.id: positions for positions in gone}
        deletes: dict[int, DeleteFile] = {}
        for file in hit:
            mine = rows.filter(pc.equal(rows["file_id"], file.id))
            positions, since = [combined(mine["position"])], [combined(mine["snapshot"])]
            if file.id in earlier:
                positions.append(earlier[file.id].positions)
                since.append(earlier[file.id].since)
            assert file.id is not None, "it is in the catalog"
            deletes[file.id] = self.delete_file(
                file.path, pa.concat_arrays(positions), pa.concat_arrays(since)
            )
        replaced = frozenset(f.delete.id for f in before if f.delete and f.delete.id is not None)
        return replace(flush, deletes=deletes, deleted=rows.num_rows, replaces=replaced)

    def delete_file(self, path: str, positions: pa.Array, since: pa.Array) -> DeleteFile:
        """A staged delete file with the snapshot that deleted each row."""
        directory = f"{self.table.path}{new_uuid7()}"
        self.directories.append(directory)
        name = f"{directory}/deletes.parquet"
        storage.make_parent(name)
        ordered = pa.table([positions, since], ["pos", "since"]).sort_by("pos")
        return replace(
            write_deletes(name, path, ordered["pos"], ordered["since"]),
            begin_snapshot=pc.min(since).as_py(),
            partial_max=pc.max(since).as_py(),
        )


def fold_rewritten(folding: Folding, files: FileSet, new: Iterable[NewFile]) -> FlushInlined | None:
    """The inlined deletes of the files that ``new`` ones are made of, if they have any."""
    if files.inlined_deletes is None:
        return None
    sources = pa.array([id_ for new_file in new for id_ in new_file.sources], pa.int64())
    rows = files.inlined_deletes.rows
    rows = rows.filter(pc.is_in(rows["file_id"], value_set=sources))
    if not rows.num_rows:
        return None
    table = folding.table
    flush = FlushInlined(table.id, table.qualified_name, table.path, folding.snapshot_id)
    return folding.fold(flush, rows, files.files)
