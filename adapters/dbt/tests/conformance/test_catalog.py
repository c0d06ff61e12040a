"""dbt's own suite ``catalog``, without the materialized views that a lake does not have."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog import relation_types as relation_types_suite


class TestCatalogRelationTypes(relation_types_suite.CatalogRelationTypes):
    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [
            ("seed.test.my_seed", "BASE TABLE"),
            ("model.test.my_table", "BASE TABLE"),
            ("model.test.my_view", "VIEW"),
        ],
    )
    def test_relation_types_populate_correctly(
        self, docs: Any, node_name: str, relation_type: str
    ) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)
