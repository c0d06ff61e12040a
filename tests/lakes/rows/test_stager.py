"""What a change of rows writes is removed where a part of it fails.

Tests ``lakes/candidate/state.py`` (staged changes add up).
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from penstock.lakes.candidate.state import Removed
from penstock.lakes.rows.stager import remove_both, write
from penstock.lakes.writing.spark import Written


class Stopped(Exception):
    pass


def fail() -> Removed:
    raise Stopped


def directory(root: Path) -> str:
    made = root / str(uuid4())
    made.mkdir()
    (made / "deletes.parquet").write_bytes(b"PAR1")
    return str(made)


def test_what_the_first_removal_wrote_goes_where_the_second_fails(tmp_path: Path) -> None:
    first = Removed(rows=1, directories=(directory(tmp_path),))
    with pytest.raises(Stopped):
        remove_both(first, fail)
    assert not list(tmp_path.iterdir())


def test_both_removals_count(tmp_path: Path) -> None:
    first = Removed(rows=1, directories=(directory(tmp_path),))
    removed = remove_both(first, lambda: Removed(rows=2, inlined=(7, 8)))
    assert (removed.rows, removed.inlined, removed.directories) == (3, (7, 8), first.directories)
    assert list(tmp_path.iterdir())


def test_what_was_inserted_goes_where_the_removal_fails(tmp_path: Path) -> None:
    inserted = Written(rows=1, directory=directory(tmp_path))
    with pytest.raises(Stopped):
        write(fail, tuple, lambda: inserted)
    assert not list(tmp_path.iterdir())
