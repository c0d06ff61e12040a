"""Conditions that say which slice a query is for, and what says the slice of a row by them.

``expression = '{partition}'``, or ``expression >= $partition_start AND expression <
$partition_end``: a row belongs to the slice that its expression says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import reduce
from math import gcd

from penstock.lazy import exp
from penstock.model.script.arguments import PARTITION, PARTITION_END, PARTITION_START
from penstock.model.time.partition import PartitionSpec, bounds
from penstock.sql.literals import text_literal
from penstock.sql.query.nesting import and_parts, outermost
from penstock.sql.text import parse_expression
from penstock.sql.tokens import Token, tokenize

# What the expression may be made of: nothing that depends on other rows, the time or a setting.
_PLAIN = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Cast, exp.DataType, exp.DataTypeParam),
    *(exp.Paren, exp.Date, exp.TsOrDsToDate, exp.TimeToStr, exp.Substring, exp.Left, exp.Right),
    *(exp.Lower, exp.Upper, exp.Trim, exp.Concat, exp.DPipe, exp.Var, exp.TimestampTrunc),
    *(exp.DateTrunc, exp.Coalesce, exp.TsOrDsToTimestamp),
)
_MOST = 20_000  # places of the list that says which slice a moment belongs to


class NotJoint(Exception):
    """Slices cannot be certain to have the rows together that they have one by one.

    ``at`` is the offset in the query of what the message quotes as ``quoted``.
    """

    def __init__(self, message: str, quoted: str = "", at: int = 0) -> None:
        self.quoted = quoted
        self.at = at
        super().__init__(message)


class MadeApart(NotJoint):
    """Some slices cannot be made with others: ``groups`` of their values can."""

    def __init__(self, message: str, groups: Sequence[Sequence[str]]) -> None:
        super().__init__(message)
        self.groups = groups


@dataclass(frozen=True, slots=True)
class SliceFilter:
    """The column with the slice of a row, and the condition that it is one of the slices."""

    slice: str
    condition: str


@dataclass(frozen=True, slots=True)
class SliceCondition:
    """``expression`` says the slice, ``by_time`` where by the slice's bounds. ``where`` are the
    spans of the conditions in the text. ``as_date``: the value is compared as a date.
    """

    expression: str
    by_time: bool
    where: tuple[tuple[int, int], ...]
    as_date: bool = False

    def by_value(self, values: Sequence[str], kind: str) -> SliceFilter:
        """For slices of these values, by the expression's type in Spark.

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
        return SliceFilter(slice_, f"({self.expression}) IN ({listed})")

    def by_bounds(self, values: Sequence[str], spec: PartitionSpec) -> SliceFilter:
        """For slices of these values, in the order of time, by their bounds.

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
        return SliceFilter(slice_, condition)


def condition_in(
    tokens: Sequence[Token], where: tuple[int, int], markers: Mapping[int, str]
) -> SliceCondition | None:
    """That of a WHERE; None where it has none of the markers. Raises NotJoint, and Unreadable."""
    start, end = where
    inside = [at for at in markers if start <= at < end]
    if not inside:
        return None
    found: list[_Condition] = []
    parts = and_parts(tokens, start, end)
    if parts is None:
        raise NotJoint("its WHERE has an OR")
    for first, last in parts:
        within = [at for at in inside if first <= at < last]
        if within:
            found.append(_condition(tokens, first, last, within, markers))
    kinds = sorted((each.bound, each.sign) for each in found)
    if kinds not in ([(PARTITION, "=")], [(PARTITION_END, "<"), (PARTITION_START, ">=")]):
        raise NotJoint(
            "its WHERE does not compare one expression with '{partition}' (=), or with both of "
            "$partition_start (>=) and $partition_end (<)"
        )
    expression = found[0].expression
    if any(_same(each.expression) != _same(expression) for each in found):
        raise NotJoint("its bounds are for two expressions")
    _check_expression(expression, found[0].written)
    return SliceCondition(
        expression,
        by_time=len(found) > 1,
        where=tuple((each.start, each.end) for each in found),
        as_date=found[0].as_date,
    )


def qualifiers(expression: str) -> set[str]:
    """The tables that the columns of an expression say; "" for those that say none."""
    return {column.table.lower() for column in parse_expression(expression).find_all(exp.Column)}


@dataclass(frozen=True, slots=True)
class _Condition:
    """``expression`` compared with the slice, from ``start`` to ``end`` of the text.

    ``written`` is the offset of the expression itself.
    """

    expression: str
    sign: str
    start: int
    end: int
    written: int = 0
    bound: str = PARTITION
    as_date: bool = False


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
    for at in outermost(tokens, first, last):
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
        written=tokens[other[0]].start,
        bound=bound,
        as_date=cast == "DATE",
    )


def _cast(value: Sequence[Token]) -> str | None:
    """Return what a marker is cast to, ``""`` where it is not; None for anything else."""
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


def _check_expression(text: str, at: int) -> None:
    tree = parse_expression(text)
    for node in tree.walk():
        if not isinstance(node, _PLAIN):
            message = f"what says the slice, {text}, is more than columns, casts and texts"
            raise NotJoint(message, text, at)
    if tree.find(exp.Column) is None:
        raise NotJoint(f"what says the slice, {text}, has no column", text, at)


def _is_date(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _micros(moment: datetime) -> int:
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
