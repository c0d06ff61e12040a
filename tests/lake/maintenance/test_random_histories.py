"""Whatever happened to a lake: upkeep by Penstock changes nothing that DuckDB sees."""

from __future__ import annotations

from random import Random

import pytest

from tests.lake.catalog.conftest import Place
from tests.lake.maintenance.lakes import files_needed, history, on_disk, play, seen, upkeep


@pytest.mark.parametrize("seed", range(3))
def test_compactions_keep_every_snapshot(place: Place, seed: int) -> None:
    random = Random(seed)
    play(place, history(random), inline=random.choice((0, 3)))
    before = seen(place)
    last = max(key for key in before if isinstance(key, int))
    for name in random.sample(("merge_adjacent_files", "rewrite_data_files"), 2):
        arguments = {"delete_threshold": 0.1} if name == "rewrite_data_files" else {}
        upkeep(place, name, **arguments)
    assert seen(place, last) == before
    after = seen(place)
    assert after[max(key for key in after if isinstance(key, int))] == before[last]


@pytest.mark.parametrize("seed", [6])
def test_what_is_left_after_expiry_reads_as_before(each_place: Place, seed: int) -> None:
    random = Random(seed)
    play(each_place, history(random), inline=random.choice((0, 3)))
    upkeep(each_place, "merge_adjacent_files")
    before = dict(seen(each_place))
    snapshots = [key for key in before if isinstance(key, int)]
    gone = [one for one in snapshots if random.random() < 0.6 and one != snapshots[-1]]
    expired = upkeep(each_place, "expire_snapshots", versions=[*gone, snapshots[-1]])
    assert [one.snapshot_id for one in expired] == gone
    scheduled = upkeep(each_place, "cleanup_old_files", cleanup_all=True)
    assert on_disk(each_place).isdisjoint(one.path for one in scheduled)
    assert upkeep(each_place, "delete_orphaned_files", cleanup_all=True) == []
    assert files_needed(each_place) == on_disk(each_place)
    after = seen(each_place)
    left = [one for one in snapshots if one not in gone]
    assert {one: after[one] for one in left} == {one: before[one] for one in left}
