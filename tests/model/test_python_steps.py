"""What ``main`` needs, by its parameters; nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import Diagnostic
from penstock.model.files.python_code import read_code
from penstock.model.python_steps import PythonStep, read_signature
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import TableName

HEAD = """
import datetime as dt
from datetime import date, datetime
from decimal import Decimal
from typing import Optional
from uuid import UUID
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
"""
ORDERS = TableName("main", "main", "orders")
DAILY = PartitionSpec("daily")


def signature(
    parameters: str, partition: PartitionSpec | None = DAILY, head: str = HEAD
) -> tuple[PythonStep | None, tuple[Diagnostic, ...]]:
    text = f"{head}def main({parameters}):\n    pass\n"
    code, findings = read_code(text, Path("s.py"), Path())
    assert code is not None, findings
    return read_signature(code, partition, [ORDERS])


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ("str", "text"),
        ("int", "bigint"),
        ("float", "double"),
        ("bool", "boolean"),
        ("bytes", "blob"),
        ("date", "date"),
        ("dt.datetime", "timestamp"),
        ("Decimal", "decimal"),
        ("UUID", "uuid"),
        ("dict", "json"),
        ("dict[str, int]", "json"),
        ("list", "json"),
        ("list[dict]", "json"),
        ("list[str]", "text[]"),
        ("list[int]", "bigint[]"),
        ("int | None", "bigint"),
        ("None | int", "bigint"),
        ("Optional[date]", "date"),
        ('"int | None"', "bigint"),
    ],
)
def test_the_type_of_an_argument(annotation: str, kind: str) -> None:
    step, findings = signature(f"x: {annotation}")
    assert step is not None, findings
    assert [(each.name, each.type) for each in step.arguments] == [("x", kind)]


@pytest.mark.parametrize(
    ("written", "default"),
    [
        ("x: int", None),
        ("x: int = 3", "3"),
        ("x: str = 'it''s'", "'its'"),
        ('x: str = "it\'s"', "'it''s'"),
        ("x: bool = True", "true"),
        ("x: int | None = None", "null"),
        ("x: date = date.today()", "null"),
        ("*, x: list[str] = ['a']", '["a"]'),
    ],
)
def test_a_default_is_shown_as_an_argument_has_it(written: str, default: str | None) -> None:
    step, findings = signature(written)
    assert step is not None, findings
    assert [each.default for each in step.arguments] == [default]


def test_what_the_run_has_is_no_argument() -> None:
    step, findings = signature(
        "partition: str, partition_start: datetime, partition_end: date, orders: pa.Table, "
        "payload: dict, spark: SparkSession"
    )
    assert step is not None, findings
    assert [(p.name, p.role, p.form) for p in step.parameters] == [
        ("partition", "argument", ""),
        ("partition_start", "argument", ""),
        ("partition_end", "argument", ""),
        ("orders", "rows", "arrow"),
        ("payload", "payload", ""),
        ("spark", "spark", ""),
    ]
    assert [(a.type, a.automatic) for a in step.arguments] == [
        ("text", True),
        ("timestamptz", True),
        ("date", True),
    ]


@pytest.mark.parametrize(
    ("annotation", "form"),
    [("DataFrame", "spark"), ("pa.Table", "arrow"), ("pd.DataFrame", "pandas"),
     ("list[dict]", "rows"), ("list[dict[str, object]]", "rows")],
)  # fmt: skip
def test_the_form_of_rows(annotation: str, form: str) -> None:
    step, findings = signature(f"Orders: {annotation}")
    assert step is not None, findings
    assert (step.parameters[0].form, step.parameters[0].table) == (form, ORDERS)


@pytest.mark.parametrize(
    ("parameters", "message", "hint"),
    [
        ("x: complex", "parameter x has the type complex, which no argument has", "str, int"),
        ("x", "parameter x has no type", "write x: str"),
        ("orders", "parameter orders has no type", "pyarrow.Table"),
        ("order: pa.Table", "no `on` line names a table order", "did you mean orders?"),
        ("orders: pa.Table = None", "orders is a table and needs no default", "take it away"),
        ("partition: int", "partition is not of the type int", "write partition: str"),
        ("*rest", "main is called with names, which rest does not take", "by its name"),
        ("x: int, /", "main is called with names, which x does not take", "by its name"),
        ("n: int = 'x'", "argument n: 'x' is not a valid bigint", "default of its type"),
    ],
)
def test_what_cannot_be_given_is_said(parameters: str, message: str, hint: str) -> None:
    step, (finding, *_) = signature(parameters)
    assert (step, finding.severity, finding.location.line) == (None, "error", 10)
    assert finding.message == message
    assert hint in (finding.hint or "")


def test_a_slice_needs_a_partitioned_step() -> None:
    _, (finding,) = signature("partition: str", None)
    assert finding.message == "partition is the slice, and the step is not partitioned"
    _, (finding,) = signature("partition_end: datetime", PartitionSpec("dynamic", key="$.a"))
    assert finding.message == "a dynamic partition has no partition_end"


@pytest.mark.parametrize(
    ("code", "hint"),
    [("", "write def main(...)"), ("def mian(): pass", "did you mean def main, not def mian?")],
)
def test_there_must_be_a_main(code: str, hint: str) -> None:
    read, _ = read_code(code, Path("s.py"), Path())
    assert read is not None
    step, (finding,) = read_signature(read, None, [])
    assert (step, finding.message) == (None, "the step has no function main")
    assert hint in (finding.hint or "")


def test_it_uses_spark_where_it_imports_it_to_run() -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyspark\n"
    assert signature("x: int", head=typed)[0].uses_spark is False  # type: ignore[union-attr] # read
    inside = "def rows():\n    from pyspark.sql import functions\n"
    assert signature("x: int", head=inside)[0].uses_spark is True  # type: ignore[union-attr] # read
