"""dbt's own suite ``unit_testing``."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.unit_testing import test_case_insensitivity as case_insensitivity_suite
from dbt.tests.adapter.unit_testing import test_invalid_input as invalid_input_suite
from dbt.tests.adapter.unit_testing import (
    test_quoted_reserved_word_column_names as quoted_reserved_word_column_names_suite,
)
from dbt.tests.adapter.unit_testing import test_types as types_suite


class TestPosgresUnitTestCaseInsensitivity(
    case_insensitivity_suite.TestPosgresUnitTestCaseInsensitivity
):
    pass


class TestPostgresUnitTestInvalidInput(invalid_input_suite.TestPostgresUnitTestInvalidInput):
    pass


class TestUnitTestQuotedReservedWordColumnNames(
    quoted_reserved_word_column_names_suite.BaseUnitTestQuotedReservedWordColumnNames
):
    pass


class TestUnitTestingVarcharFixtureNoTruncation(
    types_suite.BaseUnitTestingVarcharFixtureNoTruncation
):
    pass


class TestUnitTestingTypes(types_suite.BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["DATE '2020-01-02'", "2020-01-02"],
            ["TIMESTAMP_NTZ '2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
            ["TIMESTAMP_LTZ '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["cast(1 as decimal(10, 2))", "1"],
            ["'x\\\\y'", "'x\\y'"],
        ]
