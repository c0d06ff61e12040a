"""dbt's own suite ``unit_testing``."""

from __future__ import annotations

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


class TestPostgresUnitTestingTypes(types_suite.TestPostgresUnitTestingTypes):
    pass
