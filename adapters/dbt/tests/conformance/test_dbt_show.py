"""dbt's own suite ``dbt_show``."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.dbt_show import test_dbt_show as dbt_show_suite
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError


class TestPostgresShowSqlHeader(dbt_show_suite.TestPostgresShowSqlHeader):
    pass


class TestPostgresShowLimit(dbt_show_suite.TestPostgresShowLimit):
    pass


class TestShowDoesNotHandleDoubleLimit:
    """The suite's own looks at a text that pytest has shortened."""

    def test_double_limit_throws_syntax_error(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match="Syntax error at or near 'limit'"):
            run_dbt(["show", "--limit", "1", "--inline", "select 1 limit 1"])
