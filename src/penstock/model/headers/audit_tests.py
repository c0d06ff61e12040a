"""The built-in audits: what tests each stands for, and the options that it has.

Where SQLMesh's manual and its code differ, the manual decides, but for ``not_null_proportion``,
whose name the manual contradicts; both their names of options are taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.model.headers import values
from penstock.model.headers.syntax import Value
from penstock.model.values.data_test import (
    AcceptedRangeTest,
    AcceptedValuesTest,
    AggregateTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    QueryTest,
    RowCountTest,
    UniqueTest,
)
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import quoted
from penstock.sql.literals import text_literal
from penstock.sql.tokens import STRING

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
_EMAIL = r"^[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9.-]+$"
_URL = r"^(https?|ftp)://[^\s/$.?#].[^\s]*$"
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT")


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit as written, with its options by name.

    ``where`` is its ``condition``, in Spark's SQL: rows for which it does not hold are left out;
    ``written`` is that in the script's dialect.
    ``spelled`` are the options in the words of the audit.
    """

    value: Value
    name: str
    options: Mapping[str, Value]
    where: str | None = None
    written: str | None = None
    spelled: frozenset[str] = frozenset()

    def column(self, option: str = "column") -> str:
        return values.name(self.options[option])

    def number(self, option: str) -> str | None:
        return _number(self.options[option]) if option in self.options else None

    @property
    def bounds(self) -> tuple[str | None, str | None]:
        """Numbers. Raises Wrong where none is given."""
        return self._bounds(_number)

    @property
    def values_between(self) -> tuple[str | None, str | None]:
        """Numbers, dates, times or texts, each as its text. Raises Wrong where none is given."""
        return self._bounds(_bound)

    def _bounds(self, read: Callable[[Value], str]) -> tuple[str | None, str | None]:
        given = (self.options.get("min_v"), self.options.get("max_v"))
        low, high = (None if value is None else read(value) for value in given)
        if low is None and high is None:
            raise self.value.wrong(f"{self.name} needs `min_v` or `max_v`", "write min_v := 0")
        return low, high

    @property
    def inclusive(self) -> bool:
        return "inclusive" not in self.options or values.boolean(self.options["inclusive"])

    def between(self, measured: str) -> str:
        """The condition that what is measured is within the bounds."""
        more, less = (">=", "<=") if self.inclusive else (">", "<")
        return self._within(measured, zip((more, less), self.bounds, strict=True))

    @staticmethod
    def _within(measured: str, sides: Iterable[tuple[str, str | None]]) -> str:
        return " AND ".join(f"{measured} {sign} {bound}" for sign, bound in sides if bound)

    def of_values(self, measured: str, bounds: Iterable[str | None]) -> str:
        """`between` of bounds that may be texts."""
        more, less = (">=", "<=") if self.inclusive else (">", "<")
        literals = (
            bound if bound is None or _NUMBER.fullmatch(bound) else text_literal(bound)
            for bound in bounds
        )
        return self._within(measured, zip((more, less), literals, strict=True))

    def of_rows(self, value: str) -> str:
        """A value as an aggregate of the rows that the audit is about takes it."""
        # Observed aggregates, which tests are counted by, may have no FILTER.
        return value if self.where is None else f"CASE WHEN {self.where} THEN {value} END"

    @property
    def count(self) -> str:
        return "count(*)" if self.where is None else f"count({self.of_rows('1')})"

    @property
    def rows(self) -> str:
        """The rows that a query of the audit is about."""
        selected = f"(SELECT * FROM @this_model WHERE {self.where})"
        return "@this_model" if self.where is None else selected

    def condition(self, sql: str, column: str) -> DataTest:
        if self.where is not None:
            sql = f"NOT coalesce(({self.where}), false) OR ({sql})"
        return ExpressionTest(sql, label=f"{self.name} {column}", dialect=SPARK)


def _number(value: Value) -> str:
    text = "".join(token.value for token in value.tokens)
    if not _NUMBER.fullmatch(text):
        raise value.wrong(f"`{value.text}` is not a number", "write a number, as 0.5")
    return text


def _bound(value: Value) -> str:
    """A number, a text, or a date or time, as ``DATE '2026-01-31'``, as its text."""
    first, *rest = value.tokens
    if first.kind == STRING and (not rest or rest[0].text == "::"):
        return first.value
    if first.upper in _TIMES and len(rest) == 1 and rest[0].kind == STRING:
        return rest[0].value
    joined = "".join(token.value for token in value.tokens)
    if not _NUMBER.fullmatch(joined):
        message = f"`{value.text}` is not a number, date, time or text"
        raise value.wrong(message, "write it out, as 0.5 or '2026-01-31'")
    return joined


_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")


def _text_or_number(value: Value) -> str:
    """As it is compared by `AcceptedValuesTest`."""
    joined = "".join(token.value for token in value.tokens)
    return joined if _NUMBER.fullmatch(joined) else values.text(value)


def _literal(value: Value) -> str:
    """In Spark's SQL."""
    joined = "".join(token.text for token in value.tokens)
    return joined if _NUMBER.fullmatch(joined) else text_literal(values.text(value))


def _literals(listed: Value) -> str:
    return ", ".join(map(_literal, listed.items()))


def _not_null(audit: Audit) -> Iterator[DataTest]:
    columns = values.names(audit.options["columns"])
    if audit.where is None:
        yield NotNullTest(columns)
    else:
        yield from (audit.condition(f"{quoted(name)} IS NOT NULL", name) for name in columns)


def _unique(audit: Audit, columns: tuple[str, ...]) -> DataTest:
    if audit.where is None:
        return UniqueTest(columns, nulls_equal=True)
    names = ", ".join(map(quoted, columns))
    sql = f"SELECT {names} FROM {audit.rows} GROUP BY {names} HAVING count(*) > 1"
    return QueryTest(sql, f"{audit.name} {', '.join(columns)}", columns)


def _accepted_values(audit: Audit) -> Iterator[DataTest]:
    listed, column = audit.options["is_in"], audit.column()
    if audit.where is None:
        yield AcceptedValuesTest(column, tuple(map(_text_or_number, listed.items())))
    else:
        yield audit.condition(f"{quoted(column)} IN ({_literals(listed)})", column)


def _number_of_rows(audit: Audit) -> Iterator[DataTest]:
    least = values.whole(audit.options["threshold"]) + 1
    if audit.where is None:
        yield RowCountTest(least)
    else:
        yield AggregateTest(f"{audit.count} >= {least}", audit.count, audit.name, ())


def _forall(audit: Audit) -> Iterator[DataTest]:
    for criterion in audit.options["criteria"].items():
        where, sql = criterion.source.location(criterion.start), criterion.text
        if audit.written is not None:
            sql = f"NOT coalesce(({audit.written}), false) OR ({sql})"
        yield ExpressionTest(sql, label=f"forall {criterion.text}", location=where)


def _accepted_range(audit: Audit) -> Iterator[DataTest]:
    column, bounds = audit.column(), audit.values_between
    if audit.where is None:
        yield AcceptedRangeTest(column, *bounds, inclusive=audit.inclusive)
    else:
        yield audit.condition(audit.of_values(quoted(column), bounds), column)


def _aggregate(audit: Audit, column: str, condition: str, value: str) -> DataTest:
    return AggregateTest(condition, value, f"{audit.name} {column}", (column,))


def _at_least_one(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    count = f"count({audit.of_rows(quoted(column))})"
    yield _aggregate(audit, column, f"{audit.count} = 0 OR {count} > 0", count)


def _not_constant(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    low, high = (f"{name}({audit.of_rows(quoted(column))})" for name in ("min", "max"))
    yield _aggregate(audit, column, f"coalesce({high} > {low}, false)", low)


def _not_null_proportion(audit: Audit) -> Iterator[DataTest]:
    column, share = audit.column(), audit.number("threshold")
    count, rows = f"count({audit.of_rows(quoted(column))})", audit.count
    yield _aggregate(audit, column, f"{count} > {rows} * {share}", f"{count} / {rows}")


def _of_column(function: str) -> Callable[[Audit], Iterator[DataTest]]:
    """An aggregate of a column that is within bounds."""

    def build(audit: Audit) -> Iterator[DataTest]:
        column = audit.column()
        measured = f"{function}({audit.of_rows(quoted(column))})"
        yield _aggregate(audit, column, audit.between(measured), measured)

    return build


def _condition(sql: Callable[[Audit, str], str]) -> Callable[[Audit], Iterator[DataTest]]:
    """A condition of one column, which is made of the column's name in quotes."""

    def build(audit: Audit) -> Iterator[DataTest]:
        column = audit.column()
        yield audit.condition(sql(audit, quoted(column)), column)

    return build


def _of_form(pattern: str) -> Callable[[Audit], Iterator[DataTest]]:
    return _condition(lambda _, column: f"{column} RLIKE {text_literal(pattern)}")


def _patterns(operator: str, *, negated: bool) -> Callable[[Audit], Iterator[DataTest]]:
    """One of the patterns matches, or none of them."""

    def build(audit: Audit) -> Iterator[DataTest]:
        column = audit.column()
        texts = values.texts(audit.options["patterns"])
        any_of = " OR ".join(f"{quoted(column)} {operator} {text_literal(text)}" for text in texts)
        yield audit.condition(f"NOT ({any_of})" if negated else any_of, column)

    return build


def _z_score(audit: Audit) -> Iterator[DataTest]:
    column, most = audit.column(), audit.number("threshold")
    name = quoted(column)
    of = audit.of_rows(name)
    sql = (
        f"SELECT * FROM (SELECT *, ({name} - avg({of}) OVER ()) "
        f"/ nullif(stddev({of}) OVER (), 0) AS z_score FROM @this_model) "
        f"WHERE abs(z_score) > {most}"
    )
    yield QueryTest(sql, f"{audit.name} {column}", (column,))


def _sequential_values(audit: Audit) -> Iterator[DataTest]:
    column, step = audit.column(), audit.number("interval") or "1"
    name = quoted(column)
    sql = (
        f"SELECT * FROM (SELECT {name}, lag({name}) OVER (ORDER BY {name}) AS previous "
        f"FROM {audit.rows}) WHERE NOT ({name} = previous + {step})"
    )
    yield QueryTest(sql, f"{audit.name} {column}", (column,))


def _mutually_exclusive_ranges(audit: Audit) -> Iterator[DataTest]:
    """A row fails whose range is empty, unknown, or continues after the next one's beginning."""
    low, high = audit.column("lower_bound_column"), audit.column("upper_bound_column")
    order = f"ORDER BY {quoted(low)}, {quoted(high)}"
    sql = (
        f"SELECT * FROM (SELECT *, lead({quoted(low)}) OVER ({order}) AS next_lower_bound "
        f"FROM {audit.rows}) WHERE NOT coalesce({quoted(low)} <= {quoted(high)}, false) "
        f"OR {quoted(high)} > next_lower_bound"
    )
    yield QueryTest(sql, f"{audit.name} {low}, {high}", (low, high))


def _kl_divergence(audit: Audit) -> Iterator[DataTest]:
    """The symmetrised divergence of the values of two columns, of those that both have."""
    column, other = audit.column(), audit.column("target_column")
    shares = (
        f"(SELECT {quoted(name)} AS value, count(*) / sum(count(*)) OVER () AS {share} "
        f"FROM {audit.rows} WHERE {quoted(name)} IS NOT NULL GROUP BY {quoted(name)})"
        for name, share in ((column, "p"), (other, "q"))
    )
    sql = (
        "SELECT kl_divergence FROM (SELECT sum((p - q) * ln(p / q)) AS kl_divergence "
        f"FROM {' JOIN '.join(shares)} USING (value)) "
        f"WHERE kl_divergence > {audit.number('threshold')}"
    )
    yield QueryTest(sql, f"{audit.name} {column}, {other}", (column, other))


def _chi_square(audit: Audit) -> Iterator[DataTest]:
    """Pearson's statistic of two columns over all pairs of their values, also those that no row
    has: the sum of observed² / expected, less the number of rows.
    """
    column, other = audit.column(), audit.column("target_column")
    dependent = "column_a" in audit.spelled  # where SQLMesh's words are used, as its default is
    if "dependent" in audit.options:
        dependent = values.boolean(audit.options["dependent"])
    a, b = quoted(column), quoted(other)
    cells = (
        f"SELECT {a}, {b}, count(*) AS observed, sum(count(*)) OVER (PARTITION BY {a}) * "
        f"sum(count(*)) OVER (PARTITION BY {b}) / sum(count(*)) OVER () AS expected "
        f"FROM {audit.rows} WHERE {a} IS NOT NULL AND {b} IS NOT NULL GROUP BY {a}, {b}"
    )
    sql = (
        f"SELECT * FROM (SELECT (count(DISTINCT {a}) - 1) * (count(DISTINCT {b}) - 1) "
        "AS degrees_of_freedom, sum(observed * observed / expected) - sum(observed) AS chi_square "
        f"FROM ({cells})) WHERE chi_square {'<=' if dependent else '>'} "
        f"{audit.number('critical_value')}"
    )
    yield QueryTest(sql, f"{audit.name} {column}, {other}", (column, other))


_Builder = Callable[[Audit], Iterable[DataTest]]
_COLUMN, _COLUMNS = ("column",), ("columns",)
_BOUNDS = ("min_v", "max_v", "inclusive")

#: name -> its builder, the options that it needs, and those that it may have
AUDITS: Mapping[str, tuple[_Builder, tuple[str, ...], tuple[str, ...]]] = {
    "not_null": (_not_null, _COLUMNS, ()),
    "unique_values": (
        lambda audit: [
            _unique(audit, (column,)) for column in values.names(audit.options["columns"])
        ],
        _COLUMNS,
        (),
    ),
    "unique_combination_of_columns": (
        lambda audit: [_unique(audit, values.names(audit.options["columns"]))],
        _COLUMNS,
        (),
    ),
    "accepted_values": (_accepted_values, ("column", "is_in"), ()),
    "not_accepted_values": (
        _condition(lambda audit, column: f"{column} NOT IN ({_literals(audit.options['is_in'])})"),
        ("column", "is_in"),
        (),
    ),
    "number_of_rows": (_number_of_rows, ("threshold",), ()),
    "forall": (_forall, ("criteria",), ()),
    "accepted_range": (_accepted_range, _COLUMN, _BOUNDS),
    "at_least_one": (_at_least_one, _COLUMN, ()),
    "not_constant": (_not_constant, _COLUMN, ()),
    "not_null_proportion": (_not_null_proportion, ("column", "threshold"), ()),
    "mean_in_range": (_of_column("avg"), _COLUMN, _BOUNDS),
    "stddev_in_range": (_of_column("stddev"), _COLUMN, _BOUNDS),
    "not_empty_string": (_condition(lambda _, column: f"{column} <> ''"), _COLUMN, ()),
    "string_length_equal": (
        _condition(lambda audit, column: f"length({column}) = {audit.number('v')}"),
        ("column", "v"),
        (),
    ),
    "string_length_between": (
        _condition(lambda audit, column: audit.between(f"length({column})")),
        _COLUMN,
        _BOUNDS,
    ),
    "valid_uuid": (
        _condition(lambda _, column: f"lower({column}) RLIKE {text_literal(_UUID)}"),
        _COLUMN,
        (),
    ),
    "valid_email": (_of_form(_EMAIL), _COLUMN, ()),
    "valid_url": (_of_form(_URL), _COLUMN, ()),
    "valid_http_method": (
        _condition(lambda _, column: f"{column} IN ({', '.join(map(text_literal, _METHODS))})"),
        _COLUMN,
        (),
    ),
    "match_regex_pattern_list": (_patterns("RLIKE", negated=False), ("column", "patterns"), ()),
    "not_match_regex_pattern_list": (_patterns("RLIKE", negated=True), ("column", "patterns"), ()),
    "match_like_pattern_list": (_patterns("LIKE", negated=False), ("column", "patterns"), ()),
    "not_match_like_pattern_list": (_patterns("LIKE", negated=True), ("column", "patterns"), ()),
    "sequential_values": (_sequential_values, _COLUMN, ("interval",)),
    "mutually_exclusive_ranges": (
        _mutually_exclusive_ranges,
        ("lower_bound_column", "upper_bound_column"),
        (),
    ),
    "z_score": (_z_score, ("column", "threshold"), ()),
    "kl_divergence": (_kl_divergence, ("column", "target_column", "threshold"), ()),
    "chi_square": (
        _chi_square,
        ("column", "target_column", "critical_value"),
        ("dependent",),
    ),
}
