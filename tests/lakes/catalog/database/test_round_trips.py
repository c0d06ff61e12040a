"""Statements that go together do what they do one by one, on all three databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, bindparam, event, exc, select

from penstock.errors import RetriesExhausted
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.commits.retry import RetryPolicy
from penstock.lakes.catalog.commits.writes import BEGINNING
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.engine import begin_and_ask
from penstock.lakes.catalog.database.round_trips import (
    Query,
    ask,
    committing,
    pipelined,
    send,
    send_together,
)
from penstock.lakes.transaction import Transaction
from penstock.spark.session import source
from tests import duck
from tests.lakes.catalog import staging

IV = staging.columns(id="int64")
_C = t.metadata.c
_SCOPED = Query(
    select(_C.key, _C.value).where(_C.scope == bindparam("scope"), _C.key != "%").order_by(_C.key),
    {"scope": "test"},
)


def option(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": value, "scope": "test"}


def options(lake: Catalog) -> list[tuple[str, str]]:
    with lake.reading() as connection:
        scoped, _ = ask(connection, _SCOPED, BEGINNING)
        return [(key, value) for key, value in scoped]


def test_what_is_asked_together(lake: Catalog) -> None:
    """Times and flags come as SQLAlchemy gives them."""
    made = staging.create(lake, "t", IV)
    flags = Query(select(t.schema.c.path_is_relative, t.schema.c.schema_name))
    with lake.reading() as connection:
        (newest,), schemas = ask(connection, Query(reads.latest_query()), flags)
    assert tuple(newest)[:2] == (made.id, made.time)
    assert [tuple(row) for row in schemas] == [(True, "main")]


def test_changes_that_go_together(lake: Catalog) -> None:
    insert, c = t.metadata.insert(), t.metadata.c
    update = t.metadata.update().where(c.key == bindparam("its_key"))
    update = update.values({"value": bindparam("new")})
    delete = t.metadata.delete().where(c.key == bindparam("gone"))
    with lake.writing() as connection, pipelined(connection):
        send(connection, insert, [option("a", "1"), option("b%(x)s", "100%"), option("c", "3")])
    with lake.writing() as connection:
        send_together(
            connection,
            [
                (insert, [option("d", "%s"), option("e", "5")]),
                (update, [{"its_key": "a", "new": "7"}, {"its_key": "b%(x)s", "new": "8%"}]),
                (delete, [{"gone": "c"}]),
            ],
        )
    assert options(lake) == [("a", "7"), ("b%(x)s", "8%"), ("d", "%s"), ("e", "5")]
    many = [option(f"m{number}", "0") for number in range(100)]
    with lake.writing() as connection:
        send_together(connection, [(insert, many), (delete, [{"gone": "a"}])])
    assert len(options(lake)) == 103


def test_nothing_lands_behind_what_fails(lake: Catalog) -> None:
    """Not even where COMMIT was sent already; the connection is of use afterwards."""
    row = {"snapshot_id": 0, "snapshot_time": lake.latest().time, "schema_version": 0}

    def fail(connection: Connection) -> None:
        with (
            begin_and_ask(connection, _SCOPED) as (transaction, _answers),
            committing(connection),
        ):
            send(connection, t.metadata.insert(), [option("a", "1")])
            send(connection, t.snapshot.insert(), [row])
            send(connection, t.metadata.insert(), [option("b", "2")])
            transaction.commit()

    for _ in range(2):
        with lake._engine.connect() as connection, pytest.raises(exc.IntegrityError):
            fail(connection)
    assert options(lake) == []
    assert staging.create(lake, "t", IV).id == 1


@pytest.mark.postgres
def test_a_race_with_a_writer_that_takes_no_lock(postgres_uri: str, tmp_path: Path) -> None:
    """Its snapshot has the id that ours was to get: the commit is retried, and follows it."""
    conninfo = postgres_uri.removeprefix("ducklake:postgres:")
    times = [0]

    class Overtaken(psycopg.Cursor[Any]):
        def execute(self, query: Any, *args: Any, **more: Any) -> Overtaken:
            if str(query).startswith("WITH") and times[0] > 0:
                times[0] -= 1
                with psycopg.connect(conninfo) as other:
                    other.execute(
                        "INSERT INTO ducklake_snapshot SELECT max(snapshot_id) + 1, now(), "
                        "max(schema_version), max(next_catalog_id), max(next_file_id) "
                        "FROM ducklake_snapshot"
                    )
            return super().execute(query, *args, **more)

    def note(raw: Any, *_: object) -> None:
        raw.cursor_factory = Overtaken

    def append(number: int) -> int | None:
        transaction = Transaction(lake, source(None))
        transaction.table("t").append([{"id": number}])
        made = transaction.commit()
        return made.id if made else None

    quick = RetryPolicy(retries=3, wait=0.01)
    with Catalog.open(postgres_uri, data_path=str(tmp_path), retry=quick) as lake:
        staging.create(lake, "t", IV)
        event.listen(lake._engine, "checkout", note)
        times[0] = 1
        assert append(2) == 3
        times[0] = 4
        with pytest.raises(RetriesExhausted):
            append(3)
        assert (times[0], append(4)) == (0, 8)
    assert duck.rows(postgres_uri, "SELECT rowid, id FROM t") == [(0, 2), (1, 4)]
