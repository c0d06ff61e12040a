"""The reference parser's 67 cases, and what is said about each line that it drops.

Tests ``model/headers/draft.py`` (declarations made twice).
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from penstock.errors import Diagnostic
from penstock.model.headers.annotation import declare, lines_of, parse
from penstock.model.headers.draft import Annotations
from penstock.model.headers.properties import KEYWORDS
from penstock.model.script.declaration import Declaration
from penstock.model.time.time_range import TimeColumn
from penstock.model.values.asset import Names
from penstock.model.values.schedule import Cadence

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "annotation_cases.jsonl").read_text().splitlines()
]
#: lines of the cases that are dropped or changed, in part or as a whole -> how grave that is
REPORTED = {
    "// pipelines": "warning",
    "import x\n# pipeline": "warning",
    "// on kafka topic": "warning",
    "// on amqp": "warning",
    "// on s3://a/{partition}/b\n// on s3://a/{partition}/b": "warning",
    "// partitioned Daily": "error",
    "// partitioned bogus\n// partitioned weekly": "warning",
    "// partitioned dynamic key=": "error",
    "// partitioned": "error",
    '// partitioned daily tz="unterminated': "warning",
    "// freshness 1 hour please": "warning",
    "// retry 0": "warning",
    "// retry 3.5": "warning",
    "// retry 4294967296": "warning",
    "// retry 3 delay=5s": "warning",
    "// trigger ALL": "warning",
    "// trigger any\n// trigger all": "warning",
    "// debounce\n// debounce 1m\n// debounce 5m": "warning",
    "// materialize ducklake://": "error",
    "// materialize ducklake://m/t key=id history track=a, b": "error",
    "// materialize ducklake://m/t key=": "error",
    "// materialize ducklake://m/t key=a key=b": "error",
    "// materialize ducklake://m/t append=true": "error",
    "// materialize ducklake://m/t appendix": "error",
    "// materialize notauri\n// materialize ducklake://m/ok": "warning",
    "// materialized ducklake://m/t": "error",
    "// data_test accepted_values s a": "error",
    "// data_test uniq id": "error",
    "// column a <- ducklake://m/t.c, bad, datatable://p/q.d": "warning",
    "// column a <- bad": "warning",
    "// use x": "warning",
    "/* pipeline */": "warning",
}


def test_there_are_67_cases() -> None:
    assert len(CASES) == 67
    assert set(REPORTED) <= {case["in"] for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["in"])
def test_agrees_with_the_reference(case: dict[str, object]) -> None:
    annotations, _ = parse(str(case["in"]))
    assert annotations.to_dict() == case["out"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["in"])
def test_reports_what_it_drops(case: dict[str, object]) -> None:
    text = str(case["in"])
    _, findings = parse(text, "m.sql")
    worst = max(
        (finding.severity for finding in findings), default=None, key=("warning", "error").index
    )
    assert worst == REPORTED.get(text)


@pytest.mark.parametrize("text", REPORTED)
def test_every_report_has_place_and_remedy(text: str) -> None:
    lines = text.split("\n")
    for finding in parse(text, "m.sql")[1]:
        assert finding.location.path == Path("m.sql")
        assert finding.location.line is not None
        assert finding.location.column is not None
        assert 1 <= finding.location.column <= len(lines[finding.location.line - 1])
        assert finding.hint
        assert finding.rule


def forms(findings: tuple[Diagnostic, ...]) -> list[str]:
    """The lines that hints tell the author to write."""
    hints = (re.fullmatch(r"(?:write|did you mean) `(.*)`\??", f.hint or "") for f in findings)
    return [hint[1] for hint in hints if hint]


@pytest.mark.parametrize("text", REPORTED)
def test_the_nearest_form_is_valid(text: str) -> None:
    for form in forms(parse(text)[1]):
        if form.startswith(("--", "//", "#")):
            annotations, findings = parse(form)
            assert annotations != Annotations()
            assert findings == ()


def test_findings_come_in_file_order() -> None:
    text = "-- retry 0\n-- materialize x\n-- tag a b\nSELECT 1\n-- pipeline\n"
    assert [f.location.line for f in parse(text)[1]] == [1, 2, 3, 5]


def test_places_say_where_each_keyword_stands() -> None:
    text = (
        "-- pipeline\n--   materialize ducklake://main/t\n-- on schedule\n-- data_test unique a\n"
    )
    places = parse(text, "m.sql")[0].places
    assert {name: (where.line, where.column) for name, where in places.items()} == {
        "pipeline": (1, 4),
        "materialize": (2, 6),
        "on:0": (3, 4),
        "data_test:0": (4, 4),
    }


def test_the_header_stops_at_the_first_code_line() -> None:
    annotations, findings = parse("-- pipeline\n\nSELECT 1;\n-- materialize ducklake://main/t\n")
    assert annotations.to_dict() == {"in_pipeline": True}
    assert [(f.severity, f.rule, f.location.line) for f in findings] == [
        ("error", "late-annotation", 4)
    ]


def test_a_shebang_is_passed_over() -> None:
    annotations, findings = parse("#!/usr/bin/env python\n# pipeline\n")
    assert annotations.in_pipeline
    assert findings == ()


def test_prose_is_no_annotation() -> None:
    prose = (
        "-- pipeline",
        "-- materialize ducklake://main/t",
        "--",
        "-- Columns follow the file; users and tags are kept as they come.",
        "-- `'{partition}'` is replaced with the run's partition value.",
        "-- A column is never dropped.",
        "-- $cutoff (date)",
        "-- --------------------",
    )
    assert parse("\n".join(prose))[1] == ()


def test_a_byte_order_mark_does_no_harm() -> None:
    assert parse("\ufeff-- pipeline")[0].in_pipeline


def test_every_keyword_is_documented_in_the_table() -> None:
    documented = {
        *("pipeline", "macros", "use", "on", "trigger", "partitioned", "materialize"),
        *("data_test", "column", "freshness", "debounce", "retry", "timeout", "tag"),
        *("incremental", "late", "needs", "catchup"),
    }
    assert set(KEYWORDS) == documented | {"dialect"}


@pytest.mark.parametrize("noise", ["", "\n\n", "-- ", "#", "//", "\x00", "-- \t", "--\tpipeline"])
def test_odd_text_is_no_accident(noise: str) -> None:
    parse(noise)


@pytest.mark.parametrize(
    ("line", "severity", "form"),
    [
        ("pipelines", "warning", "pipeline"),
        ("Pipeline", "warning", "pipeline"),
        ("pipeline:", "warning", "pipeline"),
        ("materialized ducklake://m/t", "error", "materialize ducklake://m/t"),
        ("Materialize ducklake://m/t append", "error", "materialize ducklake://m/t append"),
        ("materialise ducklake", "error", "materialize ducklake"),
        ("partition daily", "error", "partitioned daily"),
        ("partitionned weekly tz=UTC", "error", "partitioned weekly tz=UTC"),
        ("data-test unique id", "error", "data_test unique id"),
        ("data_tests f/tests/x", "error", "data_test f/tests/x"),
        ("freshnes 1h", "warning", "freshness 1h"),
        ("Retry 3", "warning", "retry 3"),
        ("ON schedule", "warning", "on schedule"),
        ("On ducklake://m/t", "warning", "on ducklake://m/t"),
        ("columns a <- ducklake://m/t.c", "warning", "column a <- ducklake://m/t.c"),
    ],
)
def test_a_keyword_nearly_right(line: str, severity: str, form: str) -> None:
    annotations, (finding,) = parse(f"-- {line}")
    assert annotations == Annotations()
    assert (finding.severity, finding.hint) == (severity, f"did you mean `-- {form}`?")


@pytest.mark.parametrize(
    "line",
    [
        "columns are taken as they are",
        "partition by day, later",
        "one row per order",
        "users of this table",
        "Materialized each night by the scheduler",
        "retries are cheap",
        "tags and colours",
        "data tests follow",
        "pipelines run at night",
        "",
    ],
)
def test_prose_stays_prose(line: str) -> None:
    assert parse(f"-- {line}") == (Annotations(), ())


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("materialize ducklake://m/t", "error"),
        ("partitioned daily", "error"),
        ("data_test unique id", "error"),
        ("pipeline", "warning"),
        ("on schedule", "warning"),
        ("column a <- ducklake://m/t.c", "warning"),
    ],
)
def test_an_annotation_below_the_code(line: str, severity: str) -> None:
    annotations, (finding,) = parse(f"SELECT 1;\n-- {line}")
    assert annotations == Annotations()
    assert (finding.severity, finding.location.line) == (severity, 2)


@pytest.mark.parametrize(
    "line", ["Materializes ducklake://m/u at night", "Partitioned daily by the clock of the port"]
)
@pytest.mark.parametrize("code", ["", "SELECT 1\n"])
def test_it_is_harmless_where_the_header_has_the_keyword(line: str, code: str) -> None:
    text = f"-- materialize ducklake://m/t\n-- partitioned daily\n{code}-- {line}"
    assert "error" not in {finding.severity for finding in parse(text)[1]}


@pytest.mark.parametrize(
    "line", ["on the other hand", "use a/b", "tag x", "column of text", "note"]
)
def test_prose_below_the_code(line: str) -> None:
    assert parse(f"SELECT 1\n-- {line}")[1] == ()


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        ("/* pipeline */", 1),
        ("/*\n * pipeline\n * materialize ducklake://m/t\n */\nSELECT 1", 1),
        ("/* copyright of someone */\nSELECT 1", 0),
        ("SELECT 1 /* pipeline */", 0),
    ],
)
def test_block_comments(text: str, reports: int) -> None:
    findings = parse(text)[1]
    assert [finding.rule for finding in findings] == ["block-comment"] * reports


def test_late_rows_are_made_by_each_run() -> None:
    annotations, findings = parse("-- pipeline\n-- late run\nSELECT 1")
    assert (annotations.late_run, findings) == (True, ())
    assert "late run" in lines_of(annotations)
    _, (finding,) = parse("-- pipeline\n-- late rows\nSELECT 1")
    assert "late run" in str(finding.hint)


PATH = Path("m.sql")


def read(options: str, partitioned: str = "") -> tuple[Declaration | None, list[str]]:
    lines = [f"-- materialize ducklake://main/t {options}"]
    lines += [f"-- partitioned {partitioned}"] if partitioned else []
    text = "\n".join([*lines, "SELECT 1 AS a"])
    annotations, findings = parse(text, PATH)
    declaration, found = declare(text, PATH, annotations, Names(("main",)), findings)
    return declaration, [f"{each.location.line}: {each.message}" for each in found]


@pytest.mark.parametrize(
    ("partitioned", "cadence", "unit"),
    [
        ("", Cadence(), "day"),
        ("daily", Cadence(), "day"),
        ('hourly start="2026-01-01"', Cadence("@hourly", start="2026-01-01"), "hour"),
        ('monthly tz="UTC" start="1 year ago"', Cadence("@monthly", start="1 year ago"), "month"),
    ],
)
def test_intervals_are_as_long_as_partitions(partitioned: str, cadence: Cadence, unit: str) -> None:
    declaration, findings = read("time=ts lookback=2 batch_size=7", partitioned)
    assert declaration is not None
    assert findings == []
    found = declaration.time_range
    assert found is not None
    assert (declaration.strategy.name, declaration.partition) == ("time_range", None)
    assert (found.column, found.lookback, found.batch_size) == (TimeColumn("ts"), 2, 7)
    assert (declaration.cadence, found.unit.name) == (cadence, unit)


@pytest.mark.parametrize(
    ("options", "partitioned", "said"),
    [
        ("time=ts key=a", "", "1: `time=` replaces the rows of a time range, which `key=` does"),
        ("time=ts append", "", "1: `time=` replaces the rows of a time range, which `append` does"),
        ("time=a,b,c", "", "1: `time=a,b,c` is not a column and its format"),
        ('time="a,%Y"', "", '1: `time="a,%Y"` is not a column and its format'),
        ("time=a,%q", "", "1: the format `%q` has `%q`"),
        ("time=ts lookback=0", "", "1: `lookback=0`: 0 is not a whole number from 1 on"),
        ("lookback=2", "", "1: `lookback=` means nothing without `time=`"),
        ("time=ts", "weekly", "2: `time=` has no intervals that are weekly"),
        ("time=ts", 'daily tz="Europe/Paris"', "2: `tz=` means nothing with `time=`"),
        ("time=ts", 'daily start="soon"', "2: start='soon' is not a moment"),
    ],
)
def test_what_does_not_go_with_time(options: str, partitioned: str, said: str) -> None:
    _, (found, *_) = read(options, partitioned)
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("ducklake:///t", "write materialize ducklake://main/t"),
        ("ducklake://main//t", "write materialize ducklake://main/t"),
        ("ducklake://t", "write materialize ducklake://main/t"),
        ("ducklake://main", "write materialize ducklake://main/table or"),
        ("ducklake://main/", "write materialize ducklake://main/table or"),
        ("ducklake://main/a.b.c", "write materialize ducklake://main/table or"),
    ],
)
def test_a_target_that_names_no_table(target: str, hint: str) -> None:
    text = f"-- materialize {target}\nSELECT 1 AS a"
    _, found = declare(text, PATH, parse(text, PATH)[0], Names(("main",)))
    assert found[0].hint is not None
    assert found[0].hint.startswith(hint)
