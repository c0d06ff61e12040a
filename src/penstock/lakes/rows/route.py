"""Choose the way of a change of rows once, before a row is read, from what is known by then.

Whatever makes a table, its columns or a session one that Arrow may or may not handle is a fact
(`facts_of`). `route` is pure: the same change, facts and limits give the same way. What shows only
while files are read may still end a way early; the change then falls back to Spark. That is more
matches than the driver holds, keys that come twice, a value that Arrow does not compute, and what
footers say: columns of other types, days of another calendar, files of the source that are not as
its plan has them. To look at footers for facts would open each file of each change twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from penstock.lakes.format.files import ROW_ID_COLUMN, live_rows
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.limits import Limits
from penstock.lakes.reading.arrow_files import PLAIN, are_plain, reads_at_once, small_deletes
from penstock.lakes.reading.scan import Scan
from penstock.lakes.rows.change import Condition, Keys, RowChange
from penstock.lazy import pa


class Way(Enum):
    """The finder of the rows that change, and the writer of the new ones."""

    METADATA = "metadata only"
    DRIVER = "Arrow on the driver"
    KEYS = "keys by Arrow on the driver, rows by Spark"
    SPARK = "Spark"


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a change from the catalog, the types of the columns and the session.

    ``rows`` of the target's files count deleted ones too, ``live_rows`` do not. The flags are about
    the target, then the types of its columns, then what is done to it.
    """

    files: int = 0
    rows: int = 0
    live_rows: int = 0
    inlined: bool = False  # the catalog itself holds rows
    by_field_id: bool = True  # local files that have their columns by field ids
    small_deletes: bool = True  # the driver reads what is deleted already
    row_bytes: float = 0  # of a row in the files, compressed
    columns: int = 1
    staged: bool = False  # some files are this transaction's own
    fresh: bool = False  # rows of this transaction, without row ids yet
    flat: bool = True  # values of all columns are the same in Spark, in Arrow and in files
    readable: bool = True  # Arrow reads the whole table at once (`candidate.few_rows`)
    comparable: bool = True  # Arrow compares all columns as Spark does
    byte_keys: bool = True  # keys that are equal where their bytes are, in Arrow as in Spark
    fixed_keys: bool = True  # and of fixed width, so that their number says what they take
    computable: bool = True  # Arrow computes the condition and the new values as Spark does
    partitioned: bool = False  # new rows go to partitions that are found row by row
    mixed: bool = False  # of a slice: its files hold rows of others
    complete: bool = True  # the source has all columns of the target
    source_rows: int = -1  # not counted yet
    source_bytes: int = -1  # of all values, about
    streams: bool = True  # Arrow joins rows as they are read


def route(change: RowChange, facts: Facts, limits: Limits) -> Way:
    """The way of a change. A merge by any condition but equal keys is always Spark's."""
    if isinstance(change.match, Condition):
        return _by_condition(change, facts, limits)
    if isinstance(change.match, Keys):
        if is_large(facts, limits):
            return _into_large(facts, limits)
        simple = facts.complete and not (facts.mixed or facts.fresh)
        return Way.DRIVER if simple and facts.readable and facts.comparable else Way.SPARK
    return Way.SPARK


def changed_rows(facts: Facts, limits: Limits) -> int:
    """Return how many rows with new values the driver holds that Arrow computes, to write them."""
    return limits.partitioned_rows if facts.partitioned else limits.changed_rows


def collected_rows(facts: Facts, limits: Limits) -> int:
    """Return how many rows with new values the driver collects that Spark computes, to write them;
    none where only Spark writes their types.
    """
    if not facts.flat:
        return 0
    most = min(limits.collected_values // facts.columns, fitting_rows(facts, limits))
    return min(most, limits.partitioned_rows) if facts.partitioned else most


def fitting_rows(facts: Facts, limits: Limits) -> int:
    """Return how many rows, as wide as those of the files, the driver may collect."""
    return int(limits.collected_bytes / max(1.0, facts.row_bytes))


def facts_of(source: Scan, schema: TableSchema, *, partitioned: bool = False) -> Facts:
    """Return what is known of a target; of the change itself nothing yet, nor what only a merge
    asks.
    """
    files = source.files.files
    rows = sum(file.record_count for file in files)
    return Facts(
        files=len(files),
        rows=rows,
        live_rows=live_rows(files),
        inlined=source.files.inlined is not None,
        by_field_id=are_plain(source),
        small_deletes=small_deletes(source),
        row_bytes=sum(file.size_bytes for file in files) / max(1, rows),
        columns=len(schema.columns),
        partitioned=partitioned,
        staged=any(file.id is None for file in files),
        flat=is_flat(schema),
    )


def has_fresh(source: Scan) -> bool:
    """Return whether some rows were written by this transaction itself and have no id yet."""
    parts = () if source.files.inlined is None else source.files.inlined.parts
    return any(f.id is None and not f.has_row_ids for f in source.files.files) or any(
        id_ < 0 for part in parts for id_ in part.rows[ROW_ID_COLUMN].to_pylist()
    )


def is_flat(schema: TableSchema) -> bool:
    """Return whether its values are the same in Spark, in Arrow and in files."""
    return all(not c.children and base_type(c.type) in PLAIN for c in schema.columns)


def compares(kind: pa.DataType) -> bool:
    """Return whether values are equal in Arrow just where they are in Spark.

    Floating point has two zeros and many NaNs; what is nested may hold it.
    """
    tests = (
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
    )
    return any(test(kind) for test in tests)


def is_comparable(kind: pa.DataType) -> bool:
    """Return whether `merge_by_arrow.changed` compares columns of this type as
    Spark's hashes do.
    """
    return compares(kind) or is_float(kind)


def is_float(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind))


def is_large(facts: Facts, limits: Limits) -> bool:
    """Return whether a merge looks up the keys in the target first: Arrow does not read all of it
    at once, or to compare all rows costs more than all else (`is_sampled`).
    """
    rows, size = facts.live_rows, facts.rows * facts.row_bytes
    at_once = reads_at_once(rows, facts.files, size, limits)
    return not at_once or is_sampled(rows, limits)


def is_sampled(rows: int, limits: Limits) -> bool:
    """Return whether to read all columns of so many rows costs more than all else in a merge: some
    of the matches then say whether all of them change.
    """
    return rows > limits.compared_rows


def _by_condition(change: RowChange, facts: Facts, limits: Limits) -> Way:
    assert isinstance(change.match, Condition), "asked of others"
    if change.deletes and change.match.is_all:
        return Way.METADATA
    if not facts.files and not facts.inlined:
        return Way.METADATA
    scanned = facts.files <= limits.scanned_files and facts.rows <= limits.scanned_rows
    computed = facts.computable and (change.deletes or facts.flat)
    simple = facts.by_field_id and facts.small_deletes
    return Way.DRIVER if scanned and computed and simple else Way.SPARK


def _into_large(facts: Facts, limits: Limits) -> Way:
    most = limits.scanned_rows if facts.streams else limits.joined_rows
    fits = (
        facts.live_rows <= most
        and facts.files <= limits.scanned_files
        and facts.source_rows <= limits.source_keys
    )
    odd = facts.mixed or facts.inlined or facts.staged
    plain = facts.byte_keys and facts.by_field_id and facts.small_deletes and facts.complete
    if odd or not (fits and plain):
        return Way.SPARK
    whole = (  # the driver has the source's rows, too
        facts.comparable
        and not facts.partitioned
        and facts.source_rows <= limits.source_rows
        and facts.source_bytes <= limits.source_bytes
    )
    if whole:
        return Way.DRIVER
    return Way.KEYS if facts.fixed_keys else Way.SPARK
