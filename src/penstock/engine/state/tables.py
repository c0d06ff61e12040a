"""Define the state tables as this code expects them, and migrate a catalog to them.

Portable between SQLite and PostgreSQL: text, 64-bit integers, and times as ISO 8601 texts in UTC
with microseconds, which sort as they are. DuckDB ignores tables it does not know.

Migrations are numbered, and never changed once released. Each is written out on its own and uses
nothing of the tables above, which are as they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    text,
)

from penstock.errors import CatalogVersionUnsupported
from penstock.lake.catalog.database.engine import metadata_schema
from penstock.sql.identifiers import quote_identifier

METADATA = MetaData()


def _text(name: str, *, key: bool = False, null: bool = True) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=null and not key)


def _number(name: str, *, key: bool = False, null: bool = True) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=null and not key, autoincrement=False)


UNCOUNTED = -1  # in row_count, of a slice whose rows are not known apart from those of others
NONE_NEEDED = -1  # in made_in, of a slice that never had a row

META = Table("penstock_meta", METADATA, _text("key", key=True), _text("value", null=False))

RUN = Table(
    "penstock_run",
    METADATA,
    _text("run_id", key=True),
    _text("state", null=False),
    _text("partition_value"),
    _text("args", null=False),  # JSON
    _text("trigger_kind", null=False),
    _text("started_at", null=False),
    _text("finished_at"),
    _text("host", null=False),
    _number("pid", null=False),
    _text("process_started", null=False),
)

STEP = Table(
    "penstock_step",
    METADATA,
    _text("run_id", key=True),
    _text("step", key=True),
    _text("slice", key=True),
    _text("target", null=False),
    _text("state", null=False),
    _text("started_at", null=False),
    _text("finished_at"),
    _number("row_count"),
    _number("snapshot_id"),
    _text("reason"),
)

SLICE = Table(
    "penstock_slice",
    METADATA,
    _text("target", key=True),
    _text("slice", key=True),
    _text("run_id", null=False),
    _text("step", null=False),
    _text("strategy", null=False),
    _number("snapshot_id", null=False),
    _number("row_count", null=False),
    _text("fingerprint"),
    _text("definition_hash", null=False),
    _text("published_at", null=False),
    _text("slicing"),  # what a slice is (PartitionSpec.slicing); "" for a whole table
    _text("keys"),  # JSON: the columns that rows were merged by
    _text("inputs"),  # JSON: the snapshot of each table up to which its changes are in the slice
    _number("made_in"),  # the snapshot that made it, or NONE_NEEDED; NULL: it is snapshot_id
    _text("read_id"),  # in penstock_read; NULL in old records: not known
)

# What slices were made from; those that were made in one commit share a row.
READ = Table(
    "penstock_read",
    METADATA,
    _text("read_id", key=True),
    _text("target", null=False),
    _text("run_id", null=False),
    _text("lakes", null=False),  # JSON: the snapshot at which tables of each lake were read
    _text("inputs", null=False),  # JSON: tables and files, as `InputRead` says
    _text("arguments", null=False),  # JSON
    _text("tests", null=False),  # what its data tests are, as a hash
    _text("version", null=False),  # of Penstock
)

# Attempts that began before their slice was dropped no longer count; WHOLE stands for all slices
# of the target.
DROPPED = Table(
    "penstock_dropped",
    METADATA,
    _text("target", key=True),
    _text("slice", key=True),
    _text("dropped_at", null=False),
)

# When each table was last made from nothing, by the moments that runs were for.
BUILT = Table(
    "penstock_built",
    METADATA,
    _text("target", key=True),
    _text("built_at", null=False),
)

CHECK = Table(
    "penstock_check",
    METADATA,
    _text("run_id", key=True),
    _text("target", key=True),
    _text("slice", key=True),
    _number("position", key=True),  # of the test in its script
    _text("name", null=False),
    _number("passed", null=False),  # 0 or 1
    _number("failures", null=False),
    _text("samples", null=False),  # JSON
    _text("severity"),  # error or warn; NULL in old records: error
    _text("query"),  # of what fails; NULL in old records
    _text("checked_at", null=False),
)

SCHEMA_VERSION = Table(
    "penstock_schema_version",
    METADATA,
    _text("target", key=True),
    _number("version", key=True),
    _text("run_id", null=False),
    _number("snapshot_id", null=False),
    _text("columns", null=False),  # JSON
    _text("created_at", null=False),
    _text("lineage"),  # JSON: what each column derives from; NULL in old records
)


def to_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def to_moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


VERSION_KEY = "state_version"


def version_of(connection: Connection) -> int:
    """The version of the state tables; 0 when there are none.

    Raises CatalogVersionUnsupported when a newer Penstock made them.
    """
    # The inspector is the one place that does not put the metadata schema in on its own.
    places = connection.get_execution_options().get("schema_translate_map", {})
    if not inspect(connection).has_table(META.name, schema=places.get(None)):
        return 0
    recorded = connection.execute(select(META.c.value).where(META.c.key == VERSION_KEY)).scalar()
    version = int(recorded or 0)
    if version > len(MIGRATIONS):
        raise CatalogVersionUnsupported(
            f"the run state in this catalog has version {version}; this Penstock knows versions up "
            f"to {len(MIGRATIONS)}",
            hint="a newer Penstock has written it: upgrade this one",
        )
    return version


def migrate(connection: Connection) -> None:
    """Apply what is missing, in order. The caller's transaction makes it all or nothing."""
    version = version_of(connection)
    if version == len(MIGRATIONS):
        return
    if version == 0:
        META.create(connection, checkfirst=True)
    for apply in MIGRATIONS[version:]:
        apply(connection)
    connection.execute(delete(META).where(META.c.key == VERSION_KEY))
    connection.execute(insert(META).values(key=VERSION_KEY, value=str(len(MIGRATIONS))))


_FIRST = MetaData()


def _key(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _texts(*names: str, null: bool = False) -> tuple[Column[str], ...]:
    return tuple(Column(name, Text, nullable=null) for name in names)


def _version_of(name: str, *, key: bool = False, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=null, autoincrement=False)


_RUN = Table(
    "penstock_run",
    _FIRST,
    _key("run_id"),
    *_texts("state", "args", "trigger_kind", "started_at", "host", "process_started"),
    *_texts("partition_value", "finished_at", null=True),
    _version_of("pid"),
)
Index("penstock_run_state", _RUN.c.state)

_STEP = Table(
    "penstock_step",
    _FIRST,
    _key("run_id"),
    _key("step"),
    _key("slice"),
    *_texts("target", "state", "started_at"),
    *_texts("finished_at", "reason", null=True),
    _version_of("row_count", null=True),
    _version_of("snapshot_id", null=True),
)
Index("penstock_step_target", _STEP.c.target, _STEP.c.slice, _STEP.c.started_at)

Table(
    "penstock_slice",
    _FIRST,
    _key("target"),
    _key("slice"),
    *_texts("run_id", "step", "strategy", "definition_hash", "published_at"),
    *_texts("fingerprint", null=True),
    _version_of("snapshot_id"),
    _version_of("row_count"),
)

_CHECK = Table(
    "penstock_check",
    _FIRST,
    _key("run_id"),
    _key("target"),
    _key("slice"),
    _version_of("position", key=True),
    *_texts("name", "samples", "checked_at"),
    _version_of("passed"),
    _version_of("failures"),
)
Index("penstock_check_target", _CHECK.c.target, _CHECK.c.slice, _CHECK.c.checked_at)

Table(
    "penstock_schema_version",
    _FIRST,
    _key("target"),
    _version_of("version", key=True),
    *_texts("run_id", "columns", "created_at"),
    _version_of("snapshot_id"),
)


def first(connection: Connection) -> None:
    """Runs, their steps, slices, checks and schema versions."""
    _FIRST.create_all(connection, checkfirst=False)


_DEFINITIONS = MetaData()
_SLICE = "penstock_slice"
_COLUMNS = {"slicing": "TEXT", "keys": "TEXT", "made_in": "BIGINT"}

Table(
    "penstock_dropped",
    _DEFINITIONS,
    Column("target", Text, primary_key=True),
    Column("slice", Text, primary_key=True),
    Column("dropped_at", Text, nullable=False),
)


def definitions(connection: Connection) -> None:
    """Record what a slice was defined by, and which slices were dropped.

    Slices that were recorded before have NULL in the new columns: their definition is not known.
    """
    _add_columns(connection, _SLICE, _COLUMNS)
    _DEFINITIONS.create_all(connection, checkfirst=False)


def _add_columns(connection: Connection, name: str, columns: Mapping[str, str]) -> None:
    schema = metadata_schema(connection)
    parts = [part for part in (schema, name) if part is not None]
    table = ".".join(map(quote_identifier, parts))
    for column, kind in columns.items():
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column} {kind}"))


def severities(connection: Connection) -> None:
    """Add how a data test fails, and the query of its failures: NULL in results recorded before."""
    _add_columns(connection, "penstock_check", {"severity": "TEXT", "query": "TEXT"})


def lineages(connection: Connection) -> None:
    """Record what the columns of a version derive from: NULL in versions recorded before."""
    _add_columns(connection, "penstock_schema_version", {"lineage": "TEXT"})


def inputs(connection: Connection) -> None:
    """Up to which snapshots the changes of its inputs are in a slice: NULL in earlier records."""
    _add_columns(connection, _SLICE, {"inputs": "TEXT"})


_BUILT = MetaData()

Table(
    "penstock_built",
    _BUILT,
    Column("target", Text, primary_key=True),
    Column("built_at", Text, nullable=False),
)


def built(connection: Connection) -> None:
    """When tables were made from nothing: not known of those that were made before."""
    _BUILT.create_all(connection, checkfirst=False)


_READS = MetaData()

_READ = Table(
    "penstock_read",
    _READS,
    Column("read_id", Text, primary_key=True),
    *_texts("target", "run_id", "lakes", "inputs", "arguments", "tests", "version"),
)
Index("penstock_read_target", _READ.c.target)


def reads(connection: Connection) -> None:
    """Record what slices were made from: NULL, which is not known, in slices recorded before."""
    _READS.create_all(connection, checkfirst=False)
    _add_columns(connection, _SLICE, {"read_id": "TEXT"})


# Number n is the n-th.
MIGRATIONS: Sequence[Callable[[Connection], None]] = (
    first,
    definitions,
    severities,
    lineages,
    inputs,
    built,
    reads,
)
