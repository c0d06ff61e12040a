"""The rows of a group of files that are deleted, by delete files and by the catalog itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lake.deleted.positions import Whose, load
from penstock.lake.files import DataFile, FileSet


@dataclass(frozen=True, slots=True)
class Deletes:
    """``inlined`` are positions by file id; the delete files are those that the files name."""

    whose: Whose
    inlined: Mapping[int, pa.Int64Array] = field(default_factory=dict)

    def of(self, group: Sequence[DataFile]) -> dict[int, pa.Int64Array]:
        """The positions deleted from these files, by file id: the delete files are read now."""
        found: dict[int, list[pa.Array]] = defaultdict(list)
        singly = [
            replace(file, delete=one, more_deletes=()) for file in group for one in file.deletes
        ]
        for gone in load(singly, self.whose):
            found[gone.file.id or 0].append(gone.positions)
        for file_id, positions in self.inlined.items():
            found[file_id].append(positions)
        return {key: pa.concat_arrays(arrays) for key, arrays in found.items()}


def deletes_of(group: Sequence[DataFile], files: FileSet, whose: Whose) -> Deletes:
    if files.inlined_deletes is None:
        return Deletes(whose)
    rows = files.inlined_deletes.rows
    hit = {file.id for file in group if file.id is not None}
    inlined: dict[int, pa.Int64Array] = {}
    for file_id in sorted(hit & set(rows["file_id"].to_pylist())):
        here = rows.filter(pc.equal(rows["file_id"], file_id))["position"]
        inlined[file_id] = pa.concat_arrays(here.chunks)
    return Deletes(whose, inlined)
