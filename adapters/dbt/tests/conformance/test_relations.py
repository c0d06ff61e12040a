"""dbt's own suite ``relations``."""

from __future__ import annotations

from dbt.tests.adapter.relations import test_changing_relation_type as changing_relation_type_suite
from dbt.tests.adapter.relations import test_dropping_schema_named as dropping_schema_named_suite


class TestChangeRelationTypes(changing_relation_type_suite.TestChangeRelationTypes):
    pass


class TestDropSchemaNamed(dropping_schema_named_suite.TestDropSchemaNamed):
    pass
