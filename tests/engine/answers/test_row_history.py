"""Versions of a row are told from the images of its changes. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.engine.answers.row_history import Image, RowVersion, read_key, versions_of
from penstock.engine.results import SnapshotInfo
from penstock.errors import ArgumentError

AT = datetime(2026, 1, 2, tzinfo=UTC)

A, B = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}


def test_a_row_comes_changes_and_goes() -> None:
    images = [Image(5, False, B), Image(2, True, A), Image(4, True, B), Image(4, False, A)]
    assert versions_of(images, {}, {4: ("r1", "orders")}) == (
        RowVersion(2, None, "inserted", A),
        RowVersion(4, None, "updated", B, ("v",), "r1", "orders"),
        RowVersion(5, None, "deleted", B),
    )


def test_what_is_written_again_as_it_was_is_no_version() -> None:
    assert versions_of([Image(3, False, A), Image(3, True, A)], {}, {}) == ()
    several = [Image(3, True, A), Image(3, True, A), Image(3, False, A)]
    assert [each.change for each in versions_of(several, {}, {})] == ["inserted"]


def test_a_row_that_is_older_than_the_first_snapshot() -> None:
    known = {id_: SnapshotInfo("main", id_, AT, "", None, None, None) for id_ in (3, 4)}
    images = [Image(3, True, B), Image(4, False, A)]
    assert versions_of(images, known, {}, existing=[A, B]) == (
        RowVersion(3, AT, "existing", A),
        RowVersion(3, AT, "inserted", B),
        RowVersion(4, AT, "deleted", A),
    )


def test_a_change_from_outside_has_the_author_that_its_writer_set() -> None:
    known = {3: SnapshotInfo("main", 3, AT, "", "ada", "by hand", None)}
    (version,) = versions_of([Image(3, True, A)], known, {})
    assert (version.run, version.author, version.message) == (None, "ada", "by hand")


def test_a_key_is_values_by_columns() -> None:
    assert read_key("id=1, day=2026-01-01") == {"id": "1", "day": "2026-01-01"}
    assert read_key({"id": 1}) == {"id": 1}
    with pytest.raises(ArgumentError, match="takes column=value"):
        read_key("id")
