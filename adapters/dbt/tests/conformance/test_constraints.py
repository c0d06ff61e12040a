"""dbt's own suite ``constraints``, with Spark's types and values. NOT NULL is enforced at each
write; the others are left out with a warning, as the format has none.
"""

from __future__ import annotations

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints import test_constraints as suite

CREATED = """
create or replace table <model_identifier> (
    id integer not null,
    color string,
    date_day string
);
insert into <model_identifier> select id, color, date_day from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""
QUOTED = """
create or replace table <model_identifier> (
    id integer not null,
    "from" string not null,
    date_day string
);
insert into <model_identifier> select id, "from", date_day from (
    select 'blue' as "from", 1 as id, '2019-01-01' as date_day
) as model_subq
"""
HEADER = """
{{ config(materialized = "%s"%s) }}
{%% call set_sql_header(config) %%}
create or replace macro zone_of_header() as 'Asia/Kolkata';
{%% endcall %%}
select zone_of_header() as column_name
"""


class Types:
    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["timestamp_ltz '2013-11-03 00:00:00-07'", "timestamp_ltz", "timestamp_ltz"],
            ["timestamp_ntz '2013-11-03 00:00:00'", "timestamp_ntz", "timestamp_ntz"],
            ["array('a', 'b')", "array<string>", "array<string>"],
            ["array(1, 2)", "array<int>", "array<int>"],
            ["cast(1 as decimal(10, 2))", "decimal(10, 2)", "decimal(10,2)"],
            ["date '2020-01-01'", "date", "date"],
        ]


class Refusal:
    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["NULL", "id", "my_model"]


class TestTableConstraintsColumnsEqual(Types, suite.BaseTableConstraintsColumnsEqual):
    pass


class TestViewConstraintsColumnsEqual(Types, suite.BaseViewConstraintsColumnsEqual):
    pass


class TestIncrementalConstraintsColumnsEqual(Types, suite.BaseIncrementalConstraintsColumnsEqual):
    pass


class Created:
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return CREATED


class TestTableDdl(Created, suite.BaseConstraintsRuntimeDdlEnforcement):
    pass


class TestIncrementalDdl(Created, suite.BaseIncrementalConstraintsRuntimeDdlEnforcement):
    pass


class TestModelConstraints(Created, suite.BaseModelConstraintsRuntimeEnforcement):
    pass


class TestQuotedColumn(suite.BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return QUOTED


class TestTableConstraintsRollback(Refusal, suite.BaseConstraintsRollback):
    pass


class TestIncrementalConstraintsRollback(Refusal, suite.BaseIncrementalConstraintsRollback):
    pass


class TestTableContractSqlHeader(suite.BaseTableContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": HEADER % ("table", ""),
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }


class TestIncrementalContractSqlHeader(suite.BaseIncrementalContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        more = ", on_schema_change = 'append_new_columns'"
        return {
            "my_model_contract_sql_header.sql": HEADER % ("incremental", more),
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }


class TestIncrementalForeignKeyConstraint(suite.BaseIncrementalForeignKeyConstraint):
    pass
