"""``materialize [manual|scd2] <asset> [options]``: the managed table, read and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.model.files.header_lines import CommentLine, Word, is_unclosed, split_values, unquote
from penstock.model.headers.draft import LineDraft
from penstock.model.headers.values import quoted
from penstock.model.values.asset import DEFAULT_LAKE, SCHEMA_CHANGES, Materialize, parse_asset
from penstock.sql.identifiers import nearest

FORM = "materialize ducklake://main/table"
_TABLE = re.compile(r"(\w+/)?(\w+\.)?\w+")
_MODES = {"manual": "manual", "scd2": "history"}
_STRATEGIES = {"merge": "key=column", "upsert": "key=column", "scd2": "history", "append": "append"}
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class _Option:
    """An option: the field that has it, how its text is read and written, and what it may be."""

    field: str
    reader: Callable[[str], object] = str
    writer: Callable[[Any], str] = str
    example: str = "column"
    choices: tuple[str, ...] = ()
    is_flag: bool = False
    is_list: bool = False
    is_count: bool = False


def _count(field: str) -> _Option:
    return _Option(field, int, example="1", is_count=True)


#: the options in the order in which they are written
_OPTIONS: Mapping[str, _Option] = {
    "append": _Option("append", is_flag=True),
    "history": _Option("history", is_flag=True),
    "key": _Option("unique_key", is_list=True),
    "time": _Option("time", is_list=True),
    "lookback": _count("lookback"),
    "batch_size": _count("batch_size"),
    "track": _Option(
        "track",
        lambda text: tuple(column for column in split_values(text) if column),
        lambda columns: ",".join(map(quoted, columns)),
        is_list=True,
    ),
    "sequence": _Option("sequence", unquote, quoted),
    "deletes": _Option("deletes", unquote, quoted, "close", choices=("close",)),
    "max_closed": _count("max_closed"),
    "on_schema_change": _Option(
        "on_schema_change", unquote, example=SCHEMA_CHANGES[0], choices=SCHEMA_CHANGES
    ),
}


def materialize(line: CommentLine, draft: LineDraft) -> None:
    words = list(line.words)
    mode = words.pop(0).text if words and words[0].text in _MODES else None
    asset = parse_asset(words[0].text) if words else None
    if asset is None:
        draft.refuse(line, "it names no asset", _nearest_form(line))
        return
    if draft.annotations.materialize is not None:
        hint = "keep one of the two lines; another table is another script's"
        draft.error(line.location, "a script makes one table", hint, rule="materialize-second")
        return
    value = Materialize(asset, manual=mode == "manual", history=mode == "scd2")
    names: set[str] = set()
    options = line.options(after=words[0])
    is_feed = any(word.text.startswith("sequence=") for word in options)
    for word in options:
        value = _add_option(word, value, names, draft, is_feed=is_feed)
    draft.record(materialize=value)
    draft.places["materialize"] = line.location
    if value.append and value.unique_key:
        draft.warn(
            line.location,
            "`append` wins over `key=`: rows are only ever added",
            f"remove `append` to merge on {value.unique_key}",
            rule="append-and-key",
        )


def write_target(value: Materialize) -> str:
    """Write a managed table.

    Args:
        value: The table, and how it is written.

    Returns:
        What follows ``materialize``.
    """
    words = [*(["manual"] if value.manual else []), str(value.target)]
    for name, option in _OPTIONS.items():
        setting = getattr(value, option.field)
        if setting:
            words.append(name if option.is_flag else f"{name}={option.writer(setting)}")
    return " ".join(words)


def _nearest_form(line: CommentLine) -> str:
    """The line with its first word that could be a table made into an asset."""
    for word in line.words:
        if word.text in _MODES or not _TABLE.fullmatch(word.text):
            continue
        path = word.text if "/" in word.text else f"{DEFAULT_LAKE}/{word.text}"
        start = (word.location.column or 0) - line.column
        return f"{line.text[:start]}ducklake://{path}{line.text[start + len(word.text) :]}"
    return FORM


def _add_option(
    word: Word, value: Materialize, names: set[str], draft: LineDraft, *, is_feed: bool
) -> Materialize:
    """Apply one option; what cannot be applied as written is an error, never a guess."""
    name, equals, text = word.text.partition("=")
    option = _OPTIONS.get(name)
    if option is None or option.is_flag == bool(equals):
        _report_unknown(word, draft)
        return value
    if name in names:
        draft.error(word.location, f"`{name}` is given twice", "keep one", rule="materialize-twice")
    names.add(name)
    if is_feed and name == "deletes":  # the condition of events that delete their key
        option = replace(option, choices=())
    if equals and not _is_valid(word, name, option, draft):
        return value
    fields: dict[str, Any] = {option.field: True if option.is_flag else option.reader(text)}
    return replace(value, **fields)


def _is_valid(word: Word, name: str, option: _Option, draft: LineDraft) -> bool:
    text = word.text.partition("=")[2]
    value = unquote(text)
    if not value:
        hint = f"write {name}={option.example}"
        draft.error(word.location, f"`{name}=` is empty", hint, rule="materialize-empty")
        return False
    if is_unclosed(text):
        message = f"`{word.text}`: the quote is not closed, or something follows it"
        draft.error(word.location, message, "close it", rule="materialize-quote")
        return False
    if option.is_count and not (text.isdecimal() and int(text) > 0):
        message = f"`{word.text}`: {text} is not a whole number from 1 on"
        draft.error(word.location, message, f"write {name}=1", rule="materialize-value")
        return False
    if name == "max_closed" and int(text) > _PERCENT:
        message = f"`{word.text}`: more than {_PERCENT} percent of the keys"
        draft.error(word.location, message, "write max_closed=50", rule="materialize-value")
        return False
    if option.choices and value not in option.choices:
        guess = nearest(value, option.choices) or "|".join(option.choices)
        message, hint = f"`{word.text}`: {name} has no such value", f"write {name}={guess}"
        draft.error(word.location, message, hint, rule="materialize-value")
        return False
    columns = split_values(text) if option.is_list else []
    if len(set(columns)) < len(columns) and all(columns):
        message = f"`{word.text}` names a column twice"
        draft.error(word.location, message, "name each column once", rule="materialize-list")
    if not all(columns):
        draft.error(
            word.location,
            f"`{word.text}` is cut short: the list has an empty place",
            f'write it without blanks, as {name}=a,b; a name with blanks as {name}="a b"',
            rule="materialize-list",
        )
    return True


def _report_unknown(word: Word, draft: LineDraft) -> None:
    name, _, value = word.text.partition("=")
    strategy = (value if "strategy" in name.casefold() else name).casefold()
    guess, near = _STRATEGIES.get(strategy), nearest(name, _OPTIONS)
    if guess is None and near is not None:
        option = _OPTIONS[near]
        guess = near if option.is_flag else f"{near}={value or option.example}"
    listed = (name if option.is_flag else f"{name}=..." for name, option in _OPTIONS.items())
    hint = f"did you mean `{guess}`?" if guess else f"the options are {', '.join(listed)}"
    if strategy == "replace":
        hint = "leave it out: a table without options is replaced"
    message = f"`{word.text}` is not an option of `materialize`"
    draft.error(word.location, message, hint, rule="materialize-option")
