from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ArgumentError, PartitionError
from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script.arguments import bind
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import may_be, one_spelling, partition_of_a_file, path_of
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import Names

ROOT = Path("/project")


@pytest.mark.parametrize(
    ("written", "spelling"),
    [
        ("exports/x.json", "exports/x.json"),
        ("./exports//{partition}/../x.json", "exports/x.json"),
        ("/project/exports/x.json", "exports/x.json"),
        ("file:///project/exports/x.json", "exports/x.json"),
        ("/projects/x.json", "/projects/x.json"),
        ("s3a://Bucket/a//b", "s3://Bucket/a//b"),
        ("S3://b/x", "s3://b/x"),
        ("s3:///lake/x", "s3:///lake/x"),
    ],
)
def test_one_spelling(written: str, spelling: str) -> None:
    assert one_spelling(written, ROOT) == spelling


WRITTEN = "exports/{partition}/x.json"


@pytest.mark.parametrize(
    ("read", "may"),
    [
        (WRITTEN, True),
        ("exports/2026-01-01/x.json", True),
        ("exports/*/x.json", True),
        ("exports/**", True),
        ("exports/2026-*/{x,y}.json", True),
        ("exports/\x00/[xy].json", True),
        ("exports/{partition}/?.json", True),
        ("exports", False),
        ("exports/x.json", False),
        ("exports/2026/01/x.json", False),
        ("exports/{partition}/X.json", False),
        ("exports/{partition}/y*.json", False),
    ],
)
def test_what_is_read_may_be_what_is_written(read: str, may: bool) -> None:
    assert may_be(read, WRITTEN) is may


def test_a_query_reads_directories() -> None:
    assert may_be("exports", WRITTEN, directories=True)
    assert may_be("exports/*", WRITTEN, directories=True)
    assert not may_be("export", WRITTEN, directories=True)


DAILY = PartitionSpec("daily")

PATHS = [
    "'data/' || '{partition}' || '.csv'",
    "'data/' || $partition",
    "$partition",
    "['a.csv', '{partition}']",
    "('data/' || ('{partition}'))",
]


def path(call: str, partition: str | None = None, header: str = "", **values: str) -> object:
    """The path that a script with this call reads."""
    text = f"{header}\nSELECT * FROM read_csv({call})"
    query, findings = read_query(
        text, Path("q.sql"), names=Names(("main",)), kind=ScriptKind(partition=DAILY)
    )
    assert query is not None, findings
    arguments = bind(query.arguments, values, partition=partition)
    return path_of(query.files[0], Bindings(partition, arguments), query.arguments)


def test_a_plain_value_is_part_of_a_path() -> None:
    assert [path(call, "2026-05-16T09") for call in PATHS[:2]] == [
        "data/2026-05-16T09.csv",
        "data/2026-05-16T09",
    ]
    assert path("'data/*/' || '{partition}'", "eu west.1") == "data/*/eu west.1"


@pytest.mark.parametrize("call", PATHS)
@pytest.mark.parametrize(
    "value", ["*", "a?", "[ab]", "{a,b}", "../../x", "..", ".", "/etc/passwd", "a/b", "a\\b", "a\n"]
)
def test_a_partition_that_is_no_segment_is_refused(call: str, value: str) -> None:
    with pytest.raises(PartitionError, match="becomes part of a path") as error:
        path(call, value)
    assert str(error.value).startswith("q.sql:2:15: ")
    assert "'data/' || '{partition}'" in (error.value.hint or "")


def test_an_argument_is_a_segment_unless_it_is_its_own_default() -> None:
    header = "-- $file (text) = 'data/*.csv'\n-- $n (int) = 1"
    assert path("$file", header=header) == "data/*.csv"
    assert path("'x' || $file || $n", header=header, file="a", n="-7") == "xa-7"
    for value in ("../a", "data/a.csv", "*", ""):
        with pytest.raises(ArgumentError, match=r"argument file: .* becomes part of a path"):
            path("'x/' || $file", header=header, file=value)


@pytest.mark.parametrize(
    ("call", "partition"),
    [
        ("'in/' || '{partition}' || '.csv'", "2026-01-01"),
        ("'in/' || '{partition}'", "2026-01-01.csv"),
        ("'{partition}' || '/2026-01-01.csv'", "in"),
        ("'{partition}' || '/' || '{partition}'", None),
        ("'gone/' || '{partition}'", None),
        ("'*/' || '{partition}'", None),
        ("$partition", None),
        ("'in/a'", None),
    ],
)
def test_a_partition_that_leads_to_a_file(tmp_path: Path, call: str, partition: str | None) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/2026-01-01.csv").touch()
    text = f"SELECT '{{partition}}' FROM read_csv({call})"
    query, _ = read_query(
        text, Path("q.sql"), names=Names(("main",)), kind=ScriptKind(partition=DAILY)
    )
    assert query is not None
    assert partition_of_a_file(query.files[0].path, tmp_path) == partition


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("IDENTIFIER('csv.`' || '{partition}' || '`')", "cannot be computed by IDENTIFIER"),
        ("t, identifier($partition) AS x", "cannot be computed by IDENTIFIER"),
        ("t JOIN IDENTIFIER('a') USING (b)", "cannot be computed by IDENTIFIER"),
        ("csv.$partition", "an argument cannot be a table's name"),
    ],
)
def test_no_value_chooses_what_is_read(source: str, message: str) -> None:
    text = f"SELECT * FROM {source}"
    query, findings = read_query(
        text, Path("q.sql"), names=Names(("main",)), kind=ScriptKind(partition=DAILY)
    )
    assert query is None
    assert message in findings[0].message
    assert findings[0].location.column is not None
    assert findings[0].location.column > len("SELECT * FROM")
