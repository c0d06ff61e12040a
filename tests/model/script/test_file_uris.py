from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.script.file_uris import may_be, one_spelling

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
