"""dbt's own suite ``simple_copy``, without materialized views, which a lake does not have, and
without the class that asks for PostgreSQL's profile.
"""

from __future__ import annotations

from dbt.tests.adapter.simple_copy import test_simple_copy as simple_copy_suite


class TestSimpleCopyBase(simple_copy_suite.SimpleCopyBase):
    test_simple_copy_with_materialized_views = None


class TestEmptyModelsArentRun(simple_copy_suite.EmptyModelsArentRunBase):
    pass
