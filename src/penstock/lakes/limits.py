"""Limits below which the driver changes rows with Arrow; above them Spark does it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Limits:
    """Inclusive upper bounds; each lake has one value of them.

    With more than the defaults, Arrow on one machine is slower than a Spark job, or needs more than
    some hundred megabytes at once.
    """

    # A whole table that Arrow reads, all rows and columns at once. Opening a file takes a
    # millisecond.
    table_rows: int = 100_000
    table_files: int = 100
    table_bytes: int = 32 << 20  # of its files, compressed

    # A table of which Arrow reads some columns, some rows at a time: for a column, 10 ns a row of
    # one core to compare with a constant, 60 ns to look up in a hash table of keys.
    scanned_rows: int = 50_000_000
    scanned_files: int = 1_000
    joined_rows: int = 12_000_000  # before Arrow 26, which makes a table of them first
    batch_rows: int = 65_536  # in memory at a time, for each thread

    # Places of rows that change, on the driver: 16 bytes each until they are in order, 8 then; 70
    # where they come by the names of files. A LIMIT would first bring them to one task, so places
    # that are surely no more than ``places`` come without one.
    places: int = 12_000_000
    unbounded_places: int = 500_000
    numbered_files: int = 64  # Spark compares a row's file with each of their names
    written_places: int = 2_000_000  # in delete files that the driver writes

    # Rows that change, on the driver with their new values, which one thread writes.
    changed_rows: int = 2_000_000
    changed_bytes: int = 256_000_000
    partitioned_rows: int = 10_000  # into a partitioned table
    collected_values: int = 2_000_000  # that Spark computes: rows times columns
    collected_bytes: int = 64_000_000  # these, as the files have them, compressed

    # The source of a merge: its keys, its rows, and its files where it is files.
    small_source_rows: int = 10_000  # of which the driver has all before it knows the target
    source_keys: int = 2_000_000
    source_rows: int = 2_000_000
    source_bytes: int = 256 << 20
    source_file_bytes: int = 64 << 20
    broadcast_rows: int = 2_000_000  # of a source that Spark sends to every task
    broadcast_bytes: int = 256 << 20
    broadcast_row_bytes: int = 64  # of each row in Spark's hash table, besides its values

    # The target of a merge of which all matches are compared in all columns; of a larger one a
    # sample of them tells whether they change.
    compared_rows: int = 2_000_000
    sample_rows: int = 1_000

    def broadcasts(self, rows: int, width: int) -> bool:
        """Return whether Spark is to broadcast ``rows`` of ``width`` bytes each.

        Spark fails the query when the hash table does not fit into the driver's memory, by default
        1 GB, of which it takes up to three times its own size while it grows.
        """
        return rows * (width + self.broadcast_row_bytes) <= self.broadcast_bytes

    def within(self, heap: int, python: int) -> Limits:
        """Return limits for so many bytes of Spark's heap and of this process, if those are less
        than these limits are made for.
        """
        broadcast = min(1.0, heap / _HEAP)
        driver = min(1.0, python / _PYTHON)
        shares = {**dict.fromkeys(_BROADCAST, broadcast), **dict.fromkeys(_DRIVER, driver)}
        return replace(self, **{n: int(getattr(self, n) * share) for n, share in shares.items()})


_HEAP, _PYTHON = 1 << 30, 512 << 20
_BROADCAST = ("broadcast_rows", "broadcast_bytes")
_DRIVER = (
    *("table_rows", "table_bytes", "joined_rows", "places", "unbounded_places", "written_places"),
    *("changed_rows", "changed_bytes", "collected_values", "collected_bytes"),
    *("source_keys", "source_rows", "source_bytes", "source_file_bytes", "compared_rows"),
)
LIMITS = Limits()
