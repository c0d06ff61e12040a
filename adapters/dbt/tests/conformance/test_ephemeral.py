"""dbt's own suite ``ephemeral``. What dbt compiles is compared by the rows of the views, as the
statements around it are ours.
"""

from __future__ import annotations

from typing import Any

from dbt.tests.adapter.ephemeral import test_ephemeral as ephemeral_suite
from dbt.tests.util import check_relations_equal, run_dbt


class TestEphemeralMulti(ephemeral_suite.BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        check_relations_equal(project.adapter, ["seed", "dependent"])
        check_relations_equal(project.adapter, ["seed", "double_dependent"])
        check_relations_equal(project.adapter, ["seed", "super_dependent"])


class TestEphemeralNested(ephemeral_suite.BaseEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        check_relations_equal(project.adapter, ["source_table", "root_view"])


class TestEphemeralErrorHandling(ephemeral_suite.BaseEphemeralErrorHandling):
    pass
