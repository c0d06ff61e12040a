"""Transactions of a connection over real lakes. Rows written out as values need no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from dbt_common.events import get_event_manager
from dbt_common.events.base_types import EventMsg

from dbt.adapters.penstock.credentials import PenstockCredentials
from dbt.adapters.penstock.handle import Handle, Origin
from dbt.adapters.penstock.lakes import Lakes, lakes_of
from penstock.errors import CommitConflict, PenstockError, UnsupportedFeature
from penstock.lakes.lake import Lake
from penstock.settings.config import Settings


@pytest.fixture
def lakes(tmp_path: Path) -> Iterator[Lakes]:
    def at(name: str) -> dict[str, str]:
        catalog = f"ducklake:sqlite:{tmp_path / name}.sqlite"
        return {"catalog": catalog, "data_path": str(tmp_path / name)}

    found = Lakes(PenstockCredentials(**at("own"), lakes={"other": at("other")}))
    yield found
    found.close()


@pytest.fixture
def handle(lakes: Lakes) -> Handle:
    made = Handle(lakes)
    made.run("create table t (id bigint, name varchar)")
    return made


def rows(lake: Lake, table: str = "t") -> list[dict[str, object]]:
    return list(lake.table(table).to_arrow().to_pylist())


def test_a_statement_alone_is_a_snapshot_and_says_so(handle: Handle, lakes: Lakes) -> None:
    result = handle.run("/* dbt */ insert into t values (1, 'a'), (2, 'b');")
    latest = lakes.lake().snapshots()[-1]
    assert (result.response.rows_affected, result.response.code) == (2, "INSERT")
    assert str(result.response) == f"INSERT 2, snapshot {latest.id}"


def test_a_transaction_is_one_snapshot_that_names_its_node(handle: Handle, lakes: Lakes) -> None:
    before = len(lakes.lake().snapshots())
    handle.begin(Origin(message="model.shop.t", extra="{}"))
    first = handle.run("insert into t values (1, 'a')").response
    handle.run("comment on table t is 'orders'")
    assert rows(lakes.lake()) == []
    assert first.snapshot is None
    handle.commit()
    (made,) = lakes.lake().snapshots()[before:]
    assert (made.author, made.message, first.snapshot) == ("dbt", "model.shop.t", made.id)
    assert rows(lakes.lake()) == [{"id": 1, "name": "a"}]


def test_what_is_rolled_back_or_closed_leaves_nothing(handle: Handle, lakes: Lakes) -> None:
    before = len(lakes.lake().snapshots())
    for end in (handle.rollback, handle.close):
        handle.begin(Origin())
        handle.run("insert into t values (1, 'a')")
        end()
    assert len(lakes.lake().snapshots()) == before


def test_a_statement_that_fails_alone_leaves_no_transaction(handle: Handle, lakes: Lakes) -> None:
    with pytest.raises(PenstockError):
        handle.run("insert into nowhere values (1)")
    handle.run("insert into t values (1, 'a')")
    assert rows(lakes.lake()) == [{"id": 1, "name": "a"}]


def test_values_are_bound(handle: Handle, lakes: Lakes) -> None:
    handle.run("insert into t values (:p0, :p1)", {"p0": 1, "p1": "'); drop table t; --"})
    assert rows(lakes.lake()) == [{"id": 1, "name": "'); drop table t; --"}]


def test_a_statement_goes_to_the_lake_that_it_names_first(handle: Handle, lakes: Lakes) -> None:
    handle.begin(Origin())
    handle.run('create table "other"."main"."u" (id bigint)')
    handle.run("insert into other.main.u values (1)")
    handle.run("insert into lake.main.t values (2, 'b')")
    handle.commit()
    assert rows(lakes.lake("other"), "u") == [{"id": 1}]
    assert rows(lakes.lake()) == [{"id": 2, "name": "b"}]
    with pytest.raises(PenstockError, match="the profile has no lake 'third'"):
        lakes.lake("third")


def test_a_fence_lets_nobody_change_what_was_read(handle: Handle, lakes: Lakes) -> None:
    handle.begin(Origin())
    handle.fence("lake", '"main"."t"')
    handle.run("insert into t values (1, 'mine')")
    Handle(lakes).run("insert into t values (2, 'theirs')")
    with pytest.raises(CommitConflict):
        handle.commit()
    assert rows(lakes.lake()) == [{"id": 2, "name": "theirs"}]


def test_without_a_fence_two_appends_are_both_there(handle: Handle, lakes: Lakes) -> None:
    handle.begin(Origin())
    handle.run("insert into t values (1, 'mine')")
    Handle(lakes).run("insert into t values (2, 'theirs')")
    handle.commit()
    assert sorted(row["id"] for row in rows(lakes.lake())) == [1, 2]


def test_a_batch_waits_until_the_one_before_has_ended(handle: Handle, lakes: Lakes) -> None:
    for end in (handle.commit, handle.rollback, handle.close):
        assert handle.begin_batch("lake.main.t", "rows", None) is False
        next_batch = Thread(target=_replace_row, args=(lakes, 2))
        handle.begin(Origin())
        handle.fence("lake", '"main"."t"')
        handle.run("insert into t values (1, 'first')")
        next_batch.start()
        next_batch.join(0.2)
        assert next_batch.is_alive()
        end()
        next_batch.join(60)
        assert not next_batch.is_alive()
    assert sorted(row["id"] for row in rows(lakes.lake())) == [1, 2, 2, 2]


def test_a_batch_of_another_table_does_not_wait(handle: Handle, lakes: Lakes) -> None:
    handle.begin_batch("lake.main.u", "rows", None)
    _replace_row(lakes, 1)
    assert rows(lakes.lake()) == [{"id": 1, "name": "next"}]


def test_a_batch_whose_query_fails_lets_others_write(handle: Handle, lakes: Lakes) -> None:
    handle.begin_batch("lake.main.t", "rows", None)
    with pytest.raises(PenstockError):
        Handle(lakes).begin_batch("lake.main.t", "rows", "select * from nowhere")
    handle.close()
    _replace_row(lakes, 1)
    assert rows(lakes.lake()) == [{"id": 1, "name": "next"}]


def _replace_row(lakes: Lakes, key: int) -> None:
    other = Handle(lakes)
    other.begin_batch("LAKE.main.t", "rows", None)
    other.begin(Origin())
    other.fence("lake", '"main"."t"')
    other.run(f"insert into t values ({key}, 'next')")
    other.commit()


def test_projects_with_the_same_relative_catalog_have_a_lake_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        credentials = PenstockCredentials(catalog="ducklake:sqlite:lake.sqlite", data_path="data")
        Handle(lakes_of(credentials)).run(f"create table {name} (id bigint)")
    assert [table.name for table in lakes_of(credentials).lake().tables()] == ["two"]
    assert (tmp_path / "two" / "lake.sqlite").exists()


def test_a_catalog_that_does_not_exist_is_named_where_it_is_created(
    lakes: Lakes, tmp_path: Path
) -> None:
    events: list[EventMsg] = []
    callbacks = get_event_manager().callbacks
    callbacks.append(events.append)
    try:
        lakes.lake("other")
        lakes.lake("other")
    finally:
        callbacks.remove(events.append)
    catalog = f"ducklake:sqlite:{tmp_path / 'other'}.sqlite"
    (event,) = events
    assert f"the catalog {catalog} does not exist: it is created now" in event.info.msg


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select * from other.main.t", "cannot read other.main.t, which is in another lake"),
        ("select * from lake.main.v", "the view main.v would read itself"),
        ("select * from csv.`x` with ('header' = 'true')", "whose rows are files"),
    ],
)
def test_a_view_reads_its_own_lake(handle: Handle, query: str, said: str) -> None:
    with pytest.raises(UnsupportedFeature, match=said):
        handle.run(f"create or replace view lake.main.v as {query}")


def test_a_session_has_the_settings_of_a_project_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Settings] = []

    def open_session(settings: Settings, *_: object) -> str:
        opened.append(settings)
        return "session"

    monkeypatch.setattr("penstock.engine.session.open_session.open_session", open_session)
    catalog = f"sqlite:{tmp_path / 'meta.sqlite'}"
    lakes = Lakes(PenstockCredentials(catalog=catalog, data_path=str(tmp_path / "data")))
    assert lakes.session() == "session"
    (settings,) = opened
    assert (settings.name, settings.jobs, settings.lakes) == ("dbt", None, {})
