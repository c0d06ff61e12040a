from __future__ import annotations

from pathlib import Path

import pytest

from penstock.dbt_import import seeds
from penstock.errors import ArgumentError
from tests.dbt_import.manifests import node


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2"], "BIGINT"),
        (["1", "2.5", "1e3"], "DOUBLE"),
        (["true", "FALSE"], "BOOLEAN"),
        (["2026-01-02"], "DATE"),
        (["2026-01-02 03:04:05", "2026-01-02"], "TIMESTAMP_NTZ"),
        (["2026-01-02", "soon"], "TEXT"),
        (["2026-01-02 03:04:05+01:00"], "TEXT"),
        ([], "TEXT"),
    ],
)
def test_a_type_is_that_of_all_values(values: list[str], kind: str) -> None:
    assert seeds.type_of(values) == kind


def test_columns_have_the_types_that_the_seed_says_or_its_values(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("\ufeffid;at;code\n1;2026-01-02;007\n2;;008\n", encoding="utf-8")
    seed = node("seed", "s", config={"delimiter": ";", "column_types": {"code": "varchar"}})
    assert seeds.columns_of(seed, path) == [("id", "BIGINT"), ("at", "DATE"), ("code", "varchar")]


def test_a_row_of_another_length_and_another_encoding_are_refused(tmp_path: Path) -> None:
    seed, path = node("seed", "s", config={}), tmp_path / "s.csv"
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ArgumentError, match="a row of 1 values below 2 names"):
        seeds.columns_of(seed, path)
    path.write_bytes("a\nü\n".encode("latin-1"))
    with pytest.raises(ArgumentError, match="cannot be read as UTF-8"):
        seeds.columns_of(seed, path)


def test_a_seed_without_its_file_or_a_header_is_refused(tmp_path: Path) -> None:
    seed = node("seed", "s", original_file_path="seeds/s.csv")
    with pytest.raises(ArgumentError, match="has no file"):
        seeds.path_of(seed, tmp_path)
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ArgumentError, match="has no header"):
        seeds.columns_of(seed, tmp_path / "empty.csv")
