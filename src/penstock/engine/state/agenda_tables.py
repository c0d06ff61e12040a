"""The tables of the scheduler's agenda: events, firings, and what is remembered between them.

They are in the catalog of the project's first lake. docs/adr/0035-serve.md says why.
"""

from __future__ import annotations

from sqlalchemy import Connection, Index, Table

from penstock.engine.state.columns import METADATA
from penstock.engine.state.columns import number_column as _number
from penstock.engine.state.columns import text_column as _text

EVENT = Table(
    "penstock_event",
    METADATA,
    _text("event_id", key=True),
    _text("kind", null=False),
    _text("source", null=False),
    _text("happened_at", null=False),
    _text("recorded_at", null=False),  # by the clock of the database, in the order of arrival
    _text("decided_at"),  # NULL until the event has outcomes
    _text("partition_value"),
    _text("payload"),  # JSON
    _number("snapshot_id"),
    _text("run_id"),
    _text("fire_time"),
    _number("depth", null=False),
    _text("models", null=False),  # JSON
    _text("backfill_id"),
    _text("user_name"),
)
Index("penstock_event_decided", EVENT.c.decided_at)

FIRING = Table(
    "penstock_firing",
    METADATA,
    _text("firing_id", key=True),
    _text("model", null=False),
    _text("slice_key", null=False),  # "" for the whole table
    _text("kind", null=False),
    _text("state", null=False),
    _text("fire_time", null=False),
    _text("payload"),  # JSON, as the other lists
    _text("events", null=False),
    _text("arrived", null=False),
    _text("missing", null=False),
    _text("ready_at"),
    _text("queued_at"),
    _text("started_at"),
    _text("finished_at"),
    _number("depth", null=False),
    _text("models", null=False),
    _text("backfill_id"),
    _text("reason"),
    _text("host"),  # this and the next three are of the process that runs it
    _number("pid"),
    _text("process_started"),
    _text("machine"),
    _text("heartbeat_at"),
)
Index("penstock_firing_state", FIRING.c.state)
Index("penstock_firing_slice", FIRING.c.model, FIRING.c.slice_key)
Index("penstock_firing_finished", FIRING.c.finished_at)
Index("penstock_firing_backfill", FIRING.c.backfill_id, FIRING.c.state)

OUTCOME = Table(
    "penstock_outcome",
    METADATA,
    _text("event_id", key=True),
    _text("model", key=True),  # "" for an event that concerns no model
    _text("outcome", null=False),
    _text("firing_id"),
    _text("reason"),
)

# Up to which snapshot a reader has seen a source. All rows of a lake move in one statement.
POSITION = Table(
    "penstock_position",
    METADATA,
    _text("reader", key=True),
    _text("source", key=True),  # the full name of a table, folded
    _text("lake", null=False),
    _number("snapshot_id", null=False),
    _text("moved_at", null=False),
)

# Files that models wait for, as they were listed last.
FILE = Table(
    "penstock_file",
    METADATA,
    _text("file_key", key=True),  # a pattern, and a name that it stands for
    _text("fingerprint", null=False),
)

SCHEDULE = Table(
    "penstock_schedule",
    METADATA,
    _text("model", key=True),
    _text("expression", null=False),
    _text("zone", null=False),
    _text("since", null=False),
)

FRESHNESS = Table(
    "penstock_freshness",
    METADATA,
    _text("model", key=True),
    _text("slice_key", key=True),
    _number("attempts", null=False),
    _text("fired_at", null=False),
)

# Slices that are past their freshness, by those who were told of them.
LATE_NOTICE = Table(
    "penstock_late_notice",
    METADATA,
    _text("recipient", key=True),
    _text("model", key=True),
    _text("slice_key", key=True),
    _text("told_at", null=False),
)

PAUSE = Table(
    "penstock_pause",
    METADATA,
    _text("selector", key=True),
    _text("since", null=False),
    _text("until"),
    _text("reason"),
    _text("user_name"),
)

TOKEN = Table(
    "penstock_token",
    METADATA,
    _text("token_id", key=True),
    _text("name", null=False),  # of messages, or "*"
    _text("token_hash", null=False),  # SHA-256, in hex
    _text("created_at", null=False),
    _text("revoked_at"),
    _text("user_name"),
)
Index("penstock_token_name", TOKEN.c.name)

# A released lease stays, and has ended: its fence must grow.
LEASE = Table(
    "penstock_lease",
    METADATA,
    _text("name", key=True),
    _text("holder", null=False),
    _text("host", null=False),
    _number("pid", null=False),
    _text("process_started", null=False),
    _text("machine", null=False),
    _number("fence", null=False),
    _text("expires_at", null=False),
)

BACKFILL = Table(
    "penstock_backfill",
    METADATA,
    _text("backfill_id", key=True),
    _text("model", null=False),
    _text("first", null=False),
    _text("last", null=False),
    _text("state", null=False),
    _text("created_at", null=False),
    _text("finished_at"),
    _text("user_name"),
)

AGENDA_TABLES = (
    EVENT,
    FIRING,
    OUTCOME,
    POSITION,
    FILE,
    SCHEDULE,
    FRESHNESS,
    LATE_NOTICE,
    PAUSE,
    TOKEN,
    LEASE,
    BACKFILL,
)


def create_agenda(connection: Connection) -> None:
    """Create the tables of the agenda in a catalog that has none of them.

    Args:
        connection: The catalog, in a transaction that writes.
    """
    METADATA.create_all(connection, tables=AGENDA_TABLES, checkfirst=True)
