"""dbt's own suite ``python_model``."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.python_model import test_python_model as python_model_suite
from dbt.tests.adapter.python_model import test_spark as spark_suite
from dbt.tests.util import run_dbt


class TestPythonModelTests(python_model_suite.BasePythonModelTests):
    pass


class TestPythonIncrementalTests(python_model_suite.BasePythonIncrementalTests):
    pass


class TestPythonMetaGetTests(python_model_suite.BasePythonMetaGetTests):
    pass


class TestPythonEmptyTests(python_model_suite.BasePythonEmptyTests):
    pass


class TestPythonSampleTests(python_model_suite.BasePythonSampleTests):
    pass


class TestPySparkTests(spark_suite.BasePySparkTests):
    """Without Koalas, which is part of Spark since 3.2."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "pandas_df.py": spark_suite.PANDAS_MODEL,
            "pyspark_df.py": spark_suite.PYSPARK_MODEL,
            "pandas_on_spark_df.py": spark_suite.PANDAS_ON_SPARK_MODEL,
        }

    def test_different_dataframes(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 3
