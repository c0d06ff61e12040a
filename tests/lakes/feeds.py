"""Change feeds of both, held side by side, and what differences of snapshots say that they are."""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.content import Content, content, of_duck

Bounds = tuple[int, int]
Net = Counter[tuple[int, str, str]]  # by snapshot, "come" or "gone", and row
FLUSH = "CALL ducklake_flush_inlined_data('lk')"
MERGE = "CALL ducklake_merge_adjacent_files('lk')"
REWRITE = "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)"


def sqlite_place(path: Path) -> Place:
    return Place(f"ducklake:sqlite:{path / 'meta.sqlite'}", f"{path}/data/")


def written(place: Place, statements: Iterable[str], *, inline: int = 0) -> None:
    """Run ``statements`` on DuckDB; ``{dir}`` in them is a directory to write to."""
    Path(place.data_path).mkdir(exist_ok=True)
    with duck.attach(place.uri, place.data_path, inline=inline) as connection:
        for statement in statements:
            connection.execute(statement.replace("{dir}", place.data_path))


def theirs(place: Place) -> Mapping[Bounds, Content]:
    """DuckDB's feeds of ``t``: of all snapshots, of halves, of a single one.

    Each is read whole: a filter on the snapshot makes 1.5.5 lose changes.
    """
    with duck.attach(place.uri) as connection:
        return {
            (first, last): of_duck(connection, f"FROM lk.table_changes('t', {first}, {last})")
            for first, last in _ranges(connection)
        }


def _ranges(connection: duckdb.DuckDBPyConnection) -> list[Bounds]:
    """Those that end where there is the table."""
    rows = connection.execute("SELECT snapshot_id FROM lk.snapshots() ORDER BY 1").fetchall()
    ids = [version for (version,) in rows]
    there = [version for version in ids if _is_there(connection, version)]
    first, last = ids[0], there[-1]
    early, middle, late = (there[len(there) * n // 4] for n in (1, 2, 3))
    return sorted({(first, last), (first, middle), (early, late), (middle, middle), (middle, last)})


def _is_there(connection: duckdb.DuckDBPyConnection, version: int) -> bool:
    try:
        connection.execute(f"SELECT 1 FROM t AT (VERSION => {version}) LIMIT 0")
    except duckdb.CatalogException:
        return False
    return True


def ours(lake: Lake, wanted: Iterable[Bounds]) -> Mapping[Bounds, Content]:
    """Penstock's feeds of ``t``, those with the same columns in one Spark job."""
    alike: dict[str, list[tuple[Bounds, DataFrame]]] = {}
    for bounds in wanted:
        df = lake.table("t").changes(*bounds)
        alike.setdefault(df.schema.simpleString(), []).append((bounds, df))
    contents: dict[Bounds, Content] = {}
    for group in alike.values():
        contents |= _collected(group)
    return contents


def _collected(group: Sequence[tuple[Bounds, DataFrame]]) -> Mapping[Bounds, Content]:
    tagged = [df.select(fn.lit(n).alias("_tag"), "*") for n, (_, df) in enumerate(group)]
    table = reduce(lambda a, b: a.union(b), tagged).toArrow()
    tags, rows = table.column("_tag").to_pylist(), table.drop_columns(["_tag"])
    return {
        bounds: content(rows.filter(pa.array([tag == n for tag in tags], pa.bool_())))
        for n, (bounds, _) in enumerate(group)
    }


def differences(place: Place) -> Net:
    """What each snapshot of ``t`` differs by from the one before, as DuckDB reads them.

    Rows are with their row ids; the columns stay the same, and all snapshots are there.
    """
    changes: Net = Counter()
    before: Counter[str] = Counter()
    with duck.attach(place.uri) as connection:
        (last,) = connection.execute("SELECT max(snapshot_id) FROM lk.snapshots()").fetchone() or ()
        for version in range(last + 1):
            there = _is_there(connection, version)
            query = f"SELECT rowid, * FROM t AT (VERSION => {version})"
            after = Counter(of_duck(connection, query).rows if there else ())
            changes.update({(version, "come", row): n for row, n in (after - before).items()})
            changes.update({(version, "gone", row): n for row, n in (before - after).items()})
            before = after
    return changes


_SIDES = {"insert": "come", "update_postimage": "come", "delete": "gone", "update_preimage": "gone"}


def net(feed: Content) -> Net:
    """A feed in the form of `differences`, without updates to the same values."""
    sides: dict[str, Counter[tuple[int, str]]] = {"come": Counter(), "gone": Counter()}
    for text in feed.rows:
        snapshot, row_id, kind, *values = literal_eval(text)
        sides[_SIDES[kind]][snapshot, repr((row_id, *values))] += 1
    by_kind = {"come": sides["come"] - sides["gone"], "gone": sides["gone"] - sides["come"]}
    return Counter(
        {(at, side, row): n for side, rows in by_kind.items() for (at, row), n in rows.items()}
    )


def within(changes: Net, bounds: Bounds) -> Net:
    return Counter({key: n for key, n in changes.items() if bounds[0] <= key[0] <= bounds[1]})
