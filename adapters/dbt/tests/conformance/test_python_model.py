"""dbt's own suite ``python_model``."""

from __future__ import annotations

from dbt.tests.adapter.python_model import test_python_model as python_model_suite
from dbt.tests.adapter.python_model import test_spark as spark_suite


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
    pass
