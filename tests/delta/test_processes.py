"""Writers at once, and writers that are killed: a commit is there as a whole, once, or not at all.

Tests ``delta/commit.py`` and ``delta/log_files.py``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from penstock.delta import vectors
from penstock.delta.log import load
from tests.delta.processes import KILLED, append, count_up, end, fork, killed_at
from tests.delta.tables import file, land, make, paths

WRITERS, COMMITS = 2, 8


def test_four_writers_at_once(tmp_path: Path) -> None:
    uri = str(tmp_path)
    make(uri, file("count-0"))
    children = [fork(partial(append, uri, n, COMMITS)) for n in range(WRITERS)]
    children += [fork(partial(count_up, uri, COMMITS)) for _ in range(WRITERS)]
    assert [end(child) for child in children] == [0] * 4
    state = load(uri)
    assert state is not None
    expected = {f"w{n}-{at}" for n in range(WRITERS) for at in range(COMMITS)}
    assert paths(state) == sorted({*expected, f"count-{WRITERS * COMMITS}"})
    assert state.number == 2 * WRITERS * COMMITS
    theirs = pa.table(DeltaTable(uri).get_add_actions())["path"].to_pylist()
    assert sorted(theirs) == paths(state)


def test_a_writer_killed_at_any_step(tmp_path: Path) -> None:
    """Each time the next writer finds the table whole, and the commit there or not."""
    outcomes: list[bool] = []
    for step in range(1, 100):
        uri = str(tmp_path / str(step))
        Path(uri).mkdir()
        make(uri, file("a", rows=9))

        def change(uri: str = uri) -> None:
            made, _ = vectors.write(uri, {"a": pa.array([1, 2], pa.int64())})
            assert made
            land(uri, None, removed=(file("a", rows=9),), added=(file("b"),))

        code = killed_at(step, uri, change)
        state = load(uri)
        assert paths(state) in (["a"], ["b"])
        outcomes.append(paths(state) == ["b"])
        after = land(uri, state, added=(file("c"),))
        assert paths(load(uri)) == sorted([*paths(state), "c"])
        assert DeltaTable(uri).version() == after.number
        if code != KILLED:
            assert code == 0
            break
    assert outcomes[0] is False
    assert outcomes[-1] is True
    assert outcomes == sorted(outcomes)  # from one step on it is there
    assert len(outcomes) > 4


def test_a_table_killed_while_it_is_made(tmp_path: Path) -> None:
    for step in range(1, 100):
        uri = str(tmp_path / str(step))
        code = killed_at(step, uri, partial(make, uri, file("a")))
        state = load(uri)
        if state is None:
            state = make(uri, file("a"))
        assert paths(state) == ["a"]
        if code != KILLED:
            assert code == 0
            return
    raise AssertionError("it is never done")
