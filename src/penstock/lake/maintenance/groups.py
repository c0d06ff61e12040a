"""Which files are put together: those of one partition and one version of the table's columns."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.lake.format.files import DataFile, FileSet

Group = tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """In bytes. Files of ``least`` and more but below ``most`` are merged, near to ``target``."""

    target: int
    most: int
    least: int = 0


def merge_groups(
    files: FileSet, begins: Sequence[int], sizes: Sizes, at_most: int | None = None
) -> list[Group]:
    """Groups of at least two files, each to become one; ``at_most`` so many groups.

    ``begins`` are the snapshots at which the table's columns or layout changed, ascending. As
    DuckDB 1.5.5 does, files are taken in their order until the target is reached, and files with
    deleted rows are left to a rewrite.
    """
    deleted_inline = inlined_deletes(files)
    wanted = (
        file
        for file in files.files
        if not file.deletes
        and file.id not in deleted_inline
        and sizes.least <= file.size_bytes < sizes.most
        and is_whole(file, files)
    )
    found = (
        group
        for alike in by_layout(wanted, begins)
        for group in _near(alike, sizes.target)
        if len(group) > 1
    )
    return [group for _, group in zip(range(at_most), found)] if at_most else list(found)  # noqa: B905 - the range ends it


def rewrite_groups(
    files: FileSet, begins: Sequence[int], threshold: float, target: int
) -> list[Group]:
    """Groups of files, at least one, of which a share of ``threshold`` or more is deleted."""
    gone = inlined_deletes(files)
    counts: dict[int | None, int] = defaultdict(int)
    for file in files.files:
        counts[file.id] = sum(delete.delete_count for delete in file.deletes)
    if files.inlined_deletes is not None:
        for file_id in files.inlined_deletes.rows["file_id"].to_pylist():
            counts[file_id] += 1
    wanted = (
        file
        for file in files.files
        if (file.deletes or file.id in gone)
        and counts[file.id] >= threshold * file.record_count
        and is_whole(file, files)
    )
    return [group for alike in by_layout(wanted, begins) for group in _near(alike, target)]


def inlined_deletes(files: FileSet) -> Collection[int]:
    """The ids of files of which the catalog itself deletes rows."""
    if files.inlined_deletes is None:
        return frozenset()
    return frozenset(files.inlined_deletes.rows["file_id"].to_pylist())


def is_whole(file: DataFile, files: FileSet) -> bool:
    """Whether all columns are in the file and each row tells when it came."""
    mapping = files.mappings.get(file.mapping_id) if file.mapping_id is not None else None
    in_path = mapping is not None and bool(mapping.partitions)
    return not in_path and not (file.partial is not None and file.partial.counts)


def by_layout(files: Iterable[DataFile], begins: Sequence[int]) -> Iterator[list[DataFile]]:
    """Files of one partition and one version of the columns, in the order of their rows."""
    found: dict[object, list[DataFile]] = defaultdict(list)
    for file in files:
        version = bisect_right(begins, file.begin_snapshot or 0)
        found[version, file.partition_id, file.partition_values].append(file)
    for alike in found.values():
        yield sorted(alike, key=lambda file: (file.begin_snapshot or 0, file.id or 0))


def _near(files: Sequence[DataFile], target: int) -> Iterator[Group]:
    held: list[DataFile] = []
    size = 0
    for file in files:
        held.append(file)
        size += file.size_bytes
        if size >= target:
            yield tuple(held)
            held, size = [], 0
    if held:
        yield tuple(held)
