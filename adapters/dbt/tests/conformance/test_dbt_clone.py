"""dbt's own suite ``dbt_clone`` for databases where a clone is a view: tables share no files."""

from __future__ import annotations

from dbt.tests.adapter.dbt_clone import test_dbt_clone as dbt_clone_suite


class TestPostgresCloneNotPossible(dbt_clone_suite.TestPostgresCloneNotPossible):
    pass


class TestCloneSameTargetAndState(dbt_clone_suite.TestCloneSameTargetAndState):
    pass
