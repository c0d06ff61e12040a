"""dbt's own suite ``empty``, without ``seed --empty``, which dbt-core 1.11 does not have."""

from __future__ import annotations

from dbt.tests.adapter.empty import test_empty as empty_suite


class TestTestEmptyInlineSourceRef(empty_suite.BaseTestEmptyInlineSourceRef):
    pass


class TestEmpty(empty_suite.TestEmpty):
    pass


class TestMetadataWithEmptyFlag(empty_suite.MetadataWithEmptyFlag):
    pass
