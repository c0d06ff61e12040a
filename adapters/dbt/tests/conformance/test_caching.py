"""dbt's own suite ``caching``."""

from __future__ import annotations

from dbt.tests.adapter.caching import test_caching as caching_suite


class TestCachingLowerCaseModel(caching_suite.TestCachingLowerCaseModel):
    pass


class TestCachingUppercaseModel(caching_suite.TestCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(caching_suite.TestCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(caching_suite.TestNoPopulateCache):
    pass
