"""dbt's own suite ``dbt_show``."""

from __future__ import annotations

from dbt.tests.adapter.dbt_show import test_dbt_show as dbt_show_suite


class TestPostgresShowSqlHeader(dbt_show_suite.TestPostgresShowSqlHeader):
    pass


class TestPostgresShowLimit(dbt_show_suite.TestPostgresShowLimit):
    pass


class TestShowDoesNotHandleDoubleLimit(dbt_show_suite.TestShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "Syntax error at or near"
