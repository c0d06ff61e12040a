"""EMBEDDED models in their readers, and what the queries of EMBEDDED and VIEW cannot have."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.definition.model import Model
from penstock.model.project.loader import load_models
from penstock.model.query.render import trial_names
from penstock.model.script.sources import TableSource
from tests.model.project.test_loader import LAKES, project

EMBEDDED = "MODEL (name e, kind EMBEDDED);\nSELECT id, at FROM t WHERE id > 1"


def models(root: Path, **files: str) -> dict[str, Model]:
    named = {f"models__{name}": text for name, text in files.items()}
    return {m.name: m for m in load_models(project(root, **named), lakes=LAKES).models}


def test_the_query_stands_in_its_reader(tmp_path: Path) -> None:
    made = models(
        tmp_path,
        e=EMBEDDED,
        f="MODEL (name f, kind EMBEDDED);\nSELECT id FROM e",
        a="MODEL (name a, kind FULL);\nSELECT f.id FROM f JOIN u USING (id)",
    )
    query = made["a"].query
    assert [s.table.table for s in query.sources if isinstance(s, TableSource)] == ["t", "u"]
    names = trial_names(query.sources)
    text = query.render(names).sql
    assert "(SELECT id FROM (SELECT id, at FROM penstock_source_0_ AS t WHERE id > 1) AS e)" in text
    assert [str(table) for table in made["a"].reads] == ["main.f", "main.u", "main.t"]


@pytest.mark.parametrize("dialects", [("spark", "duckdb"), ("duckdb", "spark")])
def test_in_a_reader_of_another_dialect(tmp_path: Path, dialects: tuple[str, str]) -> None:
    inner, outer = dialects
    made = models(
        tmp_path,
        e=f"MODEL (name e, kind EMBEDDED, dialect {inner});\nSELECT id, id + 1 AS more FROM t",
        a=f"MODEL (name a, kind FULL, dialect {outer});\nSELECT more FROM e AS x WHERE x.id > 2",
    )
    query = made["a"].query
    text = query.render(dict.fromkeys(query.sources, "`view`")).sql
    assert "(SELECT id, id + 1 AS more FROM `view`" in text.replace("  ", " ")


def test_a_change_of_it_is_one_of_its_readers(tmp_path: Path) -> None:
    reader, other = "MODEL (name a, kind FULL);\nSELECT * FROM e", "MODEL (name b);\nSELECT 1 AS x"
    before = models(tmp_path, e=EMBEDDED, a=reader, b=other)
    after = models(tmp_path, e=EMBEDDED.replace("1", "2"), a=reader, b=other)
    changed = {
        name for name in before if before[name].definition_hash != after[name].definition_hash
    }
    assert changed == {"a", "e"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("(name x, kind EMBEDDED);\nSELECT * FROM x", "a query of the kind EMBEDDED reads itself"),
        ("(name x, kind EMBEDDED, audits (not_null(columns := id)));\nSELECT 1 AS id",
         "`audits` cannot be given with the kind EMBEDDED"),
        ("(name x, kind EMBEDDED, columns (id INT));\nSELECT 1 AS id",
         "`columns` cannot be given with the kind EMBEDDED"),
        ("(name x, partitioned_by id);\nSELECT 1 AS id",
         "`partitioned_by` cannot be given with the kind VIEW"),
        ("(name x, kind VIEW, clustered_by id);\nSELECT 1 AS id",
         "`clustered_by` cannot be given with the kind VIEW"),
        ("(name x);\nCREATE TEMP VIEW v AS SELECT 1 AS id;\nSELECT * FROM v",
         "a query of the kind VIEW cannot have temporary tables"),
        ("(name x);\nSET spark.sql.ansi.enabled = true;\nSELECT 1 AS id",
         "a query of the kind VIEW cannot have settings"),
        ("(name x, kind EMBEDDED);\nSELECT * FROM t WHERE at > @start_date",
         "a query of the kind EMBEDDED has no times of a run, and @start_date is one"),
        ("(name x);\nSELECT * FROM read_csv('a.csv')", "the query of a VIEW calls read_csv"),
        ("(name x);\nSELECT * FROM analytics.main.t",
         "the query of a VIEW reads analytics.main.t, which is in another lake than the view"),
        ("(name x);\nSELECT * FROM t AT (VERSION => 3)",
         "the query of a VIEW reads main.t at an earlier snapshot"),
        ("(name x, kind FULL);\nSELECT * FROM e AT (VERSION => 3)",
         "main.e is an EMBEDDED model, which has no snapshots"),
        ("(name x, dialect duckdb);\nSELECT * FROM e", "is written in spark"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, script: str, message: str) -> None:
    root = project(tmp_path, models__e=EMBEDDED, models__x=f"MODEL {script}")
    found = [f for f in load_models(root, lakes=LAKES).diagnostics if f.severity == "error"]
    assert len(found) == 1, found
    assert message in found[0].message
    assert found[0].location.line is not None


def test_arguments_are_refused(tmp_path: Path) -> None:
    script = "-- $day (date)\nMODEL (name x);\nSELECT $day AS d"
    root = project(tmp_path, models__x=script)
    found = load_models(root, lakes=LAKES).errors
    assert [f.message for f in found] == ["a query of the kind VIEW cannot have arguments"]


def test_a_materialized_view_is_warned_of(tmp_path: Path) -> None:
    script = "MODEL (name x, kind VIEW (materialized true));\nSELECT 1 AS id"
    found = load_models(project(tmp_path, models__x=script), lakes=LAKES).diagnostics
    assert [(f.severity, f.rule) for f in found] == [("warning", "model-idle")]
