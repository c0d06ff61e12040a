"""Slices of one model in one query: whether that is certain to give the same rows, and the query.

A query has to be one SELECT that says which slice it is for in one place, a condition of its WHERE:
``expression = '{partition}'``, or ``expression >= $partition_start AND expression <
$partition_end``. Then the FROM is the same for every slice, and a row belongs to the slice that the
expression says. What follows the WHERE must not look across slices: the expression is added to
GROUP BY, and has to be in the PARTITION BY of windows; LIMIT and the like are refused. In doubt
slices are made one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from math import gcd

from penstock.model import data_test
from penstock.model.arguments import PARTITION, PARTITION_END, PARTITION_START
from penstock.model.asset import table_of
from penstock.model.constants import ArgumentValue, Constant, PartitionValue
from penstock.model.model import Model
from penstock.model.partition import TIME_KINDS, PartitionSpec, bounds
from penstock.model.partition_token import TOKEN
from penstock.model.render import RenderedQuery, UnsupportedSql, trial_names
from penstock.sql.identifiers import fold, quoted
from penstock.sql.literals import text_literal
from penstock.sql.text import Edit, Unreadable, parse_expression, parse_query
from penstock.sql.tokens import ARGUMENT, MARKER, STRING, WORD, Token, depth_of, tokenize
from penstock.sql.trees import exp

STRATEGIES = ("replace", "append")  # that leave other slices alone, in whatever order they come
# Tests that rows pass together only if those of each slice do.
MONOTONE = (
    data_test.UniqueTest,
    data_test.NotNullTest,
    data_test.AcceptedValuesTest,
    data_test.AcceptedRangeTest,
    data_test.RelationshipsTest,
)
_ENDS_WHERE = frozenset({"GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER"})
_REFUSED = {
    "LIMIT": "it has a LIMIT",
    "OFFSET": "it has an OFFSET",
    "FETCH": "it has a FETCH",
    "WINDOW": "it has a WINDOW clause",
    "SORT": "it has SORT BY",
    "CLUSTER": "it has CLUSTER BY",
    "DISTRIBUTE": "it has DISTRIBUTE BY",
}
_VOLATILE = frozenset(
    {
        *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "now", "curdate"),
        *("monotonically_increasing_id", "spark_partition_id", "unix_timestamp", "localtimestamp"),
        *("current_timestamp", "current_date", "current_time", "input_file_name"),
        *("input_file_block_start", "input_file_block_length"),
    }
)
# What the expression may be made of: nothing that depends on other rows, the time or a setting.
_PLAIN = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Cast, exp.DataType, exp.DataTypeParam),
    *(exp.Paren, exp.Date, exp.TsOrDsToDate, exp.TimeToStr, exp.Substring, exp.Left, exp.Right),
    *(exp.Lower, exp.Upper, exp.Trim, exp.Concat, exp.DPipe, exp.Var, exp.TimestampTrunc),
    *(exp.DateTrunc, exp.Coalesce, exp.TsOrDsToTimestamp),
)
_MOST = 20_000  # places of the list that says which slice a moment belongs to


class NotJoint(Exception):
    """Slices cannot be certain to have the rows together that they have one by one."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A query that may be asked for many slices.

    ``expression`` is what says the slice, ``by_time`` whether by the slice's bounds. ``where`` are
    the spans of the conditions, ``selected`` and ``grouped`` the places after the SELECT list and
    the GROUP BY. ``as_date``: the value is compared as a date.
    """

    sql: str
    expression: str
    by_time: bool
    where: tuple[tuple[int, int], ...]
    selected: int
    grouped: int | None
    as_date: bool = False

    def query(self, column: str, slice_: str, condition: str) -> str:
        """The query with its slice as the last column, for rows that satisfy ``condition``."""
        (start, end), *others = self.where
        edits = [
            Edit(self.selected, self.selected, f", {slice_} AS {quoted(column)} "),
            Edit(start, end, f"({condition})"),
            *(Edit(first, last, "TRUE") for first, last in others),
        ]
        if self.grouped is not None:
            edits.append(Edit(self.grouped, self.grouped, f", {slice_} "))
        parts: list[str] = []
        position = 0
        for edit in sorted(edits, key=lambda edit: edit.start):
            parts += [self.sql[position : edit.start], edit.text]
            position = edit.end
        return "".join([*parts, self.sql[position:]])

    def by_value(self, column: str, values: Sequence[str], kind: str) -> str:
        """The query for slices of these values, by the expression's type in Spark.

        Raises NotJoint for types that compare otherwise than their texts.
        """
        if kind == "date":
            if any(not _is_date(value) for value in values):
                raise NotJoint(f"{self.expression} is a date, and the partitions are not")
            listed = ", ".join(f"DATE {text_literal(value)}" for value in values)
        elif kind == "string" and not self.as_date:
            listed = ", ".join(map(text_literal, values))
        else:
            wanted = "a date" if self.as_date else "a text or a date"
            raise NotJoint(f"{self.expression} is {kind}, and not {wanted}")
        slice_ = f"CAST({self.expression} AS STRING)"
        return self.query(column, slice_, f"({self.expression}) IN ({listed})")

    def by_bounds(self, column: str, values: Sequence[str], spec: PartitionSpec) -> str:
        """The query for slices of these values, in the order of time, by their bounds.

        A list has the slice of each stretch of time that all bounds are multiples of. Raises
        NotJoint where that is too long.
        """
        spans = [tuple(map(_micros, bounds(spec, value))) for value in values]
        first, last = spans[0][0], spans[-1][1]
        step = reduce(gcd, (bound - first for span in spans for bound in span), last - first)
        if (last - first) // step > _MOST:
            raise NotJoint("the range is too long for one list of its slices")
        listed: list[str] = []
        for value, (start, end) in zip(values, spans, strict=True):
            listed += ["NULL"] * ((start - first) // step - len(listed))
            listed += [text_literal(value)] * ((end - start) // step)
        moment = f"unix_micros(CAST({self.expression} AS TIMESTAMP_LTZ))"
        at = f"CAST(({moment} - {first}L) DIV {step}L AS INT) + 1"
        slice_ = f"try_element_at(array({', '.join(listed)}), {at})"
        condition = f"{moment} >= {first}L AND {moment} < {last}L"
        if "NULL" in listed:
            condition += f" AND {slice_} IS NOT NULL"
        return self.query(column, slice_, condition)

    def type_query(self, column: str) -> str:
        """The query with the expression itself in the slice's column, to learn its type."""
        return self.query(column, self.expression, "TRUE")


def why_apart(model: Model) -> str | None:
    """Why the slices of a model are made one by one; None where they may be made together."""
    try:
        _require(model)
        joint_query(model.query.render(trial_names(model.query.sources)))
    except NotJoint as error:
        return str(error)
    except (UnsupportedSql, Unreadable):
        return "its query cannot be analysed"
    return None


def _require(model: Model) -> None:
    """Raise NotJoint for what is not in the query itself."""
    spec = model.partition
    if spec is None or spec.kind not in TIME_KINDS:
        raise NotJoint("it has no partitions by time")
    if model.strategy not in STRATEGIES or model.upsert:
        raise NotJoint(f"its strategy is {model.strategy}")
    if model.columns:
        raise NotJoint("its columns are declared")
    if model.query.after:
        raise NotJoint("statements follow its query")
    if model.query.uses_interval:
        raise NotJoint("it reads by @start_... and @end_..., which each slice has of its own")
    _require_other_tables(model)
    used = [
        token
        for part in model.query.parts
        for token in part.statement.tokens
        if (token.kind, token.value) == (STRING, TOKEN)
        or (token.kind == ARGUMENT and token.value in _OF_SLICE)
    ]
    rendered = model.query.render(trial_names(model.query.sources))
    if len(used) != len(_markers(rendered)):
        raise NotJoint("what it reads depends on the partition")


def _require_other_tables(model: Model) -> None:
    """Raise NotJoint where it looks at its own table, which has other slices meanwhile."""
    own = fold(str(model.target))
    if own in {fold(str(table)) for table in model.inputs}:
        raise NotJoint("it reads its own table")
    for test in model.data_tests:
        if isinstance(test, data_test.RelationshipsTest):
            to = table_of(test.to)
            if to is None or fold(str(to)) == own:
                raise NotJoint(f"its test {test.name} reads its own table")
    for script in model.test_scripts:
        if own in {fold(str(table)) for table in script.query.reads}:
            raise NotJoint(f"its test {script.test.name} reads its own table")


_OF_SLICE = (PARTITION, PARTITION_START, PARTITION_END)


def joint_query(rendered: RenderedQuery) -> Joint:
    """Raises NotJoint, and Unreadable for what cannot be parsed."""
    sql = rendered.sql
    if rendered.calls_macros:
        raise NotJoint("it calls macros")
    tree = parse_query(sql)
    tokens = tokenize(sql)
    clauses = _clauses(tokens)
    _refuse(tree, tokens, clauses)
    assert isinstance(tree, exp.Select), "others are refused"
    conditions = _conditions(tokens, clauses, _markers(rendered))
    expression = conditions[0].expression
    if len(conditions) > 1 and any(
        _same(each.expression) != _same(expression) for each in conditions
    ):
        raise NotJoint("its bounds are for two expressions")
    _check_expression(expression)
    _check_windows(tree, expression)
    group = clauses.get("GROUP")
    return Joint(
        sql,
        expression,
        by_time=len(conditions) > 1,
        where=tuple((each.start, each.end) for each in conditions),
        selected=tokens[clauses["FROM"]].start,
        grouped=None if group is None else _end_of(tokens, clauses, group),
        as_date=conditions[0].as_date,
    )


def _refuse(tree: exp.Expr, tokens: Sequence[Token], clauses: Mapping[str, int]) -> None:
    if not isinstance(tree, exp.Select) or tokens[0].upper != "SELECT":
        raise NotJoint("it is not a single SELECT")
    for word, why in _REFUSED.items():
        if word in clauses:
            raise NotJoint(why)
    if "FROM" not in clauses or "WHERE" not in clauses:
        raise NotJoint("it has no condition on the partition")
    words = [token for token in tokens if token.kind == WORD]
    volatile = next((token.text for token in words if token.text.lower() in _VOLATILE), None)
    if volatile is not None:
        raise NotJoint(f"{volatile} is not the same from run to run")
    if any(token.upper == "TABLESAMPLE" for token in words):
        raise NotJoint("it reads a sample")
    group = tree.args.get("group")
    if group is not None and any(
        group.args.get(name) for name in ("all", "grouping_sets", "cube", "rollup", "totals")
    ):
        raise NotJoint("its GROUP BY is no plain list")
    if "HAVING" in clauses and group is None:
        raise NotJoint("it has HAVING without GROUP BY")


def _clauses(tokens: Sequence[Token]) -> dict[str, int]:
    """The index of the first word of each clause of the outermost SELECT."""
    wanted = {"FROM", "WHERE", *_ENDS_WHERE, *_REFUSED}
    found: dict[str, int] = {}
    depth = 0
    for at, token in enumerate(tokens):
        before = tokens[at - 1].upper if at else ""
        depth += _depth(token)
        if depth or token.kind != WORD or token.upper not in wanted:
            continue
        if token.upper == "FROM" and before == "DISTINCT":  # IS DISTINCT FROM
            continue
        by = tokens[at + 1].upper if at + 1 < len(tokens) else ""
        if token.upper in {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"} and by != "BY":
            continue
        found.setdefault(token.upper, at)
    return found


def _depth(token: Token) -> int:
    if token.kind == WORD and token.upper in {"CASE", "END"}:
        return 1 if token.upper == "CASE" else -1
    return depth_of(token)


def _end_of(tokens: Sequence[Token], clauses: Mapping[str, int], clause: int) -> int:
    """The place in the text after a clause."""
    later = [at for at in clauses.values() if at > clause]
    return tokens[min(later) - 1].end if later else tokens[-1].end


@dataclass(frozen=True, slots=True)
class _Condition:
    """``expression`` compared with the slice, from ``start`` to ``end`` of the text."""

    expression: str
    sign: str
    start: int
    end: int
    bound: str = PARTITION
    as_date: bool = False


def _markers(rendered: RenderedQuery) -> dict[int, str]:
    """What each marker of the slice stands for, by the number of its word."""
    names = {f":{name}": _meaning(value) for name, value in rendered.placeholders.items()}
    return {
        at: meaning
        for at, token in enumerate(tokenize(rendered.sql))
        if token.kind == MARKER and (meaning := names.get(token.text)) is not None
    }


def _meaning(value: Constant) -> str | None:
    """What of the slice a placeholder is made of; ``other`` where that is more than one value."""
    if isinstance(value, PartitionValue):
        return PARTITION
    if isinstance(value, ArgumentValue):
        return value.name if value.name in _OF_SLICE else None
    return None


def _conditions(
    tokens: Sequence[Token], clauses: Mapping[str, int], markers: Mapping[int, str]
) -> list[_Condition]:
    start = clauses["WHERE"] + 1
    later = [at for at in clauses.values() if at >= start]
    end = min(later) if later else len(tokens)
    inside = [at for at in markers if start <= at < end]
    if not markers:
        raise NotJoint("it has no condition on the partition")
    if len(inside) < len(markers):
        raise NotJoint("the partition stands outside of the WHERE of its outermost SELECT")
    found: list[_Condition] = []
    for first, last in _conjuncts(tokens, start, end):
        within = [at for at in inside if first <= at < last]
        if within:
            found.append(_condition(tokens, first, last, within, markers))
    kinds = sorted((each.bound, each.sign) for each in found)
    if kinds in ([(PARTITION, "=")], [(PARTITION_END, "<"), (PARTITION_START, ">=")]):
        return found
    raise NotJoint(
        "its WHERE does not compare one expression with '{partition}' (=), or with both of "
        "$partition_start (>=) and $partition_end (<)"
    )


def _conjuncts(tokens: Sequence[Token], start: int, end: int) -> Iterable[tuple[int, int]]:
    """What AND joins at the top of a condition. Raises NotJoint where OR does."""
    depth, first, between = 0, start, False
    for at in range(start, end):
        token = tokens[at]
        depth += _depth(token)
        if depth or token.kind != WORD:
            continue
        if token.upper == "OR":
            raise NotJoint("its WHERE has an OR")
        if token.upper == "AND" and not between:
            yield first, at
            first = at + 1
        elif token.upper == "AND":
            between = False
        between = between or token.upper == "BETWEEN"
    yield first, end


_TURNED = {"=": "=", "==": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SIGNS = frozenset(_TURNED)
# Words and signs that bind looser than a comparison, or are one.
_LOOSE = frozenset(
    {"NOT", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "AND", "OR", "<>", "!="}
)


def _condition(
    tokens: Sequence[Token],
    first: int,
    last: int,
    within: Sequence[int],
    markers: Mapping[int, str],
) -> _Condition:
    refused = NotJoint("its condition on the partition is not a plain comparison")
    signs: list[int] = []
    depth = 0
    for at in range(first, last):
        depth += _depth(tokens[at])
        if depth:
            continue
        if tokens[at].text in _SIGNS:
            signs.append(at)
        elif tokens[at].upper in _LOOSE or tokens[at].text == "<=>":
            raise refused
    if len(signs) != 1 or len(within) != 1:
        raise refused
    (sign,), (marker,) = signs, within
    left, right = (first, sign), (sign + 1, last)
    turned = marker < sign
    value, other = (left, right) if turned else (right, left)
    cast = _cast(tokens[value[0] : value[1]])
    if cast is None or other[0] >= other[1]:
        raise refused
    bound = markers[marker]
    if (bound == PARTITION) == (cast == "TIMESTAMP_LTZ") or (bound != PARTITION and not cast):
        raise refused
    text = tokens[sign].text
    return _Condition(
        expression=_text(tokens, *other),
        sign=_TURNED[text] if turned else "=" if text == "==" else text,
        start=tokens[first].start,
        end=tokens[last - 1].end,
        bound=bound,
        as_date=cast == "DATE",
    )


def _cast(value: Sequence[Token]) -> str | None:
    """What a marker is cast to, ``""`` where it is not; None for anything else."""
    if len(value) == 1:
        return ""
    words = [token.upper for token in value]
    if len(value) == 6 and words[:2] == ["CAST", "("] and words[3] == "AS" and words[5] == ")":
        return words[4] if words[4] in {"DATE", "TIMESTAMP_LTZ"} else None
    return None


def _text(tokens: Sequence[Token], first: int, last: int) -> str:
    """The words as a text of one line, without comments."""
    parts: list[str] = []
    for at in range(first, last):
        spaced = at > first and tokens[at].start > tokens[at - 1].end
        parts.append(f" {tokens[at].text}" if spaced else tokens[at].text)
    return "".join(parts)


def _same(expression: str) -> str:
    return " ".join(token.text for token in tokenize(expression)).lower()


def _check_expression(text: str) -> None:
    tree = parse_expression(text)
    for node in tree.walk():
        if not isinstance(node, _PLAIN):
            raise NotJoint(f"what says the slice, {text}, is more than columns, casts and texts")
    if tree.find(exp.Column) is None:
        raise NotJoint(f"what says the slice, {text}, has no column")


def _check_windows(tree: exp.Select, expression: str) -> None:
    wanted = parse_expression(expression)
    for window in tree.find_all(exp.Window):
        if window.parent_select is not tree:
            continue  # of a subquery, which is the same for all slices
        if wanted not in (window.args.get("partition_by") or []):
            raise NotJoint(f"a window is not partitioned by {expression}")


def _is_date(value: str) -> bool:
    try:
        return datetime.strptime(value, "%Y-%m-%d").strftime("%Y-%m-%d") == value  # noqa: DTZ007
    except ValueError:
        return False


def _micros(moment: datetime) -> int:
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
