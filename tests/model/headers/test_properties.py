"""Each property of MODEL acts, or is refused by its name.

Tests ``model/headers/draft.py`` (properties said twice); ``model/headers/read.py`` (every
property); ``model/headers/values.py`` (values by type); and ``model/script/declaration.py`` (what a
script declares).
"""

from __future__ import annotations

import pytest

from penstock.model.headers.draft import Annotations
from penstock.model.headers.properties import KEYS, PROPERTIES, Property
from penstock.model.project.formatting import ORDER
from penstock.model.script.declaration import About, Declaration, Layout
from penstock.model.script.script import Setting
from penstock.model.values.asset import TableName
from penstock.model.values.data_test import AcceptedValuesTest, NotNullTest, UniqueTest
from penstock.model.values.schedule import Cadence
from tests.model.headers.reading import declared, found, read

#: kinds.md, "MODEL properties"
DOCUMENTED = """
    name kind cron cron_tz interval_unit start end allow_partials partitioned_by clustered_by
    columns audits depends_on dialect description column_descriptions grain grains references owner
    tags stamp enabled project physical_properties table_properties virtual_properties
    session_properties table_format storage_format gateway physical_version optimize_query
    validate_query ignored_rules formatting signals virtual_environment_mode grants
    grants_target_layer retention default_catalog
"""


def test_all_documented_properties_are_known() -> None:
    own = {
        "incremental",
        "late",
        "needs",
        "catchup",
        "blueprints",
    }  # besides; of SQLMesh on another page
    assert set(KEYS) == set(DOCUMENTED.split()) | own


@pytest.mark.parametrize("row", PROPERTIES, ids=lambda row: row.field)
def test_a_property_has_a_field_in_each_form(row: Property) -> None:
    read_only = {"", "enabled"}  # by a form alone, or for the reader
    if row.field not in read_only:
        row.value_in(declared("tags x"))  # raises AttributeError without it
    assert row.line is None or hasattr(Annotations(), row.line.field)


def test_each_property_that_is_written_has_its_place() -> None:
    written = [key for key, (_, form) in KEYS.items() if form.writer is not None]
    assert sorted(written) == sorted(ORDER)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("db.t", TableName("main", "db", "t")),
        ("t", TableName("main", "main", "t")),
        ("other.db.t", TableName("other", "db", "t")),
        ('"my db"."t"', TableName("main", "my db", "t")),
        ("'db.t'", TableName("main", "db", "t")),
    ],
)
def test_a_name_means_what_it_means_in_a_query(name: str, target: TableName) -> None:
    declaration, findings = read(f"MODEL (name {name}, kind FULL);\nSELECT 1")
    assert declaration is not None, findings
    assert declaration.target == target


def test_a_name_is_inferred_from_the_path() -> None:
    declaration, _ = read("MODEL (kind FULL);\nSELECT 1", parts=("marts", "daily"))
    assert declaration is not None
    assert str(declaration.target) == "main.marts.daily"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            (),
            "m.sql:1:1: error: the model has no name\n"
            "  → write name schema.table, or set infer_names in [project] of penstock.toml",
        ),
        (
            ("a", "b", "c", "d"),
            "m.sql:1:1: error: no name can be inferred: a/b/c/d is more than lake/schema/table\n"
            "  → write name schema.table",
        ),
        (
            ("nope", "b", "c"),
            "m.sql:1:1: error: lake `nope` does not exist\n  → known: main, other",
        ),
    ],
)
def test_a_name_that_cannot_be_inferred(parts: tuple[str, ...], said: str) -> None:
    _, findings = read("MODEL (kind FULL);\nSELECT 1", parts=parts)
    assert [str(finding) for finding in findings] == [said]


def test_a_model_that_is_not_enabled_is_said() -> None:
    declaration, findings = read("MODEL (name db.t, kind VIEW, enabled false);\nSELECT 1")
    assert declaration is None
    assert [str(finding) for finding in findings] == [
        "m.sql:1:30: warning: the model is not enabled, so nothing runs it\n  → write enabled true"
    ]


def cadence(**said: object) -> Cadence:
    return Cadence(**said)  # type: ignore[arg-type] # the fields are the tests' to name


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("cron '@hourly'", cadence(cron="@hourly")),
        ("cron @weekly", cadence(cron="@weekly")),
        ("cron '0 6 * * 1-5', cron_tz 'Europe/Berlin'",
         cadence(cron="0 6 * * 1-5", cron_tz="Europe/Berlin")),
        ("interval_unit Hour", cadence(interval_unit="hour")),
        ("interval_unit month, cron '@monthly'", cadence(interval_unit="month", cron="@monthly")),
        ("interval_unit month, allow_partials true",
         cadence(interval_unit="month", allow_partials=True)),
        ("start '2024-01-31'", cadence(start="2024-01-31")),
        ("start '1 year ago', end '2024-01-31 06:00:00'",
         cadence(start="1 year ago", end="2024-01-31 06:00:00")),
        ("start 1577836800000", cadence(start="1577836800000")),
    ],
)  # fmt: skip
def test_when_it_is_due(written: str, expected: Cadence) -> None:
    assert declared(written).cadence == expected


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("a", ("a",)),
        ("(a, b)", ("a", "b")),
        ("[year(d), \"my col\"]", ("year(d)", "my col")),
        ("months(d)", ("year(d)", "month(d)")),
        ("DATE_TRUNC('day', d)", ("year(d)", "month(d)", "day(d)")),
        ("bucket(id, 8)", ("bucket(8, id)",)),
    ],
)  # fmt: skip
def test_partition_keys(written: str, keys: tuple[str, ...]) -> None:
    layout = declared(f"partitioned_by {written}, clustered_by (x)").layout
    assert layout == Layout(keys, ("x",))


def test_what_people_are_to_know() -> None:
    about = declared(
        "description 'what it''s', column_descriptions (a = 'first', b = 'second'), owner jen, "
        "stamp v2, project demo, grains (a, (b, c)), references (x, (y, z))"
    ).about
    assert about == About(
        description="what it's",
        column_descriptions=(("a", "first"), ("b", "second")),
        owner="jen",
        stamp="v2",
        project="demo",
        grains=(("a",), ("b", "c")),
        references=(("x",), ("y", "z")),
    )
    assert declared("grain (a, b)").about.grains == (("a", "b"),)


def test_audits_are_data_tests() -> None:
    declaration = declared(
        "audits (NOT_NULL(columns := (a, b)), unique_values(columns := [a]), "
        "accepted_values(column := a, is_in := ('x', 'y')))"
    )
    assert declaration.data_tests == (
        NotNullTest(("a", "b")),
        UniqueTest(("a",), nulls_equal=True),
        AcceptedValuesTest("a", ("x", "y")),
    )
    places = [declaration.place(f"data_test:{number}") for number in range(3)]
    assert places == sorted(places, key=lambda place: place.column or 0)
    assert len(set(places)) == 3


def test_the_rest_of_what_acts() -> None:
    declaration = declared(
        "columns (a STRING, b DECIMAL(10, 2)), depends_on (x, db.y), dialect duckdb, "
        "session_properties ('spark.sql.shuffle.partitions' = 4), formatting false, "
        "storage_format parquet, table_format ducklake, validate_query true"
    )
    assert [(c.name, c.type, c.dialect) for c in declaration.columns] == [
        ("a", "STRING", "duckdb"),
        ("b", "DECIMAL(10, 2)", "duckdb"),
    ]
    assert [str(table) for table in declaration.depends_on] == ["main.x", "main.db.y"]
    assert declaration.dialect == "duckdb"
    assert declaration.settings == (Setting("spark.sql.shuffle.partitions", "4"),)
    assert not declaration.formatted


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "knd FULL",
            "4:3: error: `knd` is not a property of MODEL\n  → did you mean kind?",
        ),
        ("owner a, OWNER b", "4:12: error: the property `owner` is given twice\n  → keep one"),
        (
            "owner jen\n  tags a",
            "4:9: error: `jen\n  tags a` is not a text\n  → is a comma missing before `tags`?",
        ),
        (
            "cron '0 6 * *'",
            "4:8: error: `0 6 * *` is not a cron expression: Wrong number of fields\n"
            "  → write five fields, as '0 6 * * *', or one of @hourly, @daily, @midnight, "
            "@weekly, @monthly, @yearly, @annually",
        ),
        (
            "cron '*/2 * * * *'",
            "4:8: error: `*/2 * * * *` is more often than every 5 minutes\n"
            "  → write '*/5 * * * *'",
        ),
        (
            "cron_tz Nowhere",
            "4:11: error: `Nowhere` is not a time zone\n"
            "  → use an IANA name such as Europe/Paris",
        ),
        (
            "cron_tz 'Europe/Amsterdm'",
            "4:11: error: `Europe/Amsterdm` is not a time zone\n"
            "  → did you mean Europe/Amsterdam?",
        ),
        (
            "interval_unit week",
            "4:17: error: `week` is not one of its values\n"
            "  → the values are year, month, day, hour, half_hour, quarter_hour, five_minute",
        ),
        (
            "interval_unit month",
            "4:3: error: the interval_unit month is longer than what is between two runs of "
            "@daily\n  → write a shorter unit, or allow_partials true",
        ),
        ("end '2024-01-01'", "4:3: error: `end` needs `start`\n  → write start, or take end away"),
        (
            "start '2024-02-01', end '2024-01-31 12:00:00'",
            "4:23: error: `end` 2024-01-31 12:00:00 is before `start` 2024-02-01\n"
            "  → write an end that is not before start",
        ),
        (
            "depends_on (a, db.t)",
            "4:3: error: `depends_on` names the model's own table main.db.t\n"
            "  → take it away: a query may read it as it was",
        ),
        (
            "optimize_query maybe",
            "4:18: error: `maybe` is neither true nor false\n  → write true or false",
        ),
        (
            "start soon",
            "4:9: error: `soon` is not a moment\n"
            "  → write '2024-01-31', '2024-01-31 06:00:00', milliseconds or '1 year ago'",
        ),
        ("partitioned_by (a, A)", "4:18: error: `a` is named twice\n  → name each once"),
        (
            "partitioned_by to_char(d)",
            "4:18: error: a lake cannot be partitioned by `to_char(d)`\n  → write a column, "
            "year(column), month(column), day(column), hour(column) or bucket(8, column)",
        ),
        (
            "columns (a NOTATYPE)",
            "4:14: error: column a has the unknown type 'NOTATYPE'\n"
            "  → write a type such as BIGINT, DECIMAL(10, 2) or TIMESTAMP",
        ),
        (
            "columns (a INT, A INT)",
            "4:19: error: column A is declared twice\n  → keep one",
        ),
        (
            "audits (no_nulls)",
            "4:11: error: audit no_nulls does not exist\n"
            "  → did you mean not_null?",
        ),
        (
            "audits (not_null(column := a))",
            "4:30: error: `column` is not an option of the audit\n  → its options are columns, "
            "condition, blocking",
        ),
        (
            "audits (accepted_values(column := a))",
            "4:11: error: the audit needs `is_in`\n  → write accepted_values(is_in := ...)",
        ),
        (
            "dialect snowflake",
            "4:11: error: the dialect snowflake is not in this version\n"
            "  → translate the query once, with sqlglot: sqlglot.transpile(sql, read='snowflake', "
            "write='spark', pretty=True), write dialect spark, and compare the rows",
        ),
        (
            "dialect databricks",
            "4:11: error: the dialect databricks is not one of its values\n"
            "  → write dialect spark, which reads such queries",
        ),
        (
            "enabled maybe",
            "4:11: error: `maybe` is neither true nor false\n  → write true or false",
        ),
        (
            "grain a, grains (a, b)",
            "4:19: error: both `grain` and `grains` are given\n"
            "  → write grains (a, (b, c)) for several",
        ),
        (
            "session_properties ('shuffle.partitions' = 4)",
            "4:46: error: `shuffle.partitions` is not a setting of Spark\n"
            "  → name it in full, as 'spark.sql.shuffle.partitions'",
        ),
        (
            "storage_format orc",
            "4:18: error: `orc` is not the format of a lake's files\n"
            "  → write parquet, or take the property away",
        ),
        (
            "optimize_query false",
            "4:3: warning: `optimize_query` has no effect: queries go to Spark as they are "
            "written\n  → take it away",
        ),
        (
            "signals (ready())",
            "4:3: error: `signals` cannot be given: nothing waits for signals in this version\n"
            "  → use depends_on for tables",
        ),
        (
            "gateway prod",
            "4:3: error: `gateway` cannot be given: a lake is the first part of a model's name\n"
            "  → write name lake.schema.table",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong(written: str, said: str) -> None:
    assert found(written) == [f"m.sql:{said}"]


@pytest.mark.parametrize(
    "name",
    [
        *("physical_properties", "table_properties", "virtual_properties", "physical_version"),
        *("virtual_environment_mode", "grants", "grants_target_layer", "retention"),
        *("default_catalog", "signals", "gateway"),
    ],
)
def test_what_cannot_act_is_an_error_that_names_it(name: str) -> None:
    (said,) = found(f"{name} (x = 1)")
    assert said.startswith(f"m.sql:4:3: error: `{name}` cannot be given: ")


@pytest.mark.parametrize("kind", ["VIEW", "EMBEDDED"])
def test_descriptions_that_nothing_keeps_are_said(kind: str) -> None:
    said = found("column_descriptions (a = 'x')", kind)
    assert said == [
        f"m.sql:4:3: warning: `column_descriptions` has no effect: {kind} has no comments of "
        "them\n  → write it in `description`, or write kind FULL"
    ]


def test_a_moment_that_hangs_on_today_is_not_compared() -> None:
    assert not any("is before" in said for said in found("start '1 year ago', end '2024-01-01'"))


@pytest.mark.parametrize(
    ("kind", "written", "at"),
    [
        ("VIEW", "owner me, partitioned_by truncate(d)", "4:13"),
        ("EMBEDDED", "audits ()", "4:3"),
        ("SEED (path 'x.csv')", "owner me, retention 3", "4:13"),
    ],
)
def test_a_property_that_a_kind_does_not_have_is_named_at_its_place(
    kind: str, written: str, at: str
) -> None:
    kinds = f"with the kind {kind.partition(' ')[0]}"
    (said,) = (said for said in found(written, kind) if kinds in said)
    assert said.startswith(f"m.sql:{at}: error: ")


def test_it_means_what_annotations_mean() -> None:
    """The same definition in the other form leaves no slice stale."""
    declaration: Declaration = declared("owner x", "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a, b))")
    assert declaration.meaning == {
        "materialize": {
            "target_kind": "ducklake",
            "target_path": "main/db.t",
            "unique_key": "a,b",
        },
        "partition": None,
    }
