"""Which way a change of rows goes: decided once, before a row is read, from what is known by then.

Pure: the same change, facts and limits give the same way. What shows only while rows are read (more
matches than the driver keeps, keys that come twice, a value that Arrow does not compute) may still
have a way end early; the change then goes by Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from penstock.lake.limits import Limits
from penstock.lake.rows.change import Condition, Keys, RowChange


class Way(Enum):
    """Who finds the rows that change, and who writes the new ones."""

    METADATA = "metadata only"
    DRIVER = "Arrow on the driver"
    KEYS = "keys by Arrow on the driver, rows by Spark"
    SPARK = "Spark"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the catalog, the types of the columns and the session tell of a change.

    ``rows`` of the target's files count deleted ones too, ``live_rows`` do not. The flags are about
    the target, then the types of its columns, then what is done to it.
    """

    files: int = 0
    rows: int = 0
    live_rows: int = 0
    inlined: bool = False  # the catalog itself holds rows
    by_field_id: bool = True  # local files that have their columns by field ids
    staged: bool = False  # some files are this transaction's own
    fresh: bool = False  # rows of this transaction, without row ids yet
    flat: bool = True  # values of all columns are the same in Spark, in Arrow and in files
    readable: bool = True  # Arrow reads the whole table at once (`candidate.few_rows`)
    comparable: bool = True  # Arrow compares all columns as Spark does
    fixed_keys: bool = True  # keys of fixed width, equal where their bits are
    computable: bool = True  # Arrow computes the condition and the new values as Spark does
    partitioned: bool = False  # new rows go to partitions that are found row by row
    mixed: bool = False  # of a slice: its files hold rows of others
    complete: bool = True  # the source has all columns of the target
    source_rows: int = -1  # not counted yet
    streams: bool = True  # Arrow joins rows as they are read


def route(change: RowChange, facts: Facts, limits: Limits) -> Way:
    """The way of a change. A merge by any condition but equal keys is always Spark's."""
    if isinstance(change.match, Condition):
        return _by_condition(change, facts, limits)
    if isinstance(change.match, Keys):
        large = is_large(facts.live_rows, limits)
        return _into_large(facts, limits) if large else _into_small(facts)
    return Way.SPARK


def is_large(rows: int, limits: Limits) -> bool:
    """Whether to read all columns of so many rows costs more than all else in a merge."""
    return rows > limits.compared_rows


def _by_condition(change: RowChange, facts: Facts, limits: Limits) -> Way:
    assert isinstance(change.match, Condition), "asked of others"
    if change.deletes and change.match.is_all:
        return Way.METADATA
    if not facts.files and not facts.inlined:
        return Way.METADATA
    scanned = facts.files <= limits.scanned_files and facts.rows <= limits.scanned_rows
    computed = facts.computable and (change.deletes or facts.flat)
    simple = facts.by_field_id and not facts.inlined
    return Way.DRIVER if scanned and computed and simple else Way.SPARK


def _into_small(facts: Facts) -> Way:
    simple = facts.complete and not (facts.mixed or facts.fresh)
    return Way.DRIVER if simple and facts.readable and facts.comparable else Way.SPARK


def _into_large(facts: Facts, limits: Limits) -> Way:
    most = limits.scanned_rows if facts.streams else limits.joined_rows
    fits = (
        facts.live_rows <= most
        and facts.files <= limits.scanned_files
        and facts.source_rows <= limits.source_keys
    )
    odd = facts.mixed or facts.inlined or facts.staged
    if not (fits and facts.fixed_keys and facts.by_field_id and facts.complete) or odd:
        return Way.SPARK
    return Way.DRIVER if facts.comparable and not facts.partitioned else Way.KEYS
