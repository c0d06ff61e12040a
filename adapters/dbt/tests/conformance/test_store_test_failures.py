"""dbt's own suite ``store_test_failures_tests``."""

from __future__ import annotations

from dbt.tests.adapter.store_test_failures_tests import (
    test_store_test_failures as store_test_failures_suite,
)


class TestStoreTestFailures(store_test_failures_suite.TestStoreTestFailures):
    pass


class TestStoreTestFailuresLimit(store_test_failures_suite.TestStoreTestFailuresLimit):
    pass
