"""Whatever happened to a lake: maintenance by Penstock changes nothing that DuckDB sees."""

from __future__ import annotations

from random import Random

import pytest

from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import files_needed, history, maintain, on_disk, play, seen


@pytest.mark.parametrize("seed", range(3))
def test_compactions_keep_every_snapshot(place: Place, seed: int) -> None:
    random = Random(seed)
    play(place, history(random), inline=random.choice((0, 3)))
    before = seen(place)
    last = max(key for key in before if isinstance(key, int))
    for name in random.sample(("merge_adjacent_files", "rewrite_data_files"), 2):
        arguments = {"delete_threshold": 0.1} if name == "rewrite_data_files" else {}
        maintain(place, name, **arguments)
    assert seen(place, last) == before
    after = seen(place)
    assert after[max(key for key in after if isinstance(key, int))] == before[last]


@pytest.mark.parametrize("seed", [6])
def test_what_is_left_after_expiry_reads_as_before(each_place: Place, seed: int) -> None:
    random = Random(seed)
    play(each_place, history(random), inline=random.choice((0, 3)))
    maintain(each_place, "merge_adjacent_files")
    before = dict(seen(each_place))
    snapshots = [key for key in before if isinstance(key, int)]
    gone = [version for version in snapshots if random.random() < 0.6 and version != snapshots[-1]]
    expired = maintain(each_place, "expire_snapshots", versions=[*gone, snapshots[-1]])
    assert [row.snapshot_id for row in expired] == gone
    scheduled = maintain(each_place, "cleanup_old_files", cleanup_all=True)
    assert on_disk(each_place).isdisjoint(file.path for file in scheduled)
    assert maintain(each_place, "delete_orphaned_files", cleanup_all=True) == []
    assert files_needed(each_place) == on_disk(each_place)
    after = seen(each_place)
    left = [version for version in snapshots if version not in gone]
    assert {version: after[version] for version in left} == {
        version: before[version] for version in left
    }
