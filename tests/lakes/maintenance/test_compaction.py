"""What others commit while files are compacted: inserts are no matter, deletes are a conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.errors import CommitConflict
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.maintenance.calls import CALLS
from penstock.lakes.maintenance.compaction import as_it_is
from penstock.lakes.maintenance.scope import Compacted
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import files_needed, on_disk, play

LAKE = (
    *("CREATE TABLE t(i INT)", "CREATE TABLE u(i INT)"),
    *(f"INSERT INTO {name} VALUES ({at}), ({at + 10})" for name in "tu" for at in range(3)),
)
SOME_GONE = "DELETE FROM {} WHERE i = 10"


class Raced:
    """A catalog in which others act just before its first commit."""

    def __init__(self, catalog: Catalog, act: Callable[[], None]) -> None:
        self._catalog, self._acts = catalog, [act]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit(self, *arguments: Any, **named: Any) -> Any:
        while self._acts:
            self._acts.pop()()
        return self._catalog.commit(*arguments, **named)


@dataclass
class _Lake:
    catalog: Any


def _raced(place: Place, name: str, *meanwhile: str, **arguments: Any) -> Any:
    with place.open() as catalog:
        raced = Raced(catalog, lambda: play(place, meanwhile))
        return CALLS[name].function(_Lake(raced), **arguments)


CALLED: tuple[tuple[str, tuple[str, ...], dict[str, float]], ...] = (
    ("merge_adjacent_files", (), {}),
    ("rewrite_data_files", ("t", "u"), {"delete_threshold": 0.0}),
)


@pytest.mark.parametrize(("name", "gone", "arguments"), CALLED)
def test_an_insert_meanwhile(place: Place, name: str, gone: Any, arguments: Any) -> None:
    play(place, [*LAKE, *map(SOME_GONE.format, gone)])
    before = on_disk(place)
    done = _raced(place, name, "INSERT INTO t VALUES (77)", **arguments)
    assert [result.table_name for result in done] == ["t", "u"]
    assert len(on_disk(place) - before) == 3  # the two and the insert's: nothing is written twice
    assert on_disk(place) >= files_needed(place)
    rows = {0, 1, 2, 11, 12} | {77} | (set() if gone else {10})
    assert {i for (i,) in duck.rows(place.uri, "SELECT i FROM t")} == rows
    ids = duck.rows(place.uri, "SELECT rowid FROM t")
    assert len(set(ids)) == len(ids) == len(rows)


@pytest.mark.parametrize(("name", "gone", "arguments"), CALLED)
def test_a_delete_meanwhile(place: Place, name: str, gone: Any, arguments: Any) -> None:
    """It says who did what, leaves nothing, and the other table is compacted all the same."""
    play(place, [*LAKE, *map(SOME_GONE.format, gone)])
    before = on_disk(place)
    said = "CALL lk.set_commit_message('ana', 'one too many')"
    delete = ("BEGIN", said, "DELETE FROM t WHERE i = 1", "COMMIT")
    with pytest.raises(
        CommitConflict, match=r"by ana.*'one too many'.*deleted rows of main.t"
    ) as e:
        _raced(place, name, *delete, **arguments)
    assert e.value.data["table"] == "main.t"
    assert e.value.data["tables_done"] == 1
    assert "1 of 2 are done" in str(e.value.hint)
    ours = {path for path in on_disk(place) - before if "/penstock-" in path}
    assert {path.rsplit("/", 2)[1] for path in ours} == {"u"}
    assert duck.rows(place.uri, "SELECT i FROM t WHERE i < 3") == [(0,), (2,)]


def test_a_table_dropped_meanwhile(place: Place) -> None:
    play(place, LAKE)
    with place.open() as catalog:
        table = catalog.table("main", "t", catalog.latest().id)
        play(place, ["DROP TABLE t"])
        assert as_it_is(catalog, table, catalog.latest()) is None
    with pytest.raises(CommitConflict, match=r"dropped main\.u"):
        _raced(place, "merge_adjacent_files", "DROP TABLE u")


def test_a_flush_of_one_table_that_cannot(place: Place) -> None:
    """A row that is deleted again and again keeps its own table from it, no other."""
    tables = ["CREATE TABLE t(i INT)", "CREATE TABLE u(i INT)"]
    play(place, [*tables, "INSERT INTO t VALUES (1), (2)", "INSERT INTO u VALUES (3)"], inline=5)
    with place.open() as catalog:
        raced = Raced(catalog, lambda: play(place, ["DELETE FROM t WHERE i = 1"], inline=5))
        flushed = CALLS["flush_inlined_data"].function(_Lake(raced))
    assert [(row.table_name, row.rows_flushed) for row in flushed] == [("t", 2), ("u", 1)]
    assert duck.rows(place.uri, "SELECT i FROM t") == [(2,)]
    assert on_disk(place) >= files_needed(place)


def test_merged_as_in_a_dry_run(place: Place) -> None:
    play(place, LAKE)
    with place.open() as catalog:
        run = CALLS["merge_adjacent_files"].function
        planned = [Compacted("main", "t", 3, 1), Compacted("main", "u", 3, 1)]
        assert run(_Lake(catalog), dry_run=True) == planned
        assert run(_Lake(catalog)) == planned
