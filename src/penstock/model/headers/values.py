"""Read the values of properties and options by their type, and write them.

Each reader raises `Wrong`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from penstock.errors import PartitionError
from penstock.model.headers.syntax import Value, suggestion
from penstock.model.time.cron import SHORTCUTS, Cron, TooOften
from penstock.model.time.moments import DEFAULT, read_format, read_moment
from penstock.model.time.moments import HINT as MOMENT_HINT
from penstock.model.time.partition import PartitionSpec, check_spec
from penstock.model.time.time_range import TimeColumn
from penstock.model.values.asset import TableName
from penstock.model.values.kinds import CHANGES
from penstock.model.values.seed import SETTINGS
from penstock.settings.keys import DIALECTS
from penstock.sql.identifiers import nearest
from penstock.sql.literals import plain_text_literal
from penstock.sql.tokens import NAME, NUMBER, STRING, WORD

_UNQUOTED = re.compile(r"[^\s,'\"]+")
_WORDS = re.compile(r"[^\W\d]\w*")
_BOOLEANS = {"TRUE": True, "FALSE": False}
_TIMES = ("year", "month", "day", "hour")


def text(value: Value) -> str:
    """A text in quotes, a word or a number."""
    if len(value.tokens) == 1 and value.tokens[0].kind in {STRING, NAME, WORD, NUMBER}:
        return value.tokens[0].value
    raise value.wrong(f"`{value.text}` is not a text", _comma(value) or "put it in single quotes")


def name(value: Value) -> str:
    """The name of a column."""
    if len(value.tokens) == 1 and value.tokens[0].kind in {STRING, NAME, WORD}:
        return value.tokens[0].value
    raise value.wrong(f"`{value.text}` is not a column's name", _comma(value) or "write its name")


def _time_column(value: Value) -> TimeColumn:
    """``col``, ``(col, 'format')``, or an expression in place of the column."""
    items = value.items()
    if not items or len(items) > 2:
        hint = f"write time_column ds, or time_column (ds, '{DEFAULT}')"
        raise value.wrong(f"`{value.text}` is not a column and its format", hint)
    tokens = items[0].tokens
    single = len(tokens) == 1
    if single and tokens[0].kind not in {NAME, STRING, WORD}:
        raise value.wrong(f"`{items[0].text}` is not a column's name", "write its name")
    said = tokens[0].value if single else items[0].text
    if len(items) == 1:
        return TimeColumn(said, None, not single)
    try:
        read_format(text(items[1]))
    except ValueError as error:
        hint = f"write one such as '{DEFAULT}', 'yyyy-MM-dd' or 'epoch'"
        raise items[1].wrong(f"the format `{text(items[1])}` {error}", hint) from None
    return TimeColumn(said, text(items[1]), not single)


def boolean(value: Value) -> bool:
    found = _BOOLEANS.get(value.text.upper())
    if found is None:
        hint = _comma(value) or "write true or false"
        raise value.wrong(f"`{value.text}` is neither true nor false", hint)
    return found


def whole(value: Value) -> int:
    """0 or more."""
    if len(value.tokens) == 1 and value.tokens[0].kind == NUMBER and value.text.isdigit():
        return int(value.text)
    raise value.wrong(
        f"`{value.text}` is not a whole number, 0 or more", _comma(value) or "write 1"
    )


def _count(value: Value) -> int:
    """1 or more."""
    number = whole(value)
    if number < 1:
        raise value.wrong(f"`{value.text}` is less than 1", "write 1, or more")
    return number


def choice(*choices: str) -> Callable[[Value], str]:
    """Return the reader of one of some words, whatever the case.

    Args:
        choices: The words.

    Returns:
        A reader.
    """
    by_name = {word.casefold(): word for word in choices}

    def read(value: Value) -> str:
        word = text(value).casefold()
        if word not in by_name:
            guess = nearest(word, by_name)
            valid = f"the values are {', '.join(choices)}"
            hint = f"did you mean {by_name[guess]}? {valid}" if guess else valid
            raise value.wrong(f"`{text(value)}` is not one of its values", hint)
        return by_name[word]

    return read


def dialect(value: Value) -> str:
    """A dialect that Penstock reads; of others, what to do with the query."""
    from sqlglot.dialects.dialect import Dialects

    language = text(value).casefold()
    if language in _LIKE_SPARK:
        message = f"the dialect {language} is not one of its values"
        raise value.wrong(message, "write dialect spark, which reads such queries")
    if language in {language_.value for language_ in Dialects if language_.value}.difference(
        DIALECTS
    ):
        hint = (
            "translate the query once, with sqlglot: sqlglot.transpile(sql, read="
            f"'{language}', write='spark', pretty=True), write dialect spark, and compare the rows"
        )
        raise value.wrong(f"the dialect {language} is not in this version", hint)
    return choice(*DIALECTS)(value)


_LIKE_SPARK = ("hive", "databricks", "spark2", "sparksql")


def names(value: Value) -> tuple[str, ...]:
    """``a``, ``(a, b)`` or ``[a, b]``, each once."""
    return _once(value, [name(item) for item in value.items()])


def texts(value: Value) -> tuple[str, ...]:
    return tuple(text(item) for item in value.items())


def expressions(value: Value) -> tuple[str, ...]:
    """Expressions as written; a column in quotes is its name."""
    return _once(value, [_expression(item) for item in value.items()])


def _expression(value: Value) -> str:
    single = len(value.tokens) == 1 and value.tokens[0].kind in {NAME, STRING}
    return value.tokens[0].value if single else value.text


def _once(value: Value, found: list[str]) -> tuple[str, ...]:
    if not found:
        raise value.wrong("the list is empty", "name a column")
    folded = [each.casefold() for each in found]
    twice = next((each for each in found if folded.count(each.casefold()) > 1), None)
    if twice is not None:
        raise value.wrong(f"`{twice}` is named twice", "name each once")
    return tuple(found)


def partition_keys(value: Value) -> tuple[str, ...]:
    """The keys of a lake for those that are written, each once."""
    expressions(value)  # none twice
    keys = [key for item in value.items() for key in _partition_key(item)]
    return tuple(dict.fromkeys(keys))


def _partition_key(value: Value) -> tuple[str, ...]:
    """The keys of a lake for one key as it is written: a column, ``month(at)``, ``bucket(8, id)``.

    A lake's month is one of twelve, so ``months(at)`` and ``DATE_TRUNC('month', at)``, which are of
    one year each, are the keys year and month.
    """
    if len(value.tokens) == 1:
        return (name(value),)
    called, inside = value.tokens[0].value.lower(), value.tokens[1:]
    arguments = Value(value.source, inside).items() if inside[0].text == "(" else ()
    said = [_expression(argument) for argument in arguments]
    if called in _TIMES and len(said) == 1:
        return (f"{called}({said[0]})",)
    unit = called.removesuffix("s") if len(said) == 1 else ""
    if called == "date_trunc" and len(said) == 2:
        unit = said.pop(0).lower()
    if unit in _TIMES and len(said) == 1:
        return tuple(f"{each}({said[0]})" for each in _TIMES[: _TIMES.index(unit) + 1])
    if called == "bucket" and len(said) == 2 and any(each.isdigit() for each in said):
        buckets, column = sorted(said, key=str.isdigit, reverse=True)
        return (f"bucket({buckets}, {column})",)
    hint = f"write a column, {', '.join(f'{each}(column)' for each in _TIMES)} or bucket(8, column)"
    raise value.wrong(f"a lake cannot be partitioned by `{value.text}`", hint)


def nested(value: Value) -> tuple[tuple[str, ...], ...]:
    """``(a, (b, c))``: lists of expressions."""
    return tuple(tuple(_expression(each) for each in item.items()) for item in value.items())


def pairs(value: Value) -> tuple[tuple[str, Value], ...]:
    """``(key = value, ...)``; a key may be in quotes, and each comes once."""
    found: list[tuple[str, Value]] = []
    items = value.items() if value.bracketed() is not None else ()
    if value.bracketed() is None:
        raise value.wrong(f"`{value.text}` is not a list of pairs", "write (key = value)")
    for item in items:
        at = next((n for n, token in enumerate(item.tokens) if token.text == "="), None)
        if at is None or at == 0 or at + 1 == len(item.tokens):
            raise item.wrong(f"`{item.text}` is not a pair", "write key = value")
        key = "".join(token.value for token in item.tokens[:at])
        if key in dict(found):
            raise item.wrong(f"`{key}` is given twice", "keep one")
        found.append((key, Value(value.source, item.tokens[at + 1 :])))
    return tuple(found)


def text_pairs(value: Value) -> tuple[tuple[str, str], ...]:
    return tuple((key, text(said)) for key, said in pairs(value))


def columns(value: Value) -> tuple[tuple[str, Value], ...]:
    """``(name TYPE, ...)``: names with their types, not looked at."""
    if value.bracketed() is None:
        raise value.wrong(f"`{value.text}` is not a list of columns", "write (name TYPE, ...)")
    found: dict[str, Value] = {}
    for item in value.items():
        if len(item.tokens) < 2 or item.tokens[0].kind not in {NAME, WORD, STRING}:
            raise item.wrong(f"`{item.text}` is not a column and its type", "write name TYPE")
        column = item.tokens[0].value
        if column.casefold() in map(str.casefold, found):
            raise item.wrong(f"column {column} is declared twice", "keep one")
        found[column] = Value(value.source, item.tokens[1:])
    if not found:
        raise value.wrong("the list is empty", "write (name TYPE, ...)")
    return tuple(found.items())


def _csv_settings(value: Value) -> Mapping[str, object]:
    """``(delimiter = ';', na_values = ('-', 'x'))``: those that are given, by their names."""
    found: dict[str, object] = {}
    for key, said in pairs(value):
        if key not in SETTINGS:
            hint = suggestion(key, SETTINGS, f"there are {', '.join(SETTINGS)}")
            raise said.wrong(f"`{key}` is not a setting of CSV", hint)
        found[key] = _CSV.get(key, _letters)(said)
    marks = {"delimiter": ",", "quotechar": '"', **found}
    for other in ("quotechar", "escapechar"):
        if marks.get(other) == marks["delimiter"]:
            message = f"delimiter and {other} are both `{marks['delimiter']}`"
            raise value.wrong(message, "write different characters")
    return found


def _letters(value: Value) -> str:
    """A text in which ``\\t`` and the like stand for what they are."""
    said = text(value)
    return {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\r\\n": "\r\n"}.get(said, said)


def _letter(value: Value) -> str:
    letters = _letters(value)
    if len(letters) != 1 or letters in "\r\n":
        raise value.wrong(f"`{value.text}` is not one character", "write one, such as ';' or '\\t'")
    return letters


def _line_end(value: Value) -> str:
    letters = _letters(value)
    if letters not in {"\n", "\r", "\r\n"}:
        raise value.wrong(f"`{value.text}` does not end lines", "write '\\n', '\\r\\n' or '\\r'")
    return letters


def _encoding(value: Value) -> str:
    try:
        "".encode(text(value))
    except (LookupError, UnicodeError):  # those of no text, such as hex, as well
        raise value.wrong(f"`{value.text}` is not an encoding", "write utf-8 or latin-1") from None
    return text(value)


def _na_values(value: Value) -> object:
    """Texts of all columns, or of some: ``('-', 'x')`` or ``(price = ('-', 'x'))``."""
    inside = value.bracketed() or ()
    if any(token.text == "=" for token in inside):
        return {column: list(texts(said)) for column, said in pairs(value)}
    return list(texts(value))


_CSV: Mapping[str, Callable[[Value], object]] = {
    **dict.fromkeys(("delimiter", "quotechar", "escapechar"), _letter),
    **dict.fromkeys(("doublequote", "skipinitialspace", "keep_default_na"), boolean),
    "lineterminator": _line_end,
    "encoding": _encoding,
    "na_values": _na_values,
}


def _predicate(value: Value) -> str:
    """A condition as written, without the brackets around it."""
    inside = value.bracketed()
    return Value(value.source, inside).text if inside else value.text


def cron(value: Value) -> str:
    """An expression of five fields or a name for one, not more often than 5 minutes."""
    said = value.tokens[0].value if len(value.tokens) == 1 else value.text.replace(" ", "")
    try:
        Cron(said).check()
    except TooOften as error:
        raise value.wrong(f"`{said}` {error}", "write '*/5 * * * *'") from None
    except ValueError as error:
        hint = f"write five fields, as '0 6 * * *', or one of {', '.join(SHORTCUTS)}"
        raise value.wrong(f"`{said}` {error}", hint) from None
    return said


def zone(value: Value) -> str:
    said = text(value)
    try:
        check_spec(PartitionSpec("daily", tz=said))
    except PartitionError as error:
        raise value.wrong(f"`{said}` is not a time zone", error.hint) from None
    return said


def moment(value: Value) -> str:
    """A date or time, milliseconds since 1970, or a text such as ``1 year ago``."""
    said = text(value) if len(value.tokens) == 1 else value.text
    try:
        read_moment(said, datetime(2024, 1, 1, tzinfo=UTC))
    except ValueError:
        raise value.wrong(f"`{said}` is not a moment", MOMENT_HINT) from None
    return said


def _comma(value: Value) -> str | None:
    """The hint where the next property seems to be read as a part of this value."""
    if len(value.tokens) > 1 and all(token.kind in _PLAIN for token in value.tokens[:2]):
        hint = f"is a comma missing before `{value.tokens[1].text}`?"
        return hint if "\n" in value.text else f"{hint} Several values stand in brackets: (a, b)"
    return None


_PLAIN = frozenset({WORD, NAME, STRING, NUMBER})

READERS: Mapping[str, Callable[[Value], object]] = {
    "boolean": boolean,
    "whole": whole,
    "count": _count,
    "text": text,
    "name": name,
    "time_column": _time_column,
    "type": lambda value: value.tokens[0].value if value.tokens[0].kind == STRING else value.text,
    "change": choice(*CHANGES),
    "expressions": expressions,
    "text_pairs": text_pairs,
    "csv_settings": _csv_settings,
    "predicate": _predicate,
    "cron": cron,
}


def quoted(value: str, unless: re.Pattern[str] = _UNQUOTED) -> str:
    """Write a value in double quotes.

    Args:
        value: Any text, by default a value of a comma list.
        unless: What needs no quotes.

    Returns:
        The value, with or without quotes.
    """
    return value if unless.fullmatch(value) else '"' + value.replace('"', '""') + '"'


def write_text(text: str) -> str:
    """Return a word as it is, another text in single quotes."""
    return text if _WORDS.fullmatch(text) else plain_text_literal(text)


def write_name(name: str) -> str:
    """Return a word as it is, another name in double quotes."""
    return quoted(name, _WORDS)


def write_table(table: TableName) -> str:
    """Return the three parts of a table's name."""
    return ".".join(map(write_name, (table.lake, table.schema, table.table)))


def write_list(items: Iterable[str], *, by_lines: bool = False) -> str:
    """Return items that are written already in brackets."""
    joined = (",\n    " if by_lines else ", ").join(items)
    return f"(\n    {joined}\n  )" if by_lines else f"({joined})"
