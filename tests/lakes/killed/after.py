"""What Penstock makes of a lake whose writers were killed, in a process with Spark.

    python -m tests.lakes.killed.after URI DATA_PATH < ROWS

Reads ``t``, has maintenance remove the orphans, and reads it again. Ends with 1 where the rows are
not those that it was given, or where other files are gone than those that nothing refers to.
"""

from __future__ import annotations

import json
import sys

from penstock.lakes.lake import Lake
from penstock.lakes.maintenance.removal import NO_TABLE
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.replay import session
from tests.lakes.killed.acts import on_disk

_META = "__ducklake_metadata_lk"


def referred(place: Place) -> set[str]:
    """The names of the files that the catalog has; each is there once."""
    queries = (
        f"SELECT path FROM {_META}.ducklake_data_file",
        f"SELECT path FROM {_META}.ducklake_delete_file",
        f"SELECT path FROM {_META}.ducklake_files_scheduled_for_deletion",
    )
    with duck.attach(place.uri) as connection:
        rows = [row for query in queries for row in connection.execute(query).fetchall()]
    return {_name(path) for (path,) in rows}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def main(place: Place, rows: list[int]) -> int:
    needed = referred(place)
    files = on_disk(place)
    orphans = {path for path in files if _name(path) not in needed}
    problems = []
    spark = session()
    try:
        with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
            if sorted(row.id for row in lake.table("t").to_df().collect()) != rows:
                problems.append("Penstock reads other rows")
            if lake.delete_orphaned_files(cleanup_all=False):
                problems.append("files were removed that are not old")
            listed = lake.delete_orphaned_files(cleanup_all=True)
            # Of a table that was never made: nothing shows whose they are.
            left = {file.path for file in listed if file.left == NO_TABLE}
            there = on_disk(place)
            if there & orphans - left:
                problems.append(f"left over: {sorted(there & orphans - left)}")
            if files - orphans - there:
                problems.append(f"wrongly gone: {sorted(files - orphans - there)}")
            if sorted(row.id for row in lake.table("t").to_df().collect()) != rows:
                problems.append("Penstock reads other rows without the orphans")
    finally:
        spark.stop()
    if sorted(key for (key,) in duck.rows(place.uri, "SELECT id FROM t")) != rows:
        problems.append("DuckDB reads other rows without the orphans")
    print(f"{len(orphans)} orphans of {len(files)} files", *problems, sep="\n", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Place(*sys.argv[1:]), json.load(sys.stdin)))
