"""dbt's own suite ``simple_snapshot``."""

from __future__ import annotations

from dbt.tests.adapter.simple_snapshot import (
    new_record_check_mode,
    new_record_dbt_valid_to_current,
    new_record_timestamp_mode,
)
from dbt.tests.adapter.simple_snapshot import (
    test_ephemeral_snapshot_hard_deletes as ephemeral_snapshot_hard_deletes_suite,
)
from dbt.tests.adapter.simple_snapshot import test_snapshot as snapshot_suite
from dbt.tests.adapter.simple_snapshot import test_various_configs as various_configs_suite


class TestSnapshotEphemeralHardDeletes(
    ephemeral_snapshot_hard_deletes_suite.BaseSnapshotEphemeralHardDeletes
):
    pass


class TestSnapshotNewColumnTimestampStrategy(
    ephemeral_snapshot_hard_deletes_suite.BaseSnapshotNewColumnTimestampStrategy
):
    pass


class TestSnapshotNewColumnSpecificCheckCols(
    ephemeral_snapshot_hard_deletes_suite.BaseSnapshotNewColumnSpecificCheckCols
):
    pass


class TestSnapshotNewColumnWithDeletes(
    ephemeral_snapshot_hard_deletes_suite.BaseSnapshotNewColumnWithDeletes
):
    pass


class TestSnapshot(snapshot_suite.TestSnapshot):
    pass


class TestSnapshotCheck(snapshot_suite.TestSnapshotCheck):
    pass


class TestSnapshotColumnNames(various_configs_suite.BaseSnapshotColumnNames):
    pass


class TestSnapshotColumnNamesFromDbtProject(
    various_configs_suite.BaseSnapshotColumnNamesFromDbtProject
):
    pass


class TestSnapshotInvalidColumnNames(various_configs_suite.BaseSnapshotInvalidColumnNames):
    pass


class TestSnapshotDbtValidToCurrent(various_configs_suite.BaseSnapshotDbtValidToCurrent):
    pass


class TestSnapshotMultiUniqueKey(various_configs_suite.BaseSnapshotMultiUniqueKey):
    pass


class TestSnapshotNewRecordTimestampMode(
    new_record_timestamp_mode.BaseSnapshotNewRecordTimestampMode
):
    pass


class TestSnapshotNewRecordCheckMode(new_record_check_mode.BaseSnapshotNewRecordCheckMode):
    pass


class TestSnapshotNewRecordDbtValidToCurrent(
    new_record_dbt_valid_to_current.BaseSnapshotNewRecordDbtValidToCurrent
):
    pass
