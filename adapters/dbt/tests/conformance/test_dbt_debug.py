"""dbt's own suite ``dbt_debug``."""

from __future__ import annotations

from dbt.tests.adapter.dbt_debug import test_dbt_debug as dbt_debug_suite


class TestDebugPostgres(dbt_debug_suite.TestDebugPostgres):
    pass


class TestDebugInvalidProjectPostgres(dbt_debug_suite.TestDebugInvalidProjectPostgres):
    pass
