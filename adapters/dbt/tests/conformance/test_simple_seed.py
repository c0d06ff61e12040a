"""dbt's own suite ``simple_seed``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed import test_seed as seed_suite
from dbt.tests.adapter.simple_seed import test_seed_type_override as seed_type_override_suite
from dbt.tests.util import run_dbt


class TestSeedConfigFullRefreshOff(seed_suite.TestSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(seed_suite.TestSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(seed_suite.TestSeedWithUniqueDelimiter):
    pass


class TestSeedWithEmptyDelimiter(seed_suite.TestSeedWithEmptyDelimiter):
    pass


class TestSimpleSeedEnabledViaConfig(seed_suite.TestSimpleSeedEnabledViaConfig):
    pass


class TestSeedParsing(seed_suite.TestSeedParsing):
    pass


class TestSeedSpecificFormats(seed_suite.TestSeedSpecificFormats):
    pass


class TestEmptySeed(seed_suite.TestEmptySeed):
    pass


class ReadersStay:
    """A seed that is made again keeps what reads it: dropping a table drops no other here."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc] # of the class that this is mixed into


class TestBasicSeedTests(ReadersStay, seed_suite.BaseBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(ReadersStay, seed_suite.BaseSeedConfigFullRefreshOn):
    pass


class TestSeedWithWrongDelimiter(seed_suite.BaseSeedWithWrongDelimiter):
    def test_seed_with_wrong_delimiter(self, project: Any) -> None:
        result = run_dbt(["seed"], expect_pass=False)
        assert "a type is expected, not '|'" in result.results[0].message


class TestSimpleSeedWithBOM(seed_suite.BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(seeds.seeds__expected_sql)
        path = Path(project.project_root) / "seeds" / "seed_bom.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\ufeff" + seeds.seed__actual_csv, encoding="utf-8")


class TestSimpleSeedColumnOverride(seed_type_override_suite.BaseSimpleSeedColumnOverride):
    """With the names that types have here."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        text = fixtures.properties__schema_yml.replace("type: text", "type: string")
        text = text.replace("type: integer", "type: bigint")
        return {"schema.yml": text.replace("timestamp without time zone", "timestamp_ntz")}
