"""dbt's own suite ``store_test_failures_tests``."""

from __future__ import annotations

from dbt.tests.adapter.store_test_failures_tests import basic as as_suite
from dbt.tests.adapter.store_test_failures_tests import (
    test_store_test_failures as store_test_failures_suite,
)


class TestStoreTestFailures(store_test_failures_suite.TestStoreTestFailures):
    pass


class TestStoreTestFailuresLimit(store_test_failures_suite.TestStoreTestFailuresLimit):
    pass


class TestStoreTestFailuresAsInteractions(as_suite.StoreTestFailuresAsInteractions):
    pass


class TestStoreTestFailuresAsProjectLevelOff(as_suite.StoreTestFailuresAsProjectLevelOff):
    pass


class TestStoreTestFailuresAsProjectLevelView(as_suite.StoreTestFailuresAsProjectLevelView):
    pass


class TestStoreTestFailuresAsProjectLevelEphemeral(
    as_suite.StoreTestFailuresAsProjectLevelEphemeral
):
    pass


class TestStoreTestFailuresAsGeneric(as_suite.StoreTestFailuresAsGeneric):
    pass


class TestStoreTestFailuresAsExceptions(as_suite.StoreTestFailuresAsExceptions):
    pass
