"""Migrate the state tables: numbered migrations, which are never changed once released.

`migrate` takes a catalog to the version of this code. Each migration is written out on its own, and
uses nothing of ``tables``, which has the tables as they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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

from penstock.engine.state.tables import META
from penstock.errors import CatalogVersionUnsupported
from penstock.lake.catalog.database.engine import metadata_schema
from penstock.lake.catalog.database.sqlite_indexes import hide_indexes
from penstock.sql.identifiers import quote_identifier

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
    table = _named(connection, name)
    for column, kind in columns.items():
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column} {kind}"))


def _named(connection: Connection, table: str) -> str:
    schema = metadata_schema(connection)
    parts = [part for part in (schema, table) if part is not None]
    return ".".join(map(quote_identifier, parts))


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


_CLAIMS = MetaData()

_CLAIM = Table(
    "penstock_claim",
    _CLAIMS,
    _key("target"),
    _key("slice"),
    *_texts("run_id", "host", "process_started", "machine"),
    *_texts("user_name", "claimed_at", "expires_at"),
    _version_of("fence"),
    _version_of("pid"),
)
Index("penstock_claim_run", _CLAIM.c.run_id)


def claims(connection: Connection) -> None:
    """Slices that runs are making."""
    _CLAIMS.create_all(connection, checkfirst=False)


_RECORDED = MetaData()

Table(
    "penstock_definition",
    _RECORDED,
    _key("target"),
    _key("definition_hash"),
    *_texts("parts", "recorded_at"),
)


def recorded_definitions(connection: Connection) -> None:
    """Record definitions, to show what has changed: not known of those that ran before."""
    _RECORDED.create_all(connection, checkfirst=False)


def run_history(connection: Connection) -> None:
    """Record who ran what, and how it ended: NULL in runs recorded before. What lists runs and
    steps by their time has an index.
    """
    names = ("user_name", "plan", "retry_of")
    _add_columns(connection, "penstock_run", dict.fromkeys(names, "TEXT"))
    _add_columns(connection, "penstock_run", {"exit_code": "BIGINT"})
    indexes = (
        ("penstock_run", "started", "started_at"),
        ("penstock_step", "started", "target, started_at"),
        ("penstock_read", "run", "run_id"),
    )
    for table, name, columns in indexes:
        index = quote_identifier(f"{table}_{name}")
        on = _named(connection, table)
        connection.execute(text(f"CREATE INDEX {index} ON {on} ({columns})"))


def what_was_lacking(connection: Connection) -> None:
    """Record what slices were made without, and which snapshot dropped one: NULL where that is not
    known.
    """
    _add_columns(connection, "penstock_read", {"missing": "TEXT"})
    _add_columns(connection, "penstock_dropped", {"snapshot_id": "BIGINT"})


def environments(connection: Connection) -> None:
    """Record in which environment runs were: NULL, which is not known, in runs recorded before."""
    names = ("environment", "schema_suffix")
    _add_columns(connection, "penstock_run", dict.fromkeys(names, "TEXT"))


def settings_of_spark(connection: Connection) -> None:
    """Record the settings of Spark that decided what slices are: NULL in earlier records."""
    _add_columns(connection, "penstock_read", {"settings": "TEXT"})


def indexes_that_duckdb_leaves_out(connection: Connection) -> None:
    """Have DuckDB copy a SQLite catalog: it fails at the indexes of earlier migrations, and of
    earlier catalogs.
    """
    if connection.dialect.name == "sqlite":
        hide_indexes(connection)


# Number n is the n-th.
MIGRATIONS: Sequence[Callable[[Connection], None]] = (
    first,
    definitions,
    severities,
    lineages,
    inputs,
    built,
    reads,
    claims,
    recorded_definitions,
    run_history,
    what_was_lacking,
    environments,
    settings_of_spark,
    indexes_that_duckdb_leaves_out,
)
