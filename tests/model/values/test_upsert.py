"""``when_matched``, ``merge_filter`` and keys that are expressions: read and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.project.loader import load_models
from penstock.model.values.upsert import Matched, on_side
from tests.model.project.test_loader import LAKES, project

MODEL = "MODEL (name t, kind INCREMENTAL_BY_UNIQUE_KEY ({})); SELECT 1 AS id, 2 AS n"


def test_what_is_read(tmp_path: Path) -> None:
    kind = (
        "unique_key (id, COALESCE(n, 0)), merge_filter source.n > target.n, when_matched ("
        "WHEN MATCHED AND source.n IS NULL THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET target.n = CASE WHEN source.n > 1 THEN 1 ELSE 2 END, "
        "target.id = source.id)"
    )
    (model,) = load_models(project(tmp_path, models__t=MODEL.format(kind)), lakes=LAKES).models
    assert model.keys == ("id", "COALESCE(n, 0)")
    assert model.key_columns == ("id", "n")
    assert model.upsert.matched == (
        Matched("source.n IS NULL", ()),
        Matched(
            None,
            (("n", "CASE WHEN source.n > 1 THEN 1 ELSE 2 END"), ("id", "source.id")),
        ),
    )


def test_clauses_may_have_a_comma_between_and_no_brackets(tmp_path: Path) -> None:
    kind = "unique_key id, when_matched WHEN MATCHED THEN UPDATE SET target.n = source.n"
    (model,) = load_models(project(tmp_path, models__t=MODEL.format(kind)), lakes=LAKES).models
    assert model.upsert.matched == (Matched(None, (("n", "source.n"),)),)
    kind += ", target.id = source.id, merge_filter source.n > 1"
    (model,) = load_models(project(tmp_path, models__t=MODEL.format(kind)), lakes=LAKES).models
    assert model.upsert.matched == (Matched(None, (("n", "source.n"), ("id", "source.id"))),)
    assert model.upsert.merge_filter == "source.n > 1"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("unique_key (id +)", "cannot be read"),
        ("unique_key id, when_matched (MATCHED THEN DELETE)", "WHEN MATCHED is expected"),
        ("unique_key id, when_matched (WHEN NOT MATCHED THEN DELETE)", "NOT MATCHED cannot be"),
        ("unique_key id, when_matched (WHEN MATCHED THEN INSERT *)", "UPDATE SET or DELETE"),
        (
            "unique_key id, when_matched (WHEN MATCHED THEN UPDATE SET n = source.n)",
            "target.column",
        ),
        ("unique_key id, when_matched (WHEN MATCHED THEN UPDATE SET target.n = n)", "says no side"),
        ("unique_key id, when_matched (WHEN MATCHED AND THEN DELETE)", "an expression is expected"),
        ("unique_key id, when_matched (WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE)", "last"),
        ("unique_key id, merge_filter n > 1", "`n` says no side: write source.n or target.n"),
        ("unique_key id, merge_filter target.n > @start_ds", "@start_ds: no macro can stand in"),
    ],
)
def test_refused(tmp_path: Path, kind: str, message: str) -> None:
    root = project(tmp_path, models__t=MODEL.format(kind))
    (found,) = load_models(root, lakes=LAKES).errors
    assert message in found.message
    assert (found.location.line, found.hint is not None) == (1, True)


@pytest.mark.parametrize(
    ("kind", "at", "hint"),
    [
        ("unique_key id, when_matched (WHEN MATCHED THEN UPDATE SET *)", "*", "write WHEN MATCHED"),
        ("unique_key id, merge_filter n > 1", "n > 1", "write a condition"),
        ("unique_key (id +)", "(id +)", "write columns"),
    ],
)
def test_where_it_is_refused(tmp_path: Path, kind: str, at: str, hint: str) -> None:
    root = project(tmp_path, models__t=MODEL.format(kind))
    (found,) = load_models(root, lakes=LAKES).errors
    assert "at line" not in found.message
    assert found.location.column == MODEL.format(kind).index(at) + 1
    assert found.hint is not None
    assert found.hint.startswith(hint)


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_the_columns_of_a_side(dialect: str) -> None:
    assert on_side("COALESCE(a, b) + 1", "source", dialect) == "COALESCE(source.a, source.b) + 1"
    assert on_side("a", "target", dialect) == "target.a"
