"""dbt's own suite ``utils``."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.utils import test_any_value as any_value_suite
from dbt.tests.adapter.utils import test_array_append as array_append_suite
from dbt.tests.adapter.utils import test_array_concat as array_concat_suite
from dbt.tests.adapter.utils import test_array_construct as array_construct_suite
from dbt.tests.adapter.utils import test_bool_or as bool_or_suite
from dbt.tests.adapter.utils import test_cast as cast_suite
from dbt.tests.adapter.utils import test_cast_bool_to_text as cast_bool_to_text_suite
from dbt.tests.adapter.utils import test_concat as concat_suite
from dbt.tests.adapter.utils import test_current_timestamp as current_timestamp_suite
from dbt.tests.adapter.utils import test_date as date_suite
from dbt.tests.adapter.utils import test_date_spine as date_spine_suite
from dbt.tests.adapter.utils import test_date_trunc as date_trunc_suite
from dbt.tests.adapter.utils import test_dateadd as dateadd_suite
from dbt.tests.adapter.utils import test_datediff as datediff_suite
from dbt.tests.adapter.utils import test_equals as equals_suite
from dbt.tests.adapter.utils import test_escape_single_quotes as escape_single_quotes_suite
from dbt.tests.adapter.utils import test_except as except_suite
from dbt.tests.adapter.utils import test_generate_series as generate_series_suite
from dbt.tests.adapter.utils import test_get_intervals_between as get_intervals_between_suite
from dbt.tests.adapter.utils import test_get_powers_of_two as get_powers_of_two_suite
from dbt.tests.adapter.utils import test_hash as hash_suite
from dbt.tests.adapter.utils import test_intersect as intersect_suite
from dbt.tests.adapter.utils import test_last_day as last_day_suite
from dbt.tests.adapter.utils import test_length as length_suite
from dbt.tests.adapter.utils import test_listagg as listagg_suite
from dbt.tests.adapter.utils import test_null_compare as null_compare_suite
from dbt.tests.adapter.utils import test_position as position_suite
from dbt.tests.adapter.utils import test_replace as replace_suite
from dbt.tests.adapter.utils import test_right as right_suite
from dbt.tests.adapter.utils import test_safe_cast as safe_cast_suite
from dbt.tests.adapter.utils import (
    test_source_freshness_custom_info as source_freshness_custom_info_suite,
)
from dbt.tests.adapter.utils import test_split_part as split_part_suite
from dbt.tests.adapter.utils import test_string_literal as string_literal_suite
from dbt.tests.adapter.utils import test_timestamps as timestamps_suite
from dbt.tests.adapter.utils import test_validate_sql as validate_sql_suite
from dbt.tests.adapter.utils.data_types import test_type_bigint as type_bigint_suite
from dbt.tests.adapter.utils.data_types import test_type_boolean as type_boolean_suite
from dbt.tests.adapter.utils.data_types import test_type_float as type_float_suite
from dbt.tests.adapter.utils.data_types import test_type_int as type_int_suite
from dbt.tests.adapter.utils.data_types import test_type_numeric as type_numeric_suite
from dbt.tests.adapter.utils.data_types import test_type_string as type_string_suite
from dbt.tests.adapter.utils.data_types import test_type_timestamp as type_timestamp_suite


class TestTypeBigInt(type_bigint_suite.TestTypeBigInt):
    pass


class TestTypeBoolean(type_boolean_suite.TestTypeBoolean):
    pass


class TestTypeFloat(type_float_suite.TestTypeFloat):
    pass


class TestTypeNumeric(type_numeric_suite.TestTypeNumeric):
    pass


class TestTypeString(type_string_suite.TestTypeString):
    pass


class TestTypeTimestamp(type_timestamp_suite.TestTypeTimestamp):
    pass


class TestAnyValue(any_value_suite.TestAnyValue):
    pass


class TestArrayAppend(array_append_suite.TestArrayAppend):
    pass


class TestArrayConcat(array_concat_suite.TestArrayConcat):
    pass


class TestArrayConstruct(array_construct_suite.TestArrayConstruct):
    pass


class TestBoolOr(bool_or_suite.TestBoolOr):
    pass


class TestCast(cast_suite.TestCast):
    pass


class TestCastBoolToText(cast_bool_to_text_suite.TestCastBoolToText):
    pass


class TestConcat(concat_suite.TestConcat):
    pass


class TestCurrentTimestampNaive(current_timestamp_suite.BaseCurrentTimestampNaive):
    pass


class TestDate(date_suite.TestDate):
    pass


class TestDateSpine(date_spine_suite.TestDateSpine):
    pass


class TestDateTrunc(date_trunc_suite.TestDateTrunc):
    pass


class TestDateAdd(dateadd_suite.TestDateAdd):
    pass


class TestDateDiff(datediff_suite.TestDateDiff):
    pass


class TestEquals(equals_suite.TestEquals):
    pass


class TestEscapeSingleQuotesBackslash(escape_single_quotes_suite.BaseEscapeSingleQuotesBackslash):
    pass


class TestEscapeSingleQuotes(escape_single_quotes_suite.TestEscapeSingleQuotes):
    pass


class TestExcept(except_suite.TestExcept):
    pass


class TestGenerateSeries(generate_series_suite.TestGenerateSeries):
    pass


class TestGetPowersOfTwo(get_powers_of_two_suite.TestGetPowersOfTwo):
    pass


class TestHash(hash_suite.TestHash):
    pass


class TestIntersect(intersect_suite.TestIntersect):
    pass


class TestLastDay(last_day_suite.TestLastDay):
    pass


class TestLength(length_suite.TestLength):
    pass


class TestListagg(listagg_suite.TestListagg):
    pass


class TestMixedNullCompare(null_compare_suite.TestMixedNullCompare):
    pass


class TestNullCompare(null_compare_suite.TestNullCompare):
    pass


class TestPosition(position_suite.TestPosition):
    pass


class TestReplace(replace_suite.TestReplace):
    pass


class TestRight(right_suite.TestRight):
    pass


class TestSafeCast(safe_cast_suite.TestSafeCast):
    pass


class TestCalculateFreshnessMethod(source_freshness_custom_info_suite.TestCalculateFreshnessMethod):
    pass


class TestSplitPart(split_part_suite.TestSplitPart):
    pass


class TestStringLiteral(string_literal_suite.TestStringLiteral):
    pass


class TestValidateSqlMethod(validate_sql_suite.TestValidateSqlMethod):
    pass


class TestTypeInt(type_int_suite.BaseTypeInt):
    """Whole numbers of a seed are BIGINT, so that none is too large."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"+column_types": {"int_col": "integer"}}}


class TestCurrentTimestamp(current_timestamp_suite.BaseCurrentTimestampNaive):
    pass


class TestGetIntervalsBetween(get_intervals_between_suite.BaseGetIntervalsBetween):
    """With days as Spark reads them."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        fixture = get_intervals_between_suite.fixture_get_intervals_between
        text = fixture.models__test_get_intervals_between_sql
        text = text.replace("09/01/2023", "2023-09-01").replace("09/12/2023", "2023-09-12")
        return {
            "test_get_intervals_between.yml": fixture.models__test_get_intervals_between_yml,
            "test_get_intervals_between.sql": self.interpolate_macro_namespace(
                text, "get_intervals_between"
            ),
        }


class TestCurrentTimestamps(timestamps_suite.BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        return dict.fromkeys(
            (
                "current_timestamp",
                "current_timestamp_in_utc_backcompat",
                "current_timestamp_backcompat",
            ),
            "timestamp_ntz",
        )

    @pytest.fixture(scope="class")
    def expected_sql(self) -> None:
        return None
