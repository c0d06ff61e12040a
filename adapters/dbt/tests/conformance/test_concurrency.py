"""dbt's own suite ``concurrency``."""

from __future__ import annotations

from dbt.tests.adapter.concurrency import test_concurrency as concurrency_suite


class TestConcurenncy(concurrency_suite.TestConcurenncy):
    pass
