"""dbt's own suite ``basic``."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic import test_adapter_methods as adapter_methods_suite
from dbt.tests.adapter.basic import test_base as base_suite
from dbt.tests.adapter.basic import test_docs_generate as docs_generate_suite
from dbt.tests.adapter.basic import test_empty as empty_suite
from dbt.tests.adapter.basic import test_ephemeral as ephemeral_suite
from dbt.tests.adapter.basic import test_generic_tests as generic_tests_suite
from dbt.tests.adapter.basic import (
    test_get_catalog_for_single_relation as single_relation_suite,
)
from dbt.tests.adapter.basic import test_incremental as incremental_suite
from dbt.tests.adapter.basic import test_singular_tests as singular_tests_suite
from dbt.tests.adapter.basic import test_singular_tests_ephemeral as singular_tests_ephemeral_suite
from dbt.tests.adapter.basic import test_snapshot_check_cols as snapshot_check_cols_suite
from dbt.tests.adapter.basic import test_snapshot_timestamp as snapshot_timestamp_suite
from dbt.tests.adapter.basic import test_table_materialization as table_materialization_suite
from dbt.tests.adapter.basic import test_validate_connection as validate_connection_suite
from dbt.tests.util import AnyInteger
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata


class TestBaseCaching(adapter_methods_suite.TestBaseCaching):
    pass


class TestSimpleMaterializations(base_suite.TestSimpleMaterializations):
    pass


class TestEmpty(empty_suite.TestEmpty):
    pass


class TestEphemeral(ephemeral_suite.TestEphemeral):
    pass


class TestGenericTests(generic_tests_suite.TestGenericTests):
    pass


class TestIncrementalBadStrategy(incremental_suite.BaseIncrementalBadStrategy):
    pass


class Testincremental(incremental_suite.Testincremental):
    pass


class TestBaseIncrementalNotSchemaChange(incremental_suite.TestBaseIncrementalNotSchemaChange):
    pass


class TestSingularTests(singular_tests_suite.TestSingularTests):
    pass


class TestSingularTestsEphemeral(singular_tests_ephemeral_suite.TestSingularTestsEphemeral):
    pass


class TestSnapshotCheckCols(snapshot_check_cols_suite.TestSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(snapshot_timestamp_suite.TestSnapshotTimestamp):
    pass


class TestTableMat(table_materialization_suite.TestTableMat):
    pass


class TestValidateConnection(validate_connection_suite.TestValidateConnection):
    pass


def stat(name: str, label: str, description: str, include: bool) -> dict[str, Any]:
    value = AnyInteger() if include else None
    return {
        "id": name,
        "label": label,
        "value": value,
        "description": description,
        "include": include,
    }


def stats(*, of_table: bool) -> dict[str, Any]:
    """Rows and bytes of a table; a view has none."""
    if not of_table:
        return expected_catalog.no_stats()
    return {
        "has_stats": expected_catalog.no_stats()["has_stats"] | {"value": True},
        "rows": stat("rows", "Rows", "how many rows the table has", True),
        "bytes": stat("bytes", "Bytes", "how many bytes its data files have", True),
    }


TYPES: dict[str, Any] = {
    "role": None,
    "id_type": "bigint",
    "text_type": "string",
    "time_type": "timestamp_ntz",
    "view_type": "VIEW",
    "table_type": "BASE TABLE",
}


class TestDocsGenerate(docs_generate_suite.BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return expected_catalog.base_expected_catalog(
            project,
            **TYPES,
            model_stats=stats(of_table=False),
            seed_stats=stats(of_table=True),
        )


class TestDocsGenReferences(docs_generate_suite.BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project: Any) -> Any:
        return expected_catalog.expected_references_catalog(
            project,
            **TYPES,
            bigint_type="bigint",
            model_stats=stats(of_table=True),
            seed_stats=stats(of_table=True),
            view_summary_stats=stats(of_table=False),
        )


def entry(project: Any, kind: str, name: str, stats: dict[str, StatsItem]) -> CatalogTable:
    types = {"id": "bigint", "updated_at": "timestamp_ntz"}
    order = ("id", "first_name", "email", "ip_address", "updated_at")
    about = TableMetadata(kind, project.test_schema, name, database=project.database)
    columns = {
        column: ColumnMetadata(types.get(column, "string"), at + 1, column)
        for at, column in enumerate(order)
    }
    return CatalogTable(metadata=about, columns=columns, stats=stats)


class TestGetCatalogForSingleRelation(single_relation_suite.BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> CatalogTable:
        rows = StatsItem("rows", "Rows", 1, True, "how many rows the table has")
        size = StatsItem("bytes", "Bytes", 0, True, "how many bytes its data files have")
        return entry(project, "BASE TABLE", "my_seed", {"rows": rows, "bytes": size})

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> CatalogTable:
        return entry(project, "VIEW", "my_view_model", {})
