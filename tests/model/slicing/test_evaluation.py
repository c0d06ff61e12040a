"""Which slices of an input a condition keeps, without Spark.

Tests ``model/slicing/evaluation.py``, ``model/slicing/condition_reading.py`` (conditions as
expressions) and ``model/slicing/slices_read.py`` (the values that a column has in a slice).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from penstock.model.slicing.condition_reading import Condition, either_condition, read_conditions
from penstock.model.slicing.evaluated_values import ANY_TRUTH, UNKNOWN, Casts, Span, Truths, Value
from penstock.model.slicing.evaluation import Evaluator, Expression
from penstock.model.slicing.moments import Grain
from penstock.model.slicing.slices_read import SliceColumn, values_of
from penstock.model.time.interval import Interval
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.slice import Part, Slice, span_of
from penstock.sql.text import parse_expression
from tests.model.slicing.evaluated import CONDITIONS, VALUES, expression_of

UTC = Casts(ZoneInfo("UTC"))
NEW_YORK = Casts(ZoneInfo("America/New_York"))


def condition_of(text: str) -> Condition | None:
    return read_conditions(parse_expression(text), text, lambda _: None).get(("", "c"))


@pytest.mark.parametrize(
    "text",
    [
        "c = other",
        "c = '2026-01-01' OR other = 1",
        "NOT (c = '2026-01-01' AND other = 1)",
        "c RLIKE '2026'",
        "c ILIKE 'x%'",
        "c LIKE 'x' ESCAPE '/'",
        "c LIKE ANY ('a', 'b')",
        "c IN (SELECT day FROM t)",
        "c = (SELECT max(day) FROM t)",
        "date_format(c, 'E') = 'Mon' AND other = 1 OR other = 2",
        "c + INTERVAL 1 DAY = '2026-01-01'",
        "date_diff(DAY, c, '2026-01-01') = 0",
        "my_function(c) = 1",
        "substring(c, other, 2) = '20'",
    ],
)
def test_what_may_be_true_whatever_the_column_is_bounds_nothing(text: str) -> None:
    assert condition_of(text) is None


@pytest.mark.parametrize(
    ("text", "rejects_null"),
    [
        ("c = '2026-01-01'", True),
        ("c IS NULL", False),
        ("coalesce(c, '2026-01-01') = '2026-01-01'", False),
        ("NOT (c = '2026-01-01')", True),
        ("c <=> NULL", False),
        ("nullif(c, 'a') IS NULL", False),
        ("c = 'a' AND other = 1", True),
    ],
)
def test_conditions_say_whether_they_reject_null(text: str, rejects_null: bool) -> None:
    condition = condition_of(text)
    assert condition is not None
    assert condition.rejects_null is rejects_null


def test_either_of_two_conditions_is_their_or() -> None:
    one, other = condition_of("c = 'a'"), condition_of("c = 'b'")
    assert one is not None
    assert other is not None
    (either,) = either_condition([one], [other])
    assert either.text == "(c = 'a') OR (c = 'b')"
    assert Evaluator(UTC, {}).truths(either.expression, "b") == {True}
    assert either_condition([one], []) == ()


def test_unknown_values_may_be_anything() -> None:
    evaluator = Evaluator(UTC, {})
    assert evaluator.truths(expression_of("c = 'a'"), UNKNOWN) == ANY_TRUTH
    assert evaluator.truths(expression_of("c IS NULL"), UNKNOWN) == {True, False}
    assert evaluator.value(expression_of("add_months(c, 120000)"), date(2026, 1, 1)) is UNKNOWN
    assert evaluator.truths(expression_of("c = 1"), date(2026, 1, 1)) == ANY_TRUTH


# --- the values of a column hold each that it can have


SPECS = (
    PartitionSpec("daily"),
    PartitionSpec("weekly"),
    PartitionSpec("monthly"),
    PartitionSpec("hourly"),
    PartitionSpec("daily", tz="America/New_York"),
    PartitionSpec("hourly", tz="Asia/Kolkata"),
)
SLICES = {
    "daily": ("2026-02-28", "2026-03-08", "2026-11-01"),
    "weekly": ("2026-W09", "2026-W53"),
    "monthly": ("2026-02", "2026-03"),
    "hourly": ("2026-02-28T23", "2026-11-01T01"),
}


def slices() -> Iterator[tuple[Slice, PartitionSpec | None, Interval]]:
    for spec in SPECS:
        for text in SLICES[spec.kind]:
            span = span_of(Part(text), spec)
            assert span is not None
            yield Part(text), spec, span
            yield span, None, span


def moments_in(span: Interval) -> list[datetime]:
    length, instant = span.end - span.start, timedelta(microseconds=1)
    return [*(span.start + length * part / 4 for part in range(4)), span.end - instant]


def as_types(moment: datetime, casts: Casts) -> Iterator[tuple[SliceColumn, Value]]:
    """Yield columns, each with the value that it has at a moment."""
    day = casts.wall(moment).date()
    yield SliceColumn(Grain.INSTANT), moment
    yield SliceColumn(Grain.INSTANT, is_time=True), moment
    yield SliceColumn(Grain.MIXED, is_day=True), day
    yield SliceColumn(Grain.MIXED, is_day=True), day.isoformat()
    yield SliceColumn(Grain.MIXED, is_day=True), casts.midnight(day)
    yield SliceColumn(Grain.DATE), day
    yield SliceColumn(Grain.DATE), moment


def truths_of(expression: Expression, values: tuple[Value, ...], casts: Casts) -> Truths:
    """Return what a condition may be of any of some values."""
    evaluator = Evaluator(casts, {})
    return frozenset[bool | None]().union(*(evaluator.truths(expression, v) for v in values))


@pytest.mark.parametrize("casts", [UTC, NEW_YORK], ids=str)
def test_no_value_of_a_slice_is_left_out(casts: Casts) -> None:
    expressions = [expression_of(text) for text in CONDITIONS]
    for slice_, spec, span in slices():
        by_column: dict[SliceColumn, list[Truths]] = {}
        for column, value in (pair for at in moments_in(span) for pair in as_types(at, casts)):
            if column not in by_column:
                values = values_of(column, slice_, spec, casts.zone.key)
                assert values is not None
                by_column[column] = [truths_of(each, values, casts) for each in expressions]
            for expression, known in zip(expressions, by_column[column], strict=True):
                left = truths_of(expression, (value,), casts) - known
                assert not left, f"{value} of {slice_}, {column}: {expression} is {left}"


@pytest.mark.parametrize("casts", [UTC, NEW_YORK], ids=str)
@pytest.mark.parametrize("text", VALUES)
def test_a_span_has_all_values_within_it(text: str, casts: Casts) -> None:
    evaluator, expression = Evaluator(casts, {}), expression_of(text)
    for _, _, span in slices():
        moments = moments_in(span)
        for kind in ("moment", "date"):
            inner = [casts.to(kind, moment) for moment in moments]
            whole = evaluator.value(expression, Span(inner[0], inner[-1]))
            if whole is UNKNOWN or whole is None:
                continue
            low, high = (whole.low, whole.high) if isinstance(whole, Span) else (whole, whole)
            for value in inner:
                found = evaluator.value(expression, value)
                assert found is UNKNOWN or low <= found <= high, f"{value} of {span}"


def test_the_text_of_a_slice_may_be_a_date_or_a_time() -> None:
    daily = PartitionSpec("daily")
    day, own = date(2026, 1, 1), SliceColumn(Grain.TEXT, is_managed=True)
    midnight = UTC.midnight(day)
    found = values_of(SliceColumn(Grain.VALUE), Part("2026-01-01"), daily, "UTC")
    assert found == ("2026-01-01", day, midnight, None)
    dynamic = PartitionSpec("dynamic", key="$.c")
    assert values_of(SliceColumn(Grain.VALUE), Part("eu"), dynamic, "UTC") == ("eu", None)
    for text in ("true", "1e1", "12", "nan"):  # of which other types have more than one text
        assert values_of(SliceColumn(Grain.VALUE), Part(text), dynamic, "UTC") is None
        assert values_of(own, Part(text), dynamic, "UTC") == (text, None)
