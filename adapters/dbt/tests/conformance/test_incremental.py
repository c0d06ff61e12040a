"""dbt's own suite ``incremental``."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental import (
    test_incremental_merge_exclude_columns as incremental_merge_exclude_columns_suite,
)
from dbt.tests.adapter.incremental import (
    test_incremental_microbatch as incremental_microbatch_suite,
)
from dbt.tests.adapter.incremental import (
    test_incremental_on_schema_change as incremental_on_schema_change_suite,
)
from dbt.tests.adapter.incremental import (
    test_incremental_predicates as incremental_predicates_suite,
)
from dbt.tests.adapter.incremental import test_incremental_unique_id as incremental_unique_id_suite
from dbt.tests.util import run_dbt


class TestMergeExcludeColumns(incremental_merge_exclude_columns_suite.BaseMergeExcludeColumns):
    pass


class TestIncrementalOnSchemaChange(
    incremental_on_schema_change_suite.TestIncrementalOnSchemaChange
):
    pass


class TestIncrementalPredicatesDeleteInsert(
    incremental_predicates_suite.TestIncrementalPredicatesDeleteInsert
):
    pass


class TestPredicatesDeleteInsert(incremental_predicates_suite.TestPredicatesDeleteInsert):
    pass


class TestIncrementalUniqueKey(incremental_unique_id_suite.TestIncrementalUniqueKey):
    """Two of dbt's cases have a NULL in a key of three columns, which is an error here."""

    def test__trinary_unique_key_list(self, project: Any) -> None:
        self.null_is_refused("trinary_unique_key_list")

    def test__trinary_unique_key_list_no_update(self, project: Any) -> None:
        self.null_is_refused("nontyped_trinary_unique_key_list")

    @staticmethod
    def null_is_refused(model: str) -> None:
        run_dbt(["seed", "--full-refresh"])
        refused = run_dbt(["run", "--select", model, "--full-refresh"], expect_pass=False)
        assert "is NULL in the row" in refused.results[0].message


class TestMicrobatch(incremental_microbatch_suite.BaseMicrobatch):
    @pytest.fixture(scope="class")
    def insert_two_rows_sql(self, project: Any) -> str:
        table = f'"{project.database}"."{project.test_schema}".input_model'
        rows = ", ".join(f"({n}, TIMESTAMP '2020-01-0{n} 00:00:00+00')" for n in (4, 5))
        return f"insert into {table} (id, event_time) values {rows}"
