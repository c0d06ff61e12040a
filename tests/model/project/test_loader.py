"""Tests ``model/definition/build_model.py`` (rules of a declaration and its query together)."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.model.project.loader import Loaded, load_models

LAKES = ("main", "analytics")
STEP = "-- pipeline\n-- materialize ducklake://main/{}\n"


def project(root: Path, **files: str) -> Path:
    """A project whose files are named with ``__`` for a slash."""
    (root / "models").mkdir(exist_ok=True)
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def scan(root: Path, **files: str) -> Loaded:
    return load_models(project(root, **files), lakes=LAKES)


def rules(loaded: Loaded) -> list[tuple[str, str, int | None]]:
    return [(f.severity, f.rule, f.location.line) for f in loaded.diagnostics]


def test_models_are_named_by_their_path(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        models__raw__orders=STEP.format("orders_raw") + "SELECT 1 AS id",
        models__clean__orders=STEP.format("clean.orders key=id") + "FROM orders_raw",
    )
    clean, raw = load_models(root, lakes=LAKES).models
    assert (clean.name, raw.name) == ("clean/orders", "raw/orders")
    assert (str(clean.target), clean.strategy.name, clean.keys) == (
        "main.clean.orders",
        "merge",
        ("id",),
    )
    assert clean.reads == (raw.target,)
    assert clean.path == root / "models" / "clean" / "orders.sql"
    assert clean.warnings == ()


def test_inputs_are_reads_and_on(tmp_path: Path) -> None:
    text = (
        STEP.format("t")
        + "-- on ducklake://analytics/b\n-- on s3://x\n-- on schedule\nFROM a, main.b"
    )
    (model,) = load_models(project(tmp_path, models__t=text), lakes=LAKES).models
    assert [str(table) for table in model.inputs] == [
        "main.a",
        "main.b",
        "analytics.main.b",
    ]
    assert [str(table) for table in model.on] == ["analytics.main.b"]


def test_the_directory_and_the_default_lake_may_be_named(tmp_path: Path) -> None:
    root = project(tmp_path, steps__a="-- materialize ducklake://analytics/a\nFROM b")
    (model,) = load_models(root, lakes=LAKES, models_dir="steps", default_lake="analytics").models
    assert [str(table) for table in model.reads] == ["analytics.main.b"]


def test_a_project_without_models(tmp_path: Path) -> None:
    assert scan(tmp_path).models == ()
    with pytest.raises(ModelError, match="directory of models does not exist"):
        load_models(tmp_path, lakes=LAKES, models_dir="elsewhere").checked()


@pytest.mark.parametrize(
    ("header", "rule", "line"),
    [
        ("-- pipeline", "no-target", 1),
        ("-- pipeline\n-- materialize ducklake://main", "target", 2),
        ("-- materialize ducklake", "target", 1),
        ("-- materialize datatable://m/t", "target", 1),
        ("-- materialize ducklake://nope/t", "unknown-lake", 1),
        ("-- materialize ducklake://main/t history key=valid_to", "history-names", 1),
        ("-- materialize ducklake://main/t history key=a append", "history-append", 1),
        ("-- materialize manual ducklake://main/t history key=a", "history-manual", 1),
        ("-- materialize ducklake://main/t track=a", "history-option", 1),
        ("-- materialize ducklake://main/t deletes=close", "history-option", 1),
        ("-- materialize ducklake://main/t key=a history max_closed=9", "history-option", 1),
        ("-- materialize ducklake://main/t\n-- partitioned daily tz=Nowhere", "partition", 2),
        ("-- materialize ducklake://main/t\n-- partitioned daily start=soon", "partition", 2),
        ("-- materialize ducklake://main/t\n-- partitioned dynamic key=a", "partition", 2),
        ("-- materialize manual ducklake://main/t\n-- data_test unique a", "test-manual", 2),
        ("-- materialize ducklake://main/t\n-- data_test tests/no", "test-missing", 2),
        (
            "-- materialize ducklake://main/t\n-- data_test relationships a -> ducklake.b",
            "test-table",
            2,
        ),
        (
            "-- materialize ducklake://main/t\n-- data_test relationships a -> s3://x.b",
            "test-table",
            2,
        ),
        ("-- materialize ducklake://main/t\n-- on ducklake://nope/x", "unknown-lake", 2),
        ("-- materialize ducklake://main/t\n-- on ducklake://main", "on-table", 2),
        ("-- materialize ducklake://main/t appendix", "materialize-option", 1),
        ("-- materialized ducklake://main/t", "misspelt-keyword", 1),
        ("-- materialize orders", "dropped-materialize", 1),
        ("-- pipeline\n-- materialize orders", "dropped-materialize", 2),
    ],
)
def test_errors_of_headers(tmp_path: Path, header: str, rule: str, line: int) -> None:
    loaded = scan(tmp_path, models__t=f"{header}\nSELECT 1")
    assert [(f.rule, f.location.line) for f in loaded.errors] == [(rule, line)]
    assert loaded.models == ()
    assert loaded.diagnostics[0].hint


def test_history_says_everything_at_once(tmp_path: Path) -> None:
    text = "-- materialize scd2 ducklake://main/t\n-- partitioned daily\nSELECT 1"
    assert {found.rule for found in scan(tmp_path, models__t=text).errors} == {
        "history-key",
        "history-partitioned",
    }


def test_a_misspelt_lake_has_a_suggestion(tmp_path: Path) -> None:
    loaded = scan(tmp_path, models__t="-- materialize ducklake://analytic/t\nSELECT 1")
    assert loaded.errors[0].hint == "did you mean analytics?"


def test_all_findings_of_all_files_come_at_once(tmp_path: Path) -> None:
    loaded = scan(
        tmp_path,
        models__a=STEP.format("a") + "-- retry 0\nSELECT $x",
        models__b=STEP.format("b") + "SELECT 1; SELECT 2",
        models__c=STEP.format("c") + "-- tag a b\nSELECT 1",
    )
    assert [model.name for model in loaded.models] == ["c"]
    assert [(f.location.path, f.severity) for f in loaded.diagnostics] == [
        (tmp_path / "models" / "a.sql", "warning"),
        (tmp_path / "models" / "a.sql", "error"),
        (tmp_path / "models" / "b.sql", "error"),
        (tmp_path / "models" / "c.sql", "warning"),
    ]
    with pytest.raises(ModelError) as error:
        load_models(tmp_path, lakes=LAKES).checked()
    assert error.value.diagnostics == loaded.diagnostics


def test_warnings_stay_on_the_model(tmp_path: Path) -> None:
    text = STEP.format("t append key=id") + "INSTALL x;\nSELECT 1"
    (model,) = load_models(project(tmp_path, models__t=text), lakes=LAKES).models
    assert model.strategy.name == "append"
    assert [w.rule for w in model.warnings] == ["append-and-key", "ignored-statement"]


@pytest.mark.parametrize(
    "place", ["tests__sane", "models__tests__sane"], ids=["of the project", "of the models"]
)
@pytest.mark.parametrize("suffix", ["", ".sql"])
def test_custom_tests(tmp_path: Path, place: str, suffix: str) -> None:
    step = STEP.format("t") + f"-- partitioned daily\n-- data_test tests/sane{suffix}\nSELECT 1"
    test = "SELECT * FROM t JOIN other USING (id) WHERE d = '{partition}'"
    (model,) = load_models(project(tmp_path, models__t=step, **{place: test}), lakes=LAKES).models
    (script,) = model.test_scripts
    assert script.test.name == f"tests/sane{suffix}"
    assert [str(table) for table in script.query.reads] == ["main.t", "main.other"]
    assert [str(table) for table in model.test_reads] == ["main.other"]


@pytest.mark.parametrize(
    ("test", "rule"),
    [
        ("", "script-no-select"),
        ("SELECT 1; SELECT 2", "script-selects"),
        ("DELETE FROM t", "script-writes"),
        ("SELECT '{partition}'", "partition-token"),
    ],
)
def test_a_custom_test_is_one_select(tmp_path: Path, test: str, rule: str) -> None:
    step = STEP.format("t") + "-- data_test tests/sane\nSELECT 1"
    loaded = scan(tmp_path, models__t=step, tests__sane=test)
    assert [(f.rule, f.location.path.name) for f in loaded.errors] == [(rule, "sane.sql")]  # type: ignore[union-attr] # the loader gives paths


def test_a_partitioned_query_that_is_always_the_same(tmp_path: Path) -> None:
    head = STEP.format("t") + "-- partitioned daily\n"
    loaded = scan(tmp_path, models__t=f"{head}SELECT 1 -- '{{partition}}'")
    assert rules(loaded) == [("warning", "partition-unused", 3)]
    for used in ("'{partition}'", "$partition", "* FROM read_csv('{partition}')"):
        assert scan(tmp_path, models__t=f"{head}SELECT {used}").diagnostics == ()


def test_an_alias_that_was_never_attached(tmp_path: Path) -> None:
    text = STEP.format("b") + "SELECT * FROM dl.a"
    loaded = scan(tmp_path, models__a=STEP.format("a") + "SELECT 1", models__b=text)
    assert rules(loaded) == [("warning", "forgotten-alias", 3)]
    assert loaded.diagnostics[0].hint == "if dl is a lake: ATTACH 'ducklake://main' AS dl"


def test_files_that_are_no_steps(tmp_path: Path) -> None:
    loaded = scan(
        tmp_path,
        models__note="-- one row per order, on the whole\n-- tag it\nSELECT 1",
        models__library="-- macros\nCREATE MACRO f(a) AS a",
        models__empty="",
        models__misspelt="MODL (name db.t);\nSELECT 1",
        models__values="(SELECT 1)",
    )
    names = [Path(finding.location.path).stem for finding in loaded.diagnostics]
    assert list(zip(names, rules(loaded), strict=True)) == [
        ("misspelt", ("error", "model-ddl", 1)),
        ("note", ("warning", "no-header", 3)),
        ("values", ("warning", "no-header", 1)),
    ]


@pytest.mark.parametrize(
    ("name", "severity"), [("step.sh", "warning"), ("a/step.ts", "error"), ("step.SQL", "warning")]
)
def test_steps_in_other_languages_are_reported(tmp_path: Path, name: str, severity: str) -> None:
    path = project(tmp_path) / "models" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("// a step\n// pipeline\n// materialize ducklake://main/t\nprint(1)")
    assert rules(scan(tmp_path)) == [(severity, "not-sql", 2)]
    path.write_text("# pipeline of helpers\nprint(1)")
    assert rules(scan(tmp_path)) == []


def test_a_custom_test_among_the_models_is_taken(tmp_path: Path) -> None:
    step = STEP.format("t") + "-- data_test tests/sane\nSELECT 1"
    assert scan(tmp_path, models__t=step, models__tests__sane="SELECT 1").diagnostics == ()


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"-- pipeline \xe9"])
def test_a_file_that_is_no_text(tmp_path: Path, data: bytes) -> None:
    project(tmp_path)
    (tmp_path / "models" / "t.sql").write_bytes(data)
    assert rules(scan(tmp_path)) == [("error", "encoding", None)]


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    project(tmp_path)
    text = STEP.format("t") + "SELECT 1,\n $x"
    (tmp_path / "models" / "t.sql").write_bytes(
        b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    )
    (finding,) = scan(tmp_path).diagnostics
    assert (finding.location.line, finding.location.column) == (4, 2)


def test_cycles_and_double_targets_are_found(tmp_path: Path) -> None:
    loaded = scan(
        tmp_path,
        models__a=STEP.format("a") + "FROM b",
        models__b=STEP.format("b") + "FROM a",
    )
    assert [finding.rule for finding in loaded.diagnostics] == ["cycle"]
    doubled = scan(tmp_path, models__b=STEP.format("A") + "SELECT 1")
    assert [finding.rule for finding in doubled.diagnostics] == ["two-makers"]


def test_a_manual_step_may_write(tmp_path: Path) -> None:
    head = "-- materialize manual ducklake://main/t\n"
    text = f"{head}CREATE TABLE main.t AS SELECT 1; INSERT INTO t SELECT * FROM s"
    (model,) = load_models(project(tmp_path, models__t=text), lakes=LAKES).models
    assert (model.strategy.name, len(model.query.parts)) == ("manual", 2)
    assert [str(table) for table in model.reads] == ["main.t", "main.s"]


def test_the_example_is_clean() -> None:
    example = Path(__file__).parents[3] / "examples" / "flights"
    loaded = load_models(example, lakes=("main",))
    assert loaded.diagnostics == ()
    assert len(loaded.models) == 8


def test_a_declared_type_is_for_a_model_that_reads_its_own_table(tmp_path: Path) -> None:
    text = STEP.format("t append") + "-- column n BIGINT\nSELECT 1 AS n"
    assert rules(scan(tmp_path, models__t=text)) == [("warning", "column-type", 3)]
    assert scan(tmp_path, models__t=f"{text} FROM t").diagnostics == ()


def test_the_dialect_of_a_project(tmp_path: Path) -> None:
    text = "-- pipeline\n-- materialize ducklake://main/t\nSELECT l[-1] AS x FROM read_csv('a.csv')"
    own = text.replace("-- pipeline", "-- pipeline\n-- dialect spark")
    root = project(tmp_path, models__t=text, models__u=own.replace("main/t", "main/u"))
    first, second = load_models(root, lakes=LAKES, dialect="duckdb").models
    assert (first.query.dialect, second.query.dialect) == ("duckdb", "spark")


def test_a_model_is_the_same_in_either_form(tmp_path: Path) -> None:
    query = "SELECT 1 AS id"
    (one,) = load_models(
        project(tmp_path, models__t=f"-- materialize ducklake://main/s.t key=id\n{query}"),
        lakes=LAKES,
    ).models
    kind = "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)"
    (other,) = load_models(
        project(tmp_path, models__t=f"MODEL (name main.s.t, kind {kind}, owner me);\n{query}"),
        lakes=LAKES,
    ).models
    assert (one.name, one.target, one.strategy.name, one.keys) == (
        "t",
        other.target,
        "merge",
        ("id",),
    )
    assert one.definition_hash == other.definition_hash
    assert other.query.text == query


TIME = "MODEL (name t, start '2026-01-01', kind INCREMENTAL_BY_TIME_RANGE (time_column a));\n{}"
MERGE = (
    "MODEL (name t, cron '@hourly', start '2026-01-01', "
    "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key a, lookback 1));"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TIME.format("SELECT @start_date AS a"), []),
        (TIME.format("SELECT $partition_start AS a"), []),
        (
            TIME.format("SELECT DATE '2026-01-01' AS a"),
            ["the query is the same for every interval: it reads all of its input each time"],
        ),
        (f"{MERGE}\nSELECT @end_ts AS a", []),
        (
            f"{MERGE}\nSELECT 1 AS a",
            [
                "`lookback` has no effect: the query does not read by intervals",
            ],
        ),
        (
            "-- materialize ducklake://main/t\n-- partitioned daily\nSELECT @start_date AS a",
            [],
        ),
    ],
)
def test_what_is_said_of_intervals(tmp_path: Path, text: str, said: list[str]) -> None:
    loaded = scan(tmp_path, models__t=text)
    assert [finding.message for finding in loaded.diagnostics] == said
    (model,) = loaded.models
    assert (model.by_time is None) is ("lookback" in "".join(said) or model.partition is not None)


def test_names_are_inferred_where_the_project_wants_it(tmp_path: Path) -> None:
    root = project(tmp_path, models__marts__t="/* x */ MODEL (kind FULL);\nSELECT 1 AS id")
    (model,) = load_models(root, lakes=LAKES, infer_names=True).models
    assert (model.name, str(model.target)) == ("marts/t", "main.marts.t")
    (finding,) = load_models(root, lakes=LAKES).diagnostics
    assert finding.message == "the model has no name"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "SELECT 1;\nON_VIRTUAL_UPDATE_BEGIN;\nON_VIRTUAL_UPDATE_END;",
            "ON_VIRTUAL_UPDATE_BEGIN is not in this version",
        ),
        ("JINJA_QUERY_BEGIN;\nSELECT 1;\nJINJA_END;", "JINJA_QUERY_BEGIN is not in this version"),
        (
            "JINJA_STATEMENT_BEGIN;\n{% x %}; {{ y }}\nJINJA_END;\nSELECT 1;",
            "JINJA_STATEMENT_BEGIN is not in this version",
        ),
        ("SELECT 1;\nSET spark.a = 1;", "SET comes after the SELECT, and nothing may"),
        ("DELETE FROM t;\nSELECT 1;", "DELETE writes, and a managed script only reads"),
    ],
)
def test_statements_around_the_query_of_a_model(tmp_path: Path, code: str, said: str) -> None:
    loaded = scan(tmp_path, models__t=f"MODEL (name t, kind FULL);\n{code}")
    assert [finding.message for finding in loaded.errors] == [said]
