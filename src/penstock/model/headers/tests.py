"""``data_test`` lines, read and written: each form by its own small functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from penstock.errors import Location
from penstock.model.files.header_lines import (
    COLUMN,
    SHORTEST,
    CommentLine,
    Word,
    is_unclosed,
    name_of,
    quoted_values,
    unquote,
)
from penstock.model.headers.draft import LineDraft
from penstock.model.headers.values import quoted
from penstock.model.values.asset import DEFAULT_LAKE, Asset, parse_asset
from penstock.model.values.data_test import (
    ERROR,
    SEVERITIES,
    AcceptedRangeTest,
    AcceptedValuesTest,
    CustomTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    RelationshipsTest,
    RowCountTest,
    UniqueTest,
)
from penstock.sql.identifiers import nearest
from penstock.sql.literals import plain_text_literal

_PLAIN = re.compile(r"(?!.*->)[^\s,=`'\"]+")
_COLUMN = re.compile(COLUMN)
_COLUMNS = re.compile(rf"{COLUMN}(?:\s*,\s*{COLUMN})*")
_ACCEPTED = re.compile(rf"(?P<column>{COLUMN})\s*=\s*(?P<values>.*)")
_RELATION = re.compile(
    rf"(?P<column>{SHORTEST})\s*->\s*"
    r"""(?P<target>(?:"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^\s"`])+)"""
)
_TARGET = re.compile(r"""(?P<path>.+)\.(?P<column>"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^\s"'`=,.]+)""")
_SEVERITY = re.compile(r"(?:^|\s+)severity=(?P<value>\w*)$")
_NAME = re.compile(r"\w+")
_REMARK = re.compile(r"(?:^|\s+)(?:--|#|//).*")  # a comment in a line that has none
_WHOLE_TABLE = re.compile(r"\s+whole\s+table$", re.IGNORECASE)
_IN = re.compile(r"\s+(?:in|IN)\s*\((.*)\)\s*")
_FLAGS = {"true": True, "false": False}


class _Wrong(Exception):
    """Part of a line is wrong, at a place of its own."""

    def __init__(self, where: Location, message: str, hint: str) -> None:
        self.where, self.message, self.hint = where, message, hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class _Rest:
    """The rest of a line, behind the kind of its test and without ``severity=``.

    ``text`` is at ``offset`` of the line, and ``first`` is the word before it.
    """

    line: CommentLine
    first: Word
    text: str
    offset: int
    severity: str = ERROR

    @property
    def location(self) -> Location:
        return self.line.at(self.offset)

    def words(self, after: Word | None = None) -> tuple[Word, ...]:
        end = self.line.column + self.offset + len(self.text)
        words = self.line.options(after=after or self.first)
        return tuple(word for word in words if (word.location.column or 0) < end)

    def options(self, after: Word, known: Sequence[str] | None = None) -> dict[str, Word]:
        """``name=value`` words; ``known`` are their names, if not any will do.

        Raises `_Wrong`.
        """
        options: dict[str, Word] = {}
        for word in self.words(after):
            name, equals, text = word.text.partition("=")
            if not equals or not _NAME.fullmatch(name) or (known and name not in known):
                raise _Wrong(word.location, *_unknown_option(word.text, name, known))
            if name in options:
                raise _Wrong(word.location, f"`{name}=` is given twice", "keep one")
            if is_unclosed(text):
                raise _Wrong(word.location, f"`{name}={text[0]}` has no closing quote", "close it")
            if not unquote(text) and text[:1] not in {"'", '"'}:
                raise _Wrong(word.location, f"`{name}=` is empty", "give it a value")
            options[name] = Word(unquote(text), word.location)
        return options


def _unknown_option(text: str, name: str, known: Sequence[str] | None) -> tuple[str, str]:
    if known is None:
        return f"`{text}` is not an argument of a test", "write it as name=value"
    guess = nearest(name, known)
    value = text.partition("=")[2] or "VALUE"
    hint = f"did you mean `{guess}={value}`?" if guess else f"the options are {', '.join(known)}"
    return f"`{text}` is not an option of this test", hint


def data_test(line: CommentLine, draft: LineDraft) -> None:
    """Accumulates. A line that cannot be read would publish untested data: an error."""
    try:
        test = _read(line, draft)
    except _Wrong as wrong:
        draft.error(wrong.where, wrong.message, wrong.hint, rule="data-test-option")
        return
    if test is not None:
        tests = draft.annotations.data_tests
        draft.places[f"data_test:{len(tests)}"] = line.location
        draft.record(data_tests=(*tests, test))


def _read(line: CommentLine, draft: LineDraft) -> DataTest | None:
    words = line.words
    kind = words[0].text if words else ""
    reader = _FORMS[kind].reader if kind in _FORMS else _custom
    rest = _rest(line, words[0]) if words else None
    test = reader(rest) if rest else None
    if test is None:
        _refuse(line, kind, rest, draft)
    elif rest is not None and isinstance(test, AcceptedValuesTest):
        _report_lost_values(line, rest.text, test, draft)
    return test


def _refuse(line: CommentLine, kind: str, rest: _Rest | None, draft: LineDraft) -> None:
    guess = kind if kind in _FORMS else nearest(kind, _FORMS)
    text = _REMARK.sub("", rest.text) if rest else ""
    form = _nearest_form(guess, text) if guess else "path/of/test"
    known = kind in _FORMS or "/" in kind or not kind
    reason = "it is not a data test" if known else f"data test {kind!r} does not exist"
    severity = "" if rest is None or rest.severity == ERROR else f" severity={rest.severity}"
    draft.refuse(line, reason, f"data_test {form}{severity}")


def _rest(line: CommentLine, first: Word) -> _Rest:
    """Raises `_Wrong`."""
    start = (first.location.column or 0) - line.column + len(first.text)
    text = line.text[start:]
    match = _SEVERITY.search(text)
    severity = ERROR
    if match is not None:
        severity = match["value"]
        if severity not in SEVERITIES:
            where = line.at(start + match.start("value") - len("severity="))
            guess = nearest(severity, SEVERITIES) or " or ".join(SEVERITIES)
            message = f"`severity={severity}`: severity has no such value"
            raise _Wrong(where, message, f"write severity={guess}")
        text = text[: match.start()]
    offset = start + len(text) - len(text.lstrip())
    return _Rest(line, first, text.strip(), offset, severity)


def _nearest_form(kind: str, rest: str) -> str:
    """The test of that kind on the column that the line seems to mean, if it would be valid."""
    if kind in _WITHOUT_COLUMN:
        return f"{kind}{_FORMS[kind].example}"
    rest = _IN.sub(r" = \1", rest)
    names = [match.group() for match in _COLUMN.finditer(rest)]
    column = names[0] if names else "column"
    tail = rest.partition(column)[2].strip().removeprefix("=").removeprefix("->").strip()
    guesses = [f"{column} = {tail}", f"{column} -> {tail}", *_tables(column, tail)]
    guesses.append(f"{column}{_FORMS[kind].example}")
    if kind in {"unique", "not_null"}:
        guesses.insert(0, ", ".join(names))
    return next(f"{kind} {guess}" for guess in guesses if _is_valid(kind, guess))


def _tables(column: str, written: str) -> Iterator[str]:
    """The reference that a name of a table and column, or of a table alone, was meant to be."""
    path = written.removeprefix("ducklake://")
    if re.fullmatch(r"\w+(?:[./]\w+)*", path):
        lake = "" if "/" in path else f"{DEFAULT_LAKE}/"
        yield f"{column} -> ducklake://{lake}{path}"
        yield f"{column} -> ducklake://{lake}{path}.{column}"


def _is_valid(kind: str, rest: str) -> bool:
    line = CommentLine(Path("guess"), 1, 1, "--", f"data_test {kind} {rest}")
    try:
        return _FORMS[kind].reader(_rest(line, line.words[0])) is not None
    except _Wrong:
        return False


def split_asset_column(text: str) -> tuple[Asset, str] | None:
    """``<asset>.<column>`` cut at the dot before its column, which may be in quotes."""
    for match in (_TARGET.fullmatch(text), re.fullmatch(r"(?P<path>.+)\.(?P<column>.+)", text)):
        asset = None if match is None else parse_asset(match["path"])
        if match is not None and asset is not None:
            return asset, name_of(match["column"])
    return None


def _columns(rest: _Rest) -> tuple[str, ...] | None:
    _require_closed(rest)
    if not _COLUMNS.fullmatch(rest.text):
        return None
    columns = tuple(name_of(match.group()) for match in _COLUMN.finditer(rest.text))
    if len(set(columns)) < len(columns):
        raise _Wrong(rest.location, f"`{rest.text}` names a column twice", "name each once")
    return columns


def _require_closed(rest: _Rest) -> None:
    """Raise `_Wrong` for a column that a quote opens and none closes."""
    for quote in ('"', "`"):
        if rest.text.startswith(quote) and rest.text.count(quote) % 2:
            message = f"`{rest.text}`: the name of the column has no closing {quote}"
            raise _Wrong(rest.location, message, "close it")


def _unique(rest: _Rest) -> DataTest | None:
    whole = _WHOLE_TABLE.search(rest.text)
    columns = _columns(rest if whole is None else replace(rest, text=rest.text[: whole.start()]))
    if not columns:
        return None
    return UniqueTest(columns, whole_table=whole is not None, severity=rest.severity)


def _not_null(rest: _Rest) -> DataTest | None:
    columns = _columns(rest)
    return NotNullTest(columns, severity=rest.severity) if columns else None


def _accepted_values(rest: _Rest) -> DataTest | None:
    _require_closed(rest)
    match = _ACCEPTED.fullmatch(rest.text)
    if match is None:
        return None
    if is_unclosed(match["values"]):
        message = f"`{match['values']}`: a quote is not closed, or something follows it"
        hint = "close it; a quote inside of a value is doubled: 'it''s'"
        raise _Wrong(rest.line.at(rest.offset + match.start("values")), message, hint)
    values = tuple(value for value, in_them in quoted_values(match["values"]) if value or in_them)
    if not values:
        return None
    return AcceptedValuesTest(name_of(match["column"]), values, severity=rest.severity)


def _accepted_range(rest: _Rest) -> DataTest | None:
    _require_closed(rest)
    match = _COLUMN.match(rest.text)
    after = rest.text[match.end() :] if match else ""
    if match is None or not after[:1].isspace():
        return None
    options = rest.options(Word(match.group(), rest.location), ("min", "max", "inclusive"))
    low, high, inclusive = (options.get(name) for name in ("min", "max", "inclusive"))
    if low is None and high is None:
        return None
    if inclusive is not None and inclusive.text not in _FLAGS:
        message = f"`inclusive={inclusive.text}`: inclusive has no such value"
        raise _Wrong(inclusive.location, message, "write inclusive=true or inclusive=false")
    if low and high and _is_less(high.text, low.text):
        message = f"no value is from {low.text} to {high.text}"
        raise _Wrong(high.location, message, "write the smaller bound as min=")
    return AcceptedRangeTest(
        name_of(match.group()),
        low.text if low else None,
        high.text if high else None,
        _FLAGS[inclusive.text] if inclusive else True,
        severity=rest.severity,
    )


def _is_less(one: str, other: str) -> bool:
    """Of numbers: other values are compared by their column's type, which is not known yet."""
    try:
        return Decimal(one) < Decimal(other)
    except InvalidOperation:
        return False


def _row_count(rest: _Rest) -> DataTest | None:
    options = rest.options(rest.first, ("min", "max"))
    counts: dict[str, int] = {}
    for name, word in options.items():
        if not re.fullmatch(r"[0-9]{1,18}", word.text):
            message = f"`{name}={word.text}` is not a number of rows"
            raise _Wrong(word.location, message, f"write a whole number, as {name}=1")
        counts[name] = int(word.text)
    low, high = counts.get("min"), counts.get("max")
    if low is None and high is None:
        return None
    if low is not None and high is not None and high < low:
        message = f"no number is from {low} to {high}"
        raise _Wrong(options["max"].location, message, "write the smaller number as min=")
    return RowCountTest(low, high, severity=rest.severity)


def _expression(rest: _Rest) -> DataTest | None:
    if not rest.text:
        return None
    return ExpressionTest(rest.text, location=rest.location, severity=rest.severity)


def _relationships(rest: _Rest) -> DataTest | None:
    _require_closed(rest)
    match = _RELATION.fullmatch(rest.text)
    found = split_asset_column(match["target"]) if match else None
    if match is None or found is None:
        return None
    return RelationshipsTest(name_of(match["column"]), *found, severity=rest.severity)


def _custom(rest: _Rest) -> DataTest | None:
    path = rest.first.text
    if "/" not in path:
        return None
    options = rest.options(rest.first)
    values = tuple((name, word.text) for name, word in options.items())
    return CustomTest(path, values, severity=rest.severity)


def _report_lost_values(
    line: CommentLine, rest: str, test: AcceptedValuesTest, draft: LineDraft
) -> None:
    match = _ACCEPTED.fullmatch(rest)
    written = len(quoted_values(match["values"])) if match else 0
    if written > len(test.values):
        draft.warn(
            line.location,
            f"`{line.text}`: an empty value is not an accepted value and is dropped",
            "list the values that may occur; NULL is always accepted",
            rule="accepted-values-empty",
        )


def write_test(test: DataTest) -> str | None:
    """Write a data test.

    Args:
        test: A test of either form.

    Returns:
        What follows ``data_test``; None of a test that only audits have.
    """
    severity = "" if test.severity == ERROR else f" severity={test.severity}"
    match test:
        case UniqueTest(nulls_equal=True):
            return None
        case ExpressionTest(label=label) if label:
            return None
        case CustomTest(path=path, options=options):  # without a slash an AUDIT block
            return f"{path}{_write_options(**dict(options))}{severity}" if "/" in path else None
    form = _FORMS.get(test.kind)
    return None if form is None else f"{test.kind}{form.writer(test)}{severity}"


def _write_options(**options: object) -> str:
    texts = {name: str(value) for name, value in options.items() if value is not None}
    return "".join(f" {name}={quoted(text)}" for name, text in texts.items())


def _column_name(name: str) -> str:
    """A column of a test, in quotes where it needs them."""
    return quoted(name, _PLAIN)


def _column_names(test: UniqueTest | NotNullTest) -> str:
    return f" {', '.join(map(_column_name, test.columns))}"


def _write_values(test: AcceptedValuesTest) -> str:
    values = (
        value
        if value and value == value.strip() and not set(value) & set(",'\"")
        else plain_text_literal(value)
        for value in test.values
    )
    return f" {_column_name(test.column)} = {', '.join(values)}"


def _write_range(test: AcceptedRangeTest) -> str:
    inclusive = None if test.inclusive else "false"
    options = _write_options(min=test.minimum, max=test.maximum, inclusive=inclusive)
    return f" {_column_name(test.column)}{options}"


@dataclass(frozen=True, slots=True)
class _Form:
    """A kind of test; the example is what may follow it and a column."""

    reader: Callable[[_Rest], DataTest | None]
    writer: Callable[[Any], str]  # Any: each writes its own kind of test, which the key promises
    example: str = ""


_FORMS: Mapping[str, _Form] = {
    "unique": _Form(
        _unique, lambda test: _column_names(test) + (" whole table" if test.whole_table else "")
    ),
    "not_null": _Form(_not_null, _column_names),
    "accepted_values": _Form(_accepted_values, _write_values, " = a,b"),
    "accepted_range": _Form(_accepted_range, _write_range, " min=0 max=100"),
    "row_count": _Form(
        _row_count, lambda test: _write_options(min=test.minimum, max=test.maximum), " min=1"
    ),
    "expression": _Form(_expression, lambda test: f" {test.sql}", " column > 0"),
    "relationships": _Form(
        _relationships,
        lambda test: f" {_column_name(test.column)} -> {test.to}.{_column_name(test.to_column)}",
        " -> ducklake://main/table.column",
    ),
}
_WITHOUT_COLUMN = frozenset({"row_count", "expression"})
