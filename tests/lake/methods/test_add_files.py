"""Files that are added in the transaction that makes or alters their table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.lake.lake import Lake
from tests import duck


def test_to_a_table_of_the_same_transaction(tmp_path: Path) -> None:
    uri, file, more = (
        f"ducklake:sqlite:{tmp_path}/m",
        tmp_path / "a.parquet",
        tmp_path / "b.parquet",
    )
    pq.write_table(pa.table({"a": [1, 2], "s": ["x", "y"]}), file)
    pq.write_table(pa.table({"a": [3], "s": ["z"], "k": [5]}), more)
    with Lake.attach(uri, data_path=f"{tmp_path}/d") as lake:
        lake.sql("CREATE TABLE t (a BIGINT, s VARCHAR); INSERT INTO t VALUES (0, 'i')")
        lake.sql("BEGIN; CREATE TABLE u (a BIGINT, s VARCHAR); INSERT INTO u VALUES (0, 'i')")
        lake.sql(f"CALL ducklake_add_data_files('lake', 'u', '{file}', schema = 'main')")
        lake.sql("ALTER TABLE u RENAME s TO r; ALTER TABLE u ADD COLUMN d INT DEFAULT 3; COMMIT")
        lake.sql("BEGIN; ALTER TABLE t ADD COLUMN k BIGINT")
        lake.sql(f"CALL ducklake_add_data_files('lake', 't', '{more}'); COMMIT")
        lake.sql("BEGIN; CREATE OR REPLACE TABLE t (k BIGINT, a BIGINT, s VARCHAR)")
        lake.sql(f"CALL ducklake_add_data_files('lake', 't', '{more}'); COMMIT")
    assert duck.rows(uri, "SELECT * FROM u") == [(0, "i", 3), (1, "x", 3), (2, "y", 3)]
    assert duck.rows(uri, "SELECT * FROM t AT (VERSION => 4)") == [(0, "i", None), (3, "z", 5)]
    assert duck.rows(uri, "SELECT rowid, * FROM t WHERE k = 5") == [(0, 5, 3, "z")]
