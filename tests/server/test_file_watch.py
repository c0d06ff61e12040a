"""Files that are new or changed are seen, once each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.script.file_uris import partition_in
from penstock.scheduler.values import EventKind
from penstock.server.file_watch import FileChanges, FileWatch
from penstock.settings.config import Settings, load_settings
from tests import s3
from tests.engine.toy import write_project

DAYS = "exports/{partition}/x.csv"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(write_project(tmp_path / "p", {}))


def write(settings: Settings, name: str, text: str = "x") -> Path:
    path = settings.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def look(
    settings: Settings, patterns: Iterable[str], seen: Mapping[str, str] | None = None
) -> FileChanges:
    return FileWatch(settings).changes(patterns, seen or {})


def names(changes: FileChanges) -> list[tuple[str, str | None]]:
    assert len({event.id for event in changes.events}) == len(changes.events)
    return [(event.source, event.partition) for event in changes.events]


def test_files_of_a_new_pattern_are_no_events(settings: Settings) -> None:
    write(settings, "exports/2026-01-01/x.csv")
    before = look(settings, [DAYS])
    assert names(before) == []
    write(settings, "exports/2026-01-02/x.csv")
    after = look(settings, [DAYS, "exports/*/x.csv"], before.fingerprints)
    assert names(after) == [("exports/2026-01-02/x.csv", "2026-01-02")]
    assert names(look(settings, [DAYS, "exports/*/x.csv"], after.fingerprints)) == []


def test_a_pattern_may_name_nothing_yet(settings: Settings) -> None:
    before = look(settings, ["in/data.csv", DAYS])
    write(settings, "in/data.csv")
    write(settings, "exports/a/x.csv")
    write(settings, "exports/a/.hidden")
    write(settings, "exports/a/deeper/x.csv")
    after = look(settings, ["in/data.csv", DAYS], before.fingerprints)
    assert names(after) == [("exports/a/x.csv", "a"), ("in/data.csv", None)]


def test_an_event_has_the_fingerprint_of_its_file(settings: Settings) -> None:
    before = look(settings, ["data.csv"])
    path = write(settings, "data.csv", "four")
    os.utime(path, ns=(0, 5_000_000_000))
    (event,) = look(settings, ["data.csv"], before.fingerprints).events
    assert (event.id, event.kind) == ("asset:data.csv@4-5000000000", EventKind.ASSET)
    assert event.time.isoformat() == "1970-01-01T00:00:05+00:00"


def test_changes_by_size_and_time(settings: Settings) -> None:
    path = write(settings, "data.csv", "four")
    os.utime(path, ns=(0, 1))
    seen = look(settings, ["data.csv"]).fingerprints
    assert names(look(settings, ["data.csv"], seen)) == []
    os.utime(path, ns=(0, 2))
    changed = look(settings, ["data.csv"], seen)
    assert names(changed) == [("data.csv", None)]
    write(settings, "data.csv", "more")
    os.utime(path, ns=(0, 2))  # the same size and time: nobody can tell
    assert names(look(settings, ["data.csv"], changed.fingerprints)) == []


def test_a_file_that_was_removed_comes_back(settings: Settings) -> None:
    path = write(settings, "data.csv")
    stat = path.stat()
    seen = look(settings, ["data.csv"]).fingerprints
    path.unlink()
    gone = look(settings, ["data.csv"], seen)
    assert names(gone) == []
    os.utime(write(settings, "data.csv"), ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert names(look(settings, ["data.csv"], gone.fingerprints)) == [("data.csv", None)]


def test_directories_and_other_spellings(settings: Settings) -> None:
    seen = look(settings, [f"{settings.root}/in", "./in//"]).fingerprints
    write(settings, "in/a/b.csv")
    after = look(settings, ["in"], seen)
    assert names(after) == [("in/a/b.csv", None)]


def test_a_pattern_that_is_not_asked_for_is_forgotten(settings: Settings) -> None:
    seen = look(settings, ["data.csv"]).fingerprints
    write(settings, "data.csv")
    forgotten = look(settings, ["other.csv"], seen)
    assert names(look(settings, ["data.csv", "other.csv"], forgotten.fingerprints)) == []


def test_what_cannot_be_listed_stops_no_other(settings: Settings) -> None:
    before = look(settings, ["data.csv", "s3:///raw/x.csv", "ftp://h/x.csv"])
    assert set(before.errors) == {"s3:///raw/x.csv", "ftp://h/x.csv"}
    assert "names no bucket" in before.errors["s3:///raw/x.csv"]
    assert "are not watched" in before.errors["ftp://h/x.csv"]
    write(settings, "data.csv")
    assert names(look(settings, ["data.csv"], before.fingerprints)) == [("data.csv", None)]


@given(
    st.sampled_from(["in/{p}/x.csv", "in/d-{p}.csv", "{p}/{p}.csv", "s3://b/{p}/part-*.csv"]),
    st.text(st.characters(codec="utf-8", exclude_characters="/\\*?[]{}\n\x00"), min_size=1),
)
def test_the_partition_of_a_file_is_in_its_name(pattern: str, partition: str) -> None:
    name = pattern.replace("{p}", partition).replace("*", "7")
    assert partition_in(pattern.replace("{p}", "{partition}"), name) == partition


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("in/*.csv", "in/a.csv"),
        ("{partition}/{partition}.csv", "a/b.csv"),
        ("in/**/{partition}.csv", "in/x/a.csv"),
        ("in/{partition}", "in/a/b.csv"),
        ("in/{partition}.csv", "in/a.json"),
    ],
)
def test_no_partition(pattern: str, name: str) -> None:
    assert partition_in(pattern, name) is None


def test_files_in_s3(settings: Settings, tmp_path: Path) -> None:
    with s3.server(tmp_path, "watched") as store:
        lake = replace(settings.lakes["main"], data_path="s3://watched/lake/", storage=store)
        watch = FileWatch(replace(settings, lakes={"main": lake}))
        days, one = "s3://watched/raw/{partition}/x.csv", "s3a://watched/one.csv"
        seen = watch.changes([days, one], {}).fingerprints
        assert set(seen) == {days, "s3://watched/one.csv"}
        for name in ("raw/2026-01-01/x.csv", "raw/2026-01-01/y.csv", "one.csv"):
            path = tmp_path / "data" / "watched" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        after = watch.changes([days, one], seen)
        assert after.errors == {}
        assert names(after) == [
            ("s3://watched/one.csv", None),
            ("s3://watched/raw/2026-01-01/x.csv", "2026-01-01"),
        ]
        assert names(watch.changes([days, one], after.fingerprints)) == []
        watch.close()
