"""dbt's own suite ``simple_copy``, without materialized views, which a lake does not have, and
without the classes that ask for PostgreSQL's profile and information_schema.
"""

from __future__ import annotations

from dbt.tests.adapter.simple_copy import test_simple_copy as simple_copy_suite


class TestSimpleCopyBase(simple_copy_suite.SimpleCopyBase):
    test_simple_copy_with_materialized_views = None
