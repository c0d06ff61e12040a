"""dbt's own suite ``dbt_clone``."""

from __future__ import annotations

from dbt.tests.adapter.dbt_clone import test_dbt_clone as dbt_clone_suite


class TestClonePossible(dbt_clone_suite.BaseClonePossible):
    pass


class TestCloneSameSourceAndTarget(dbt_clone_suite.BaseCloneSameSourceAndTarget):
    pass


class TestPostgresCloneNotPossible(dbt_clone_suite.TestPostgresCloneNotPossible):
    pass


class TestCloneSameTargetAndState(dbt_clone_suite.TestCloneSameTargetAndState):
    pass
