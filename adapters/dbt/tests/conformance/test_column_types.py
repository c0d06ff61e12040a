"""dbt's own suite ``column_types``."""

from __future__ import annotations

from dbt.tests.adapter.column_types import test_column_types as column_types_suite


class TestPostgresColumnTypes(column_types_suite.TestPostgresColumnTypes):
    pass
