"""``audits (name, name(option := value), ...)``: the data tests that they are.

The names and options are SQLMesh's; ``blocking := false`` and the suffix ``_non_blocking`` make a
failure a warning. Where its manual and its code differ, the manual decides, but for
``not_null_proportion``, whose name the manual contradicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.model.audit_blocks import AuditBlock
from penstock.model.data_test import (
    WARN,
    AcceptedRangeTest,
    AcceptedValuesTest,
    AggregateTest,
    CustomTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    QueryTest,
    RowCountTest,
    UniqueTest,
)
from penstock.model.ddl import values
from penstock.model.ddl.draft import Draft
from penstock.model.ddl.syntax import Property, Value, Wrong, groups
from penstock.model.time_macros import TIMES
from penstock.sql.dialect import SPARK
from penstock.sql.identifiers import nearest, quoted
from penstock.sql.literals import text_literal
from penstock.sql.tokens import NAME, STRING, WORD, closing

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_NON_BLOCKING = "_non_blocking"
_UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
_EMAIL = r"^[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+\.[a-zA-Z0-9.-]+$"
_URL = r"^(https?|ftp)://[^\s/$.?#].[^\s]*$"
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT")


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit as written, with its options by name."""

    value: Value
    name: str
    options: Mapping[str, Value]

    def column(self, option: str = "column") -> str:
        return values.name(self.options[option])

    def number(self, option: str) -> str | None:
        return _number(self.options[option]) if option in self.options else None

    @property
    def bounds(self) -> tuple[str | None, str | None]:
        """Raises Wrong where none is given."""
        low, high = self.number("min_v"), self.number("max_v")
        if low is None and high is None:
            raise self.value.wrong(f"{self.name} needs `min_v` or `max_v`", "write min_v := 0")
        return low, high

    @property
    def inclusive(self) -> bool:
        return "inclusive" not in self.options or values.boolean(self.options["inclusive"])

    def between(self, measured: str) -> str:
        """The condition that what is measured is within the bounds."""
        more, less = (">=", "<=") if self.inclusive else (">", "<")
        sides = zip((more, less), self.bounds, strict=True)
        return " AND ".join(f"{measured} {sign} {bound}" for sign, bound in sides if bound)

    def condition(self, sql: str, column: str) -> DataTest:
        return ExpressionTest(sql, label=f"{self.name} {column}", dialect=SPARK)


def read_audits(draft: Draft, prop: Property) -> None:
    for item in prop.value.items():
        where = draft.place(item)
        draft.data_tests += [(test, where) for test in tests_of(item, draft)]


def tests_of(value: Value, draft: Draft) -> tuple[DataTest, ...]:
    """The data tests that one audit stands for. Raises Wrong."""
    first = value.tokens[0]
    said = first.value.lower()
    name = said.removesuffix(_NON_BLOCKING)
    own = draft.audits.get(said) or draft.audits.get(name)
    if own is not None:
        return tuple(_of_block(value, own, draft, warns=own.name != said))
    if first.kind not in {WORD, NAME, STRING} or name not in AUDITS:
        known = (*draft.audits, *AUDITS)
        guess = nearest(name, known)
        hint = f"did you mean {guess}?" if guess else f"the audits are {', '.join(known)}"
        raise value.wrong(f"audit {first.value} does not exist", hint)
    build, required, optional = AUDITS[name]
    options = _options(value)
    blocking = options.pop("blocking", None)
    warns = said != name or (blocking is not None and not values.boolean(blocking))
    _check(value, name, options, required, optional)
    tests = [_placed(test, draft, value) for test in build(Audit(value, name, options))]
    return tuple(replace(test, severity=WARN) if warns else test for test in tests)


def _of_block(value: Value, block: AuditBlock, draft: Draft, *, warns: bool) -> Iterator[DataTest]:
    """The test that an audit of the project is. Raises Wrong."""
    options = _options(value)
    blocking = options.pop("blocking", None)
    unknown = next((given for given in options if given not in block.options), None)
    if unknown is not None:
        known = ", ".join(name for name in block.options if name not in {"this_model", *TIMES})
        message = f"`{unknown}` is not an option of the audit {block.name}"
        hint = f"its options are {known}" if known else "it has none"
        raise options[unknown].wrong(message, hint)
    given = {name: said.text for name, said in options.items()}
    if block.skip:
        message = f"the audit {block.name} is not run: it says skip true"
        draft.warn(value.start, message, "write skip false", "model-idle")
        return
    blocks = block.blocking if blocking is None else values.boolean(blocking)
    test = CustomTest(block.name, tuple(given.items()))
    yield replace(test, severity=WARN) if warns or not blocks else test


def _placed(test: DataTest, draft: Draft, value: Value) -> DataTest:
    if isinstance(test, ExpressionTest) and test.location is None:
        return replace(test, location=draft.place(value))
    return test


def _options(audit: Value) -> dict[str, Value]:
    """``(option := value, ...)``."""
    rest = audit.tokens[1:]
    if not rest:
        return {}
    if rest[0].text != "(" or closing(rest, 0) != len(rest) - 1:
        raise Wrong(
            rest[0].start,
            f"`{rest[0].text}` follows the audit",
            "write a comma before it; several audits stand in brackets",
        )
    found: dict[str, Value] = {}
    for group in groups(rest[1:-1], rest[-1].start):
        if len(group) < 3 or group[1].text not in {":=", "=>", "="}:
            hint = "write option := value"
            raise Wrong(group[0].start, f"`{group[0].text}` is not an option with its value", hint)
        name = group[0].value.lower()
        if name in found:
            raise Wrong(group[0].start, f"`{name}` is given twice", "keep one")
        found[name] = Value(audit.source, group[2:])
    return found


def _check(
    audit: Value,
    name: str,
    options: Mapping[str, Value],
    required: tuple[str, ...],
    optional: tuple[str, ...],
) -> None:
    known = (*required, *optional)
    unknown = next((given for given in options if given not in known), None)
    if unknown is not None:
        message = f"`{unknown}` is not an option of the audit"
        raise options[unknown].wrong(message, f"its options are {', '.join((*known, 'blocking'))}")
    missing = next((option for option in required if option not in options), None)
    if missing is not None:
        raise audit.wrong(f"the audit needs `{missing}`", f"write {name}({missing} := ...)")


def _number(value: Value) -> str:
    text = "".join(token.value for token in value.tokens)
    if not _NUMBER.fullmatch(text):
        raise value.wrong(f"`{value.text}` is not a number", "write a number, as 0.5")
    return text


def _text_or_number(value: Value) -> str:
    """As it is compared by `AcceptedValuesTest`."""
    joined = "".join(token.value for token in value.tokens)
    return joined if _NUMBER.fullmatch(joined) else values.text(value)


def _literal(value: Value) -> str:
    """In Spark's SQL."""
    joined = "".join(token.text for token in value.tokens)
    return joined if _NUMBER.fullmatch(joined) else text_literal(values.text(value))


def _not_null(audit: Audit) -> Iterator[DataTest]:
    yield NotNullTest(values.names(audit.options["columns"]))


def _unique_values(audit: Audit) -> Iterator[DataTest]:
    for column in values.names(audit.options["columns"]):
        yield UniqueTest((column,), nulls_equal=True)


def _unique_combination(audit: Audit) -> Iterator[DataTest]:
    yield UniqueTest(values.names(audit.options["columns"]), nulls_equal=True)


def _accepted_values(audit: Audit) -> Iterator[DataTest]:
    items = audit.options["is_in"].items()
    yield AcceptedValuesTest(audit.column(), tuple(map(_text_or_number, items)))


def _not_accepted_values(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    literals = ", ".join(map(_literal, audit.options["is_in"].items()))
    yield audit.condition(f"{quoted(column)} NOT IN ({literals})", column)


def _number_of_rows(audit: Audit) -> Iterator[DataTest]:
    yield RowCountTest(values.whole(audit.options["threshold"]) + 1)


def _forall(audit: Audit) -> Iterator[DataTest]:
    for criterion in audit.options["criteria"].items():
        where = criterion.source.location(criterion.start)
        yield ExpressionTest(criterion.text, label=f"forall {criterion.text}", location=where)


def _accepted_range(audit: Audit) -> Iterator[DataTest]:
    yield AcceptedRangeTest(audit.column(), *audit.bounds, inclusive=audit.inclusive)


def _aggregate(audit: Audit, column: str, condition: str, value: str) -> DataTest:
    return AggregateTest(condition, value, f"{audit.name} {column}", (column,))


def _at_least_one(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    count = f"count({quoted(column)})"
    yield _aggregate(audit, column, f"count(*) = 0 OR {count} > 0", count)


def _not_constant(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    low, high = f"min({quoted(column)})", f"max({quoted(column)})"
    yield _aggregate(audit, column, f"coalesce({high} > {low}, false)", low)


def _not_null_proportion(audit: Audit) -> Iterator[DataTest]:
    column, share = audit.column(), audit.number("threshold")
    count = f"count({quoted(column)})"
    yield _aggregate(audit, column, f"{count} > count(*) * {share}", f"{count} / count(*)")


def _of_column(function: str) -> Callable[[Audit], Iterator[DataTest]]:
    """An aggregate of a column that is within bounds."""

    def build(audit: Audit) -> Iterator[DataTest]:
        column = audit.column()
        measured = f"{function}({quoted(column)})"
        yield _aggregate(audit, column, audit.between(measured), measured)

    return build


def _not_empty_string(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    yield audit.condition(f"{quoted(column)} <> ''", column)


def _string_length_equal(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    yield audit.condition(f"length({quoted(column)}) = {audit.number('v')}", column)


def _string_length_between(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    yield audit.condition(audit.between(f"length({quoted(column)})"), column)


def _of_form(pattern: str) -> Callable[[Audit], Iterator[DataTest]]:
    def build(audit: Audit) -> Iterator[DataTest]:
        column = audit.column()
        yield audit.condition(f"{quoted(column)} RLIKE {text_literal(pattern)}", column)

    return build


def _valid_uuid(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    yield audit.condition(f"lower({quoted(column)}) RLIKE {text_literal(_UUID)}", column)


def _valid_http_method(audit: Audit) -> Iterator[DataTest]:
    column = audit.column()
    methods = ", ".join(map(text_literal, _METHODS))
    yield audit.condition(f"{quoted(column)} IN ({methods})", column)


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
    sql = (
        f"SELECT * FROM (SELECT *, ({name} - avg({name}) OVER ()) "
        f"/ nullif(stddev({name}) OVER (), 0) AS z_score FROM @this_model) "
        f"WHERE abs(z_score) > {most}"
    )
    yield QueryTest(sql, f"{audit.name} {column}", (column,))


def _sequential_values(audit: Audit) -> Iterator[DataTest]:
    column, step = audit.column(), audit.number("interval") or "1"
    name = quoted(column)
    sql = (
        f"SELECT * FROM (SELECT {name}, lag({name}) OVER (ORDER BY {name}) AS previous "
        f"FROM @this_model) WHERE NOT ({name} = previous + {step})"
    )
    yield QueryTest(sql, f"{audit.name} {column}", (column,))


def _mutually_exclusive_ranges(audit: Audit) -> Iterator[DataTest]:
    """A row fails whose range is empty, unknown, or goes on after the next one's beginning."""
    low, high = audit.column("lower_bound_column"), audit.column("upper_bound_column")
    order = f"ORDER BY {quoted(low)}, {quoted(high)}"
    sql = (
        f"SELECT * FROM (SELECT *, lead({quoted(low)}) OVER ({order}) AS next_lower_bound "
        f"FROM @this_model) WHERE NOT coalesce({quoted(low)} <= {quoted(high)}, false) "
        f"OR {quoted(high)} > next_lower_bound"
    )
    yield QueryTest(sql, f"{audit.name} {low}, {high}", (low, high))


def _kl_divergence(audit: Audit) -> Iterator[DataTest]:
    """The symmetrised divergence of the values of two columns, of those that both have."""
    column, other = audit.column(), audit.column("target_column")
    shares = (
        f"(SELECT {quoted(name)} AS value, count(*) / sum(count(*)) OVER () AS {share} "
        f"FROM @this_model WHERE {quoted(name)} IS NOT NULL GROUP BY {quoted(name)})"
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
    dependent = "dependent" in audit.options and values.boolean(audit.options["dependent"])
    a, b = quoted(column), quoted(other)
    cells = (
        f"SELECT {a}, {b}, count(*) AS observed, sum(count(*)) OVER (PARTITION BY {a}) * "
        f"sum(count(*)) OVER (PARTITION BY {b}) / sum(count(*)) OVER () AS expected "
        f"FROM @this_model WHERE {a} IS NOT NULL AND {b} IS NOT NULL GROUP BY {a}, {b}"
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
    "unique_values": (_unique_values, _COLUMNS, ()),
    "unique_combination_of_columns": (_unique_combination, _COLUMNS, ()),
    "accepted_values": (_accepted_values, ("column", "is_in"), ()),
    "not_accepted_values": (_not_accepted_values, ("column", "is_in"), ()),
    "number_of_rows": (_number_of_rows, ("threshold",), ()),
    "forall": (_forall, ("criteria",), ()),
    "accepted_range": (_accepted_range, _COLUMN, _BOUNDS),
    "at_least_one": (_at_least_one, _COLUMN, ()),
    "not_constant": (_not_constant, _COLUMN, ()),
    "not_null_proportion": (_not_null_proportion, ("column", "threshold"), ()),
    "mean_in_range": (_of_column("avg"), _COLUMN, _BOUNDS),
    "stddev_in_range": (_of_column("stddev"), _COLUMN, _BOUNDS),
    "not_empty_string": (_not_empty_string, _COLUMN, ()),
    "string_length_equal": (_string_length_equal, ("column", "v"), ()),
    "string_length_between": (_string_length_between, _COLUMN, _BOUNDS),
    "valid_uuid": (_valid_uuid, _COLUMN, ()),
    "valid_email": (_of_form(_EMAIL), _COLUMN, ()),
    "valid_url": (_of_form(_URL), _COLUMN, ()),
    "valid_http_method": (_valid_http_method, _COLUMN, ()),
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
