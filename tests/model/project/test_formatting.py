"""Scripts in canonical spelling and in the other form: the same model, no comment lost.

Tests ``model/project/formatting.py`` (either form as the other).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.model.project.formatting import Script, comparable, rewritten
from penstock.model.project.loader import Place, read_declaration
from penstock.model.values.asset import Names

PATH = Path("models/t.sql")
PLACE = Place(Path(), Path("models"), Names(("main", "other")), "spark")


def script(text: str) -> Script:
    declaration, findings = read_declaration(text, PATH, PLACE)
    assert declaration is not None, findings
    return Script(text, declaration, "spark", lambda other: read_declaration(other, PATH, PLACE)[0])


HEADER = """\
-- what it is for
-- pipeline
#materialize   ducklake://main/s.t   key=a,"b c"  on_schema_change='sync'
-- on the whole one row per key
// data_test accepted_values a = x,  'y, z'
--tag heavy
-- $least (int) = 1

SELECT a, `b c` FROM r -- the end
"""
CANONICAL = """\
-- what it is for
-- pipeline
-- materialize ducklake://main/s.t key=a,"b c" on_schema_change=sync
-- on the whole one row per key
-- data_test accepted_values a = x, 'y, z'
-- tag heavy
-- $least (int) = 1

SELECT a, `b c` FROM r -- the end
"""
MODEL = """\
-- what it is for
MODEL (
  name main.s.t,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key (a, "b c"),
    on_destructive_change warn,
    on_additive_change warn
  ),
  tags (heavy),
  audits (
    accepted_values(column := a, is_in := ('x', 'y, z'))
  )
);
-- on the whole one row per key
-- $least (int) = 1
SELECT a, `b c` FROM r -- the end
"""


def test_annotations_in_canonical_spelling() -> None:
    assert rewritten(script(HEADER)) == CANONICAL
    assert rewritten(script(CANONICAL)) == CANONICAL


def test_annotations_as_a_model_and_back() -> None:
    assert rewritten(script(HEADER), "model") == MODEL
    back = rewritten(script(MODEL), "annotations")
    assert (
        back
        == """\
-- what it is for
-- pipeline
-- materialize ducklake://main/s.t key=a,"b c" on_schema_change=sync
-- tag heavy
-- data_test accepted_values a = x, 'y, z'
-- on the whole one row per key
-- $least (int) = 1
SELECT a, `b c` FROM r -- the end
"""
    )
    assert comparable(script(back).declaration) == comparable(script(HEADER).declaration)


def test_the_libraries_that_a_script_uses_stay() -> None:
    text = "-- materialize ducklake://main/s.t\n-- use macros/money\nSELECT 1 AS a\n"
    model = rewritten(script(text), "model")
    assert model.startswith("-- use macros/money\nMODEL (\n")
    back = rewritten(script(model), "annotations")
    assert "\n".join(line for line in back.split("\n") if line != "-- pipeline") == (
        "-- use macros/money\n-- materialize ducklake://main/s.t\nSELECT 1 AS a\n"
    )


@pytest.mark.parametrize(
    ("lines", "kind", "properties"),
    [
        ("time=ds", "time_column ds", ""),
        ("time=ds,%Y%m%d lookback=2", "time_column (ds, '%Y%m%d'),\n    lookback 2", ""),
        (
            'time="a b","%Y-%m-%d %H" batch_size=7\n-- partitioned hourly start="2026-01-01"',
            "time_column (\"a b\", '%Y-%m-%d %H'),\n    batch_size 7",
            ",\n  cron '@hourly',\n  start '2026-01-01'",
        ),
        ("time=\"to_date(a, 'x')\"", "time_column to_date(a, 'x')", ""),
    ],
)
def test_time_ranges_in_both_forms(lines: str, kind: str, properties: str) -> None:
    header = f"-- pipeline\n-- materialize ducklake://main/t {lines}\nSELECT 1 AS a\n"
    options = f"{kind},\n    on_additive_change warn"
    model = (
        "MODEL (\n  name main.main.t,\n  kind INCREMENTAL_BY_TIME_RANGE (\n"
        f"    {options}\n  ){properties}\n);\nSELECT 1 AS a\n"
    )
    assert rewritten(script(header), "model") == model
    assert rewritten(script(model), "annotations") == header
    assert rewritten(script(header)) == header


def test_a_model_in_canonical_form() -> None:
    text = """\
/* of the till */
model(NAME  s.t , -- the table
  -- how
  Kind incremental_by_unique_key( unique_key a ) -- by key
  , columns (
      a int, -- the key
      b text
  ),
  owner   'me' /* since 2024 */, Tags [ x,y ] -- last
  -- below
) ;
SELECT a,  b FROM r"""
    assert (
        rewritten(script(text))
        == """\
/* of the till */
MODEL (
  name s.t, -- the table
  -- how
  kind INCREMENTAL_BY_UNIQUE_KEY( unique_key a ), -- by key
  columns (
      a int, -- the key
      b text
  ),
  owner 'me', /* since 2024 */
  tags [ x,y ] -- last
  -- below
);
SELECT a,  b FROM r"""
    )


FULL = "MODEL (name s.t, kind FULL{});\nSELECT 1 AS a"


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        (
            FULL.format(", owner me, cron '@daily', tags (a, b)"),
            "annotations",
            "annotations cannot say several tags, cron, owner",
        ),
        (
            "MODEL (name t, kind INCREMENTAL_UNMANAGED (on_additive_change ignore));\nSELECT 1",
            "annotations",
            "annotations cannot say on_additive_change ignore with on_destructive_change error, "
            "forward_only, disable_restatement",
        ),
        (
            "MODEL (name t, kind INCREMENTAL_BY_PARTITION, partitioned_by a);\nSELECT 1 AS a",
            "annotations",
            "annotations cannot say kind INCREMENTAL_BY_PARTITION, partitioned_by",
        ),
        (
            "-- materialize ducklake://main/t\n-- partitioned daily\n-- retry 3\n"
            "-- data_test tests/x\nSELECT '{partition}' AS a",
            "model",
            "MODEL (...) cannot say partitioned, retry, data_test tests/x",
        ),
        (
            "-- materialize manual ducklake://main/t\nDELETE FROM t",
            "model",
            "MODEL (...) cannot say materialize manual",
        ),
        (
            "-- materialize ducklake://main/t history key=a\nSELECT 1 AS a",
            "model",
            "MODEL (...) cannot say materialize history",
        ),
        (
            FULL.format(" -- tag heavy\n"),
            "annotations",
            "the script would not say the same: tags would differ",
        ),
    ],
)
def test_what_the_other_form_cannot_say(text: str, form: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        rewritten(script(text), form)
    assert caught.value.message == said
    assert caught.value.location is not None


@pytest.mark.parametrize(
    "properties",
    [
        "kind FULL, dialect duckdb",
        "kind FULL, description 'it''s', owner 'a b', stamp v, project p, tags ('a b', c)",
        "kind FULL, column_descriptions (a = 'x, y', \"b c\" = z), grain (a, b), references (a)",
        "kind FULL, grains (a, (b, c)), cron '0 6 * * *', allow_partials true, start '2024-01-01'",
        'kind FULL, columns (a DECIMAL(10, 2), "b c" STRING), clustered_by (a, "b c")',
        "kind INCREMENTAL_BY_PARTITION, partitioned_by (a, months(d))",
        "kind INCREMENTAL_UNMANAGED (disable_restatement false, on_additive_change ignore)",
        "kind SCD_TYPE_2 (unique_key (id, lower(b)), valid_to_name until, time_data_type DATE)",
        "kind SCD_TYPE_2_BY_TIME (unique_key id, updated_at_as_valid_from true)",
        'kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns (a, "b c"), updated_at_name at)',
        "kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *, execution_time_as_valid_from true)",
        "kind FULL, depends_on (x, other.s.y), session_properties ('spark.a' = 'b c')",
        "kind INCREMENTAL_BY_TIME_RANGE (time_column (\"a b\", '%Y%m%d'), batch_size 3, "
        "lookback 2, partition_by_time_column false, auto_restatement_cron '@weekly'), "
        "cron '@hourly'",
        "kind INCREMENTAL_BY_TIME_RANGE (time_column to_date(a, 'x')), interval_unit hour",
        'kind FULL, formatting false, audits (not_null(columns := (a, "b c")))',
    ],
)
def test_what_model_text_says_reads_the_same(properties: str) -> None:
    from penstock.model.project.formatting import model_text

    before = script(f"MODEL (name other.s.t, {properties});\nSELECT 1 AS a").declaration
    after = script(f"{model_text(before)}\nSELECT 1 AS a").declaration
    assert comparable(after) == comparable(before)


@pytest.mark.parametrize(
    "options",
    [
        "key=a,b history track=c,d deletes=close",
        "key=a history on_schema_change=sync",
        "key=a history deletes=close max_closed=80",
        'key=a sequence="b c" deletes="d = \'D\'"',
    ],
)
def test_the_header_of_a_history_reads_the_same(options: str) -> None:
    from penstock.model.project.formatting import annotation_lines

    before = script(f"-- materialize ducklake://main/t {options}\nSELECT 1 AS a").declaration
    lines = "\n".join(annotation_lines(before))
    assert comparable(script(f"{lines}\nSELECT 1 AS a").declaration) == comparable(before)


TRIGGERS = """\
-- pipeline
-- materialize ducklake://main/s.t
#on  schedule  tz='Europe/Berlin'   cron='0 6 * * *'
-- on webhook debounce='5s' name="a/b"
-- on kafka topic=orders
-- on ducklake://main/u  debounce=60
// catchup  all   window=30d max=10

SELECT 1 AS a
"""


def test_triggers_are_written_in_one_spelling() -> None:
    text = rewritten(script(TRIGGERS))
    assert text.splitlines()[2:7] == [
        '-- on schedule cron="0 6 * * *" tz="Europe/Berlin"',
        "-- on webhook name=a/b debounce=5s",
        "-- on kafka topic=orders",
        "-- on ducklake://main/u debounce=60",
        "-- catchup all max=10 window=30d",
    ]
    assert rewritten(script(text)) == text
    with pytest.raises(InputError, match=r"MODEL \(...\) cannot say on"):
        rewritten(script(TRIGGERS), "model")


def test_catchup_is_written_in_both_forms() -> None:
    line = "-- catchup all max=10"
    header = f"-- pipeline\n-- materialize ducklake://main/s.t\n{line}\nSELECT 1 AS a\n"
    block = rewritten(script(header), "model")
    assert "catchup 'all max=10'" in block
    assert line in rewritten(script(block), "annotations").splitlines()
