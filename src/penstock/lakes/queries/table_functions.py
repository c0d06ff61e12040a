"""The lake's table functions, as in DuckDB: the change feed, and the catalog's content.

Each has a short name as a function of the lake (``table_changes('t', 1, 2)``), and one with
``ducklake_`` before it, which takes the lake's name (and for the feed the schema) first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from penstock.distribution import VERSION
from penstock.lakes.catalog import answers, options
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.files.feed import Bound
from penstock.lakes.format import objects
from penstock.lakes.format.conflicts import read_tokens
from penstock.lakes.format.naming import TableRef, quote_identifier
from penstock.lakes.reading import feed
from penstock.lakes.snapshot import At, Snapshot, moment
from penstock.sql.identifiers import FEEDS, PREFIX, dotted
from penstock.sql.lake_functions import Arguments, require_arguments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = (
    "data_file STRING, data_file_size_bytes LONG, data_file_footer_size LONG, "
    "data_file_encryption_key BINARY, delete_file STRING, delete_file_size_bytes LONG, "
    "delete_file_footer_size LONG, delete_file_encryption_key BINARY"
)
_OPTIONS = "option_name STRING, description STRING, value STRING, scope STRING, scope_entry STRING"
_SNAPSHOTS = (
    "snapshot_id LONG, snapshot_time TIMESTAMP, schema_version LONG, "
    "changes MAP<STRING, ARRAY<STRING>>, "
    "author STRING, commit_message STRING, commit_extra_info STRING"
)
_KINDS = ("schema", "table", "view", "scalar_macro", "table_macro")
_TABLES = (
    "table_name STRING, schema_id LONG, table_id LONG, table_uuid STRING, file_count LONG, "
    "file_size_bytes LONG, delete_file_count LONG, delete_file_size_bytes LONG"
)


@dataclass(frozen=True, slots=True)
class Place:
    """The context of a function call: the lake at a snapshot, and the schema of bare names."""

    spark: SparkSession
    catalog: Catalog
    snapshot: Snapshot
    schema: str
    zone: str


def call(name: str, place: Place, arguments: Arguments) -> DataFrame:
    """The rows of the function of this name, folded. Raises ArgumentError."""
    require_arguments(name, len(arguments.positional), arguments.named)
    if not name.startswith(PREFIX):
        return _ALL[name](place, arguments)
    short = name.removeprefix(PREFIX)
    rest = arguments.positional[1:]
    if short in FEEDS:
        schema = str(arguments.one(1, "schema"))
        place = Place(place.spark, place.catalog, place.snapshot, schema, place.zone)
        rest = arguments.positional[2:]
    return _ALL[short](place, Arguments(rest, arguments.named))


def _feed(read: Callable[..., DataFrame]) -> Callable[[Place, Arguments], DataFrame]:
    def rows(place: Place, arguments: Arguments) -> DataFrame:
        ref = _table(place, place.schema, str(arguments.one(0, "table")))
        bounds = [_bound(arguments.one(at, which), place) for at, which in _BOUNDS]
        return read(place.spark, place.catalog, ref, *bounds)

    return rows


def _table(place: Place, schema: str, name: str) -> TableRef:
    """A table of the schema, or ``schema.table``, unless a table has that whole name."""
    itself = place.catalog.find_table(schema, name, place.snapshot.id) is not None
    if itself or not dotted(name):
        return TableRef(schema, name)
    return TableRef.parse(name, default_schema=schema)


_BOUNDS = ((1, "from"), (2, "to"))


def _bound(value: Any, place: Place) -> Bound:
    return value if isinstance(value, int) else moment(value, place.zone)


def _only_rows(read: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    """``table_insertions`` has only the table's columns, without those of the feed."""

    def rows(*args: Any) -> DataFrame:
        df = read(*args)
        return df.drop(feed.SNAPSHOT_ID, feed.ROWID)

    return rows


def _list_files(place: Place, arguments: Arguments) -> DataFrame:
    named = arguments.named
    at = At(place.snapshot.id)
    if named.get("snapshot_version") is not None:
        at = At(version=int(named["snapshot_version"]))
    elif named.get("snapshot_time") is not None:
        at = At(timestamp=moment(named["snapshot_time"], place.zone))
    snapshot = place.catalog.snapshot(at)
    schema = str(named.get("schema") or place.schema)
    ref = _table(place, schema, str(arguments.one(0, "table")))
    table = place.catalog.table(ref.schema, ref.name, snapshot.id)
    files = place.catalog.files(table, snapshot.id).files
    return _frame(place, [astuple(file) for file in objects.listed(files)], _FILES)


def _options(place: Place, _: Arguments) -> DataFrame:
    with place.catalog.reading() as connection:
        stored = options.load_options(connection)
    rows = [(o.name, o.description, o.value, o.scope, o.entry) for o in stored]
    return _frame(place, rows, _OPTIONS)


def _snapshots(place: Place, _: Arguments) -> DataFrame:
    rows = [
        (
            *(s.id, s.time.astimezone(UTC), s.schema_version, changes_by_kind(s.changes)),
            *(s.author, s.message, s.extra),
        )
        for s in place.catalog.snapshots()
    ]
    return _frame(place, rows, _SNAPSHOTS)


def _table_info(place: Place, _: Arguments) -> DataFrame:
    with place.catalog.reading() as connection:
        rows = answers.table_sizes(connection, place.snapshot.id)
    return _frame(place, rows, _TABLES)


def _settings(place: Place, _: Arguments) -> DataFrame:
    catalog = place.catalog
    row = (catalog.kind, f"Penstock {VERSION}", catalog.data_path)
    return _frame(place, [row], "catalog_type STRING, extension_version STRING, data_path STRING")


def _frame(place: Place, rows: Sequence[tuple[Any, ...]], columns: str) -> DataFrame:
    return place.spark.createDataFrame([tuple(row) for row in rows], columns)


# DuckDB's names of the changes of a snapshot, by the catalog's names.
_CHANGES = {
    **{f"created_{kind}": f"{kind}s_created" for kind in _KINDS},
    **{f"dropped_{kind}": f"{kind}s_dropped" for kind in _KINDS},
    **{f"altered_{kind}": f"{kind}s_altered" for kind in _KINDS},
    "inserted_into_table": "tables_inserted_into",
    "deleted_from_table": "tables_deleted_from",
    "inline_flush": "flushed_inlined",
}
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def changes_by_kind(changes: str) -> dict[str, list[str]]:
    """The changes of a snapshot as DuckDB shows them: ``{'tables_created': ['main.t']}``."""
    by_kind: dict[str, list[str]] = {}
    for kind, names, number, _ in read_tokens(changes)[0]:
        quoted = [name if _PLAIN.fullmatch(name) else quote_identifier(name) for name in names]
        shown = str(number) if not names else names[0] if len(names) == 1 else ".".join(quoted)
        by_kind.setdefault(_CHANGES.get(kind, kind), []).append(shown)
    return by_kind


_FEEDS: Mapping[str, Callable[[Place, Arguments], DataFrame]] = {
    "table_changes": _feed(feed.changes),
    "table_insertions": _feed(_only_rows(feed.insertions)),
    "table_deletions": _feed(_only_rows(feed.deletions)),
}
_ALL: Mapping[str, Callable[[Place, Arguments], DataFrame]] = {
    **_FEEDS,
    "current_snapshot": lambda place, _: _frame(place, [(place.snapshot.id,)], "id LONG"),
    # The latest snapshot that this lake object made, or NULL, as in DuckDB.
    "last_committed_snapshot": lambda place, _: _frame(
        place, [(place.catalog.last_committed,)], "id LONG"
    ),
    "list_files": _list_files,
    "options": _options,
    "settings": _settings,
    "snapshots": _snapshots,
    "table_info": _table_info,
}
