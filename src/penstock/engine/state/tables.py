"""The state tables as this code expects them, how they are created, and migrated from earlier ones.

Portable between SQLite and PostgreSQL: text, 64-bit integers, and times as ISO 8601 texts in UTC
with microseconds, which sort as they are. DuckDB ignores tables it does not know.

Create the state tables, and migrate those of an earlier version.

`migrate` takes a catalog to the version of this code. Reading does not migrate, so `reading`
understands the tables of the oldest version that is migrated, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sqlalchemy import Connection, Index, Table, delete, insert, inspect, select, text

from penstock.engine.state.agenda_tables import create_agenda
from penstock.engine.state.columns import METADATA
from penstock.engine.state.columns import number_column as _number
from penstock.engine.state.columns import text_column as _text
from penstock.errors import CatalogVersionUnsupported
from penstock.lakes.catalog.database.engine import metadata_schema
from penstock.lakes.catalog.database.sqlite_indexes import hide_indexes
from penstock.sql.identifiers import quote_identifier

UNCOUNTED = -1  # in row_count, of a slice whose rows are not known apart from those of others
NONE_NEEDED = -1  # in made_in, of a slice that never had a row
STAMP_BITS = 40  # so that the sum of millions of stamps has 64

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
    _text("user_name"),  # this and the next are NULL in old records: not known
    _number("exit_code"),  # NULL also of a run that has not ended
    _text("plan"),  # JSON, as `RecordedPlan` has it
    _text("retry_of"),  # the run whose plan it carries on with
    _text("environment"),  # its name; this and the next are NULL in old records: not known
    _text("schema_suffix"),  # behind the schemas of the tables that it makes; "" for none
)

Index("penstock_run_state", RUN.c.state)
Index("penstock_run_started", RUN.c.started_at)

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

Index("penstock_step_target", STEP.c.target, STEP.c.slice, STEP.c.started_at)
Index("penstock_step_started", STEP.c.target, STEP.c.started_at)
STEP_STATES = Index("penstock_step_state", STEP.c.state)

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
    _number("stamp"),  # drawn at random for each record; NULL in old records
)
# All but the stamp, in their order: what a record of a slice is read from.
SLICE_COLUMNS = tuple(column for column in SLICE.c if column.name != "stamp")
SLICE_STAMPS = Index("penstock_slice_stamp", SLICE.c.target, SLICE.c.stamp)

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
    _text("missing"),  # of its input, where the run was to do without
    _text("settings"),  # JSON: of Spark, as `SparkSettings.meaning` says; NULL: not known
)
Index("penstock_read_target", READ.c.target)
Index("penstock_read_run", READ.c.run_id)

# Definitions that slices were made by, by the hashes that their records have.
DEFINITION = Table(
    "penstock_definition",
    METADATA,
    _text("target", key=True),
    _text("definition_hash", key=True),
    _text("parts", null=False),  # JSON: texts by their names
    _text("recorded_at", null=False),
)

# Attempts that began before their slice was dropped no longer count; WHOLE stands for all slices
# of the target.
DROPPED = Table(
    "penstock_dropped",
    METADATA,
    _text("target", key=True),
    _text("slice", key=True),
    _text("dropped_at", null=False),
    _number("snapshot_id"),  # that dropped it; NULL where that is not known, or none was needed
)

# When each table was last made from nothing, by the moments that runs were for.
BUILT = Table(
    "penstock_built",
    METADATA,
    _text("target", key=True),
    _text("built_at", null=False),
)

# Slices that a run is making, held until ``expires_at`` by the clock of the database; WHOLE is the
# whole table. ``fence`` grows from claim to claim.
CLAIM = Table(
    "penstock_claim",
    METADATA,
    _text("target", key=True),
    _text("slice", key=True),
    _text("run_id", null=False),
    _number("fence", null=False),
    _text("host", null=False),
    _number("pid", null=False),
    _text("process_started", null=False),
    _text("machine", null=False),  # where the number of a process means that process
    _text("user_name", null=False),
    _text("claimed_at", null=False),
    _text("expires_at", null=False),
)
Index("penstock_claim_run", CLAIM.c.run_id)

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
Index("penstock_check_target", CHECK.c.target, CHECK.c.slice, CHECK.c.checked_at)

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


def settings_text(settings: Mapping[str, str]) -> str:
    """Settings of Spark as reads have them: equal texts for equal settings."""
    return json.dumps(dict(settings), sort_keys=True)


def to_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def to_moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


VERSION_KEY = "state_version"
VERSION = 16
OLDEST = 14  # of the versions that are migrated


def version_of(connection: Connection) -> int:
    """Return the version of the state tables; 0 where there are none.

    Args:
        connection: The catalog.

    Raises:
        CatalogVersionUnsupported: A newer Penstock made them, or one before the first release.
    """
    # The inspector is the one place that does not put the metadata schema in on its own.
    places = connection.get_execution_options().get("schema_translate_map", {})
    if not inspect(connection).has_table(META.name, schema=places.get(None)):
        return 0
    recorded = connection.execute(select(META.c.value).where(META.c.key == VERSION_KEY)).scalar()
    version = int(recorded or 0)
    if version > VERSION:
        raise CatalogVersionUnsupported(
            f"the run state in this catalog has version {version}; this Penstock knows versions up "
            f"to {VERSION}",
            hint="a newer Penstock has written it: upgrade this one",
        )
    if 0 < version < OLDEST:
        raise CatalogVersionUnsupported(
            f"the run state in this catalog has version {version}, of a Penstock before its first "
            f"release; this one migrates version {OLDEST}",
            hint="start a new catalog, or drop its tables penstock_*: the rows stay, and "
            "`penstock adopt` records them again",
        )
    return version


def migrate(connection: Connection) -> None:
    """Create the state tables, or bring them to this version.

    The caller's transaction makes it all or nothing.

    Args:
        connection: The catalog, in a transaction that writes.
    """
    version = version_of(connection)
    if version == VERSION:
        return
    if version == 0:
        METADATA.create_all(connection, checkfirst=True)
    else:
        for step in range(version, VERSION):
            _MIGRATIONS[step](connection)
    if connection.dialect.name == "sqlite":
        hide_indexes(connection)  # DuckDB fails at copying them
    connection.execute(delete(META).where(META.c.key == VERSION_KEY))
    connection.execute(insert(META).values(key=VERSION_KEY, value=str(VERSION)))


def _add_stamps(connection: Connection) -> None:
    """Add what tells whether slices were recorded again: NULL in records of before."""
    parts = [part for part in (metadata_schema(connection), SLICE.name) if part is not None]
    table, column = ".".join(map(quote_identifier, parts)), quote_identifier(SLICE.c.stamp.name)
    connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column} BIGINT"))
    SLICE_STAMPS.create(connection)
    STEP_STATES.create(connection)


# By the version that a migration begins with.
_MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {14: _add_stamps, 15: create_agenda}
