"""dbt's own suite ``simple_copy``."""

from __future__ import annotations

from dbt.tests.adapter.simple_copy import test_copy_uppercase as copy_uppercase_suite
from dbt.tests.adapter.simple_copy import test_simple_copy as simple_copy_suite


class TestSimpleCopyUppercase(copy_uppercase_suite.TestSimpleCopyUppercase):
    pass


class TestSimpleCopyBase(simple_copy_suite.TestSimpleCopyBase):
    pass


class TestEmptyModelsArentRun(simple_copy_suite.TestEmptyModelsArentRun):
    pass
