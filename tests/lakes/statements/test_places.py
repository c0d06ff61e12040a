"""Errors are placed by the parsed statement, not by the first word that looks the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import LakeError, PenstockError, QueryFailed
from penstock.lakes.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Without Spark."""
    with Lake.attach(f"ducklake:sqlite:{tmp_path}/m.sqlite", data_path=f"{tmp_path}/d") as attached:
        attached.sql("CREATE TABLE kind (a INT,)")
        yield attached


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("ALTER TABLE kind DROP COLUMN kind", 30),
        ("ALTER TABLE kind RENAME COLUMN kind TO b", 32),
        ("ALTER TABLE kind ALTER COLUMN kind SET NOT NULL", 31),
        ("ALTER TABLE a.a DROP COLUMN b", 13),
        ("COMMENT ON COLUMN kind.kind IS 'x'", 24),
        ("INSERT INTO kind (kind) VALUES (1)", 19),
        ("ALTER TABLE kind SET PARTITIONED BY (kind)", 38),
        ("/* kind */ DROP VIEW kind", 22),
    ],
)
def test_places(lake: Lake, text: str, column: int) -> None:
    with pytest.raises(PenstockError) as caught:
        lake.sql(text)
    assert caught.value.message.endswith(f", at line 1:{column}"), str(caught.value)


def test_what_sql_refuses_is_an_error_of_the_lake(lake: Lake) -> None:
    with pytest.raises(LakeError) as caught:
        lake.sql("DROP TABLES kind")
    assert isinstance(caught.value, QueryFailed)


def test_a_comma_may_end_the_columns(lake: Lake) -> None:
    assert lake.table("kind").schema.names == ("a",)
    with pytest.raises(QueryFailed, match="a column is expected"):
        lake.sql("CREATE TABLE u (a INT,,)")
