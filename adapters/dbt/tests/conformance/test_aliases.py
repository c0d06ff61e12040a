"""dbt's own suite ``aliases``."""

from __future__ import annotations

from dbt.tests.adapter.aliases import test_aliases as aliases_suite


class TestAliases(aliases_suite.TestAliases):
    pass


class TestAliasErrors(aliases_suite.TestAliasErrors):
    pass


class TestSameAliasDifferentSchemas(aliases_suite.TestSameAliasDifferentSchemas):
    pass


class TestSameAliasDifferentDatabases(aliases_suite.TestSameAliasDifferentDatabases):
    pass
