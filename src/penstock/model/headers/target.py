"""``materialize [manual|scd2] <asset> [options]``: the managed table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from penstock.model.files.header_lines import CommentLine, Word, is_unclosed, split_values, unquote
from penstock.model.headers.draft import LineDraft
from penstock.model.values.asset import (
    DEFAULT_LAKE,
    SCHEMA_CHANGES,
    Asset,
    Materialize,
    parse_asset,
)
from penstock.sql.identifiers import nearest

FORM = "materialize ducklake://main/table"
_TABLE = re.compile(r"(\w+/)?(\w+\.)?\w+")
_MODES = {"manual": "manual", "scd2": "history"}


def materialize(line: CommentLine, draft: LineDraft) -> None:
    words = list(line.words)
    mode = words.pop(0).text if words and words[0].text in _MODES else None
    asset = parse_asset(words[0].text) if words else None
    if asset is None:
        draft.refuse(line, "it names no asset", _nearest_form(line))
        return
    if draft.materialize is not None:
        hint = "keep one of the two lines; another table is another script's"
        draft.error(line.location, "a script makes one table", hint, rule="materialize-second")
        return
    value = _start(asset, mode)
    seen: set[str] = set()
    options = line.options(after=words[0])
    choices = dict(_CHOICES)
    if any(word.text.startswith("sequence=") for word in options):
        del choices["deletes"]  # the condition of events that delete their key
    for word in options:
        value = _option(word, value, seen, draft, choices)
    draft.materialize = value
    draft.places["materialize"] = line.location
    if value.append and value.unique_key:
        draft.warn(
            line.location,
            "`append` wins over `key=`: rows are only ever added",
            f"remove `append` to merge on {value.unique_key}",
            rule="append-and-key",
        )


def _nearest_form(line: CommentLine) -> str:
    """The line with its first word that could be a table made into an asset."""
    for word in line.words:
        if word.text in _MODES or not _TABLE.fullmatch(word.text):
            continue
        path = word.text if "/" in word.text else f"{DEFAULT_LAKE}/{word.text}"
        start = (word.location.column or 0) - line.column
        return f"{line.text[:start]}ducklake://{path}{line.text[start + len(word.text) :]}"
    return FORM


def _start(asset: Asset, mode: str | None) -> Materialize:
    return Materialize(asset, manual=mode == "manual", history=mode == "scd2")


#: options without a value, which are fields of that name
_FLAGS = ("append", "history")
#: the field of each option with a value, and what reads that
_VALUED: dict[str, tuple[str, Callable[[str], object]]] = {
    "key": ("unique_key", str),
    "track": ("track", lambda text: tuple(column for column in split_values(text) if column)),
    "sequence": ("sequence", unquote),
    "deletes": ("deletes", unquote),
    "max_closed": ("max_closed", int),
    "on_schema_change": ("on_schema_change", unquote),
    "time": ("time", str),
    "lookback": ("lookback", int),
    "batch_size": ("batch_size", int),
}
_Choices = Mapping[str, tuple[str, ...]]
_CHOICES: _Choices = {"deletes": ("close",), "on_schema_change": SCHEMA_CHANGES}
_LISTS = ("key", "track", "time")
_COLUMNS = (*_LISTS, "sequence")
_COUNTS = ("lookback", "batch_size", "max_closed")
_PERCENT = 100


def _option(
    word: Word, value: Materialize, seen: set[str], draft: LineDraft, choices: _Choices
) -> Materialize:
    """Apply one option; what cannot be applied as written is an error, never a guess."""
    name, equals, text = word.text.partition("=")
    if name not in (_VALUED if equals else _FLAGS):
        _unknown(word, draft)
        return value
    if name in seen:
        draft.error(word.location, f"`{name}` is given twice", "keep one", rule="materialize-twice")
    seen.add(name)
    if equals and not _fits(word, name, text, draft, choices):
        return value
    field, read = _VALUED[name] if equals else (name, lambda _: True)
    made: Any = {field: read(text)}  # of the field's type
    return replace(value, **made)


def _fits(word: Word, name: str, text: str, draft: LineDraft, choices: _Choices) -> bool:
    if not unquote(text):
        hint = f"write {name}={_example(name)}"
        draft.error(word.location, f"`{name}=` is empty", hint, rule="materialize-empty")
        return False
    if is_unclosed(text):
        message = f"`{word.text}`: the quote is not closed, or something follows it"
        draft.error(word.location, message, "close it", rule="materialize-quote")
        return False
    if name in _COUNTS and not (text.isdecimal() and int(text) > 0):
        message = f"`{word.text}`: {text} is not a whole number from 1 on"
        draft.error(word.location, message, f"write {name}=1", rule="materialize-value")
        return False
    if name == "max_closed" and int(text) > _PERCENT:
        message = f"`{word.text}`: more than {_PERCENT} percent of the keys"
        draft.error(word.location, message, "write max_closed=50", rule="materialize-value")
        return False
    if name in choices and unquote(text) not in choices[name]:
        guess = nearest(unquote(text), choices[name]) or "|".join(choices[name])
        draft.error(
            word.location,
            f"`{word.text}`: {name} has no such value",
            f"write {name}={guess}",
            rule="materialize-value",
        )
        return False
    columns = split_values(text) if name in _LISTS else []
    if len(set(columns)) < len(columns) and all(columns):
        draft.error(
            word.location,
            f"`{word.text}` names a column twice",
            "name each column once",
            rule="materialize-list",
        )
    if not all(columns):
        draft.error(
            word.location,
            f"`{word.text}` is cut short: the list has an empty place",
            f'write it without blanks, as {name}=a,b; a name with blanks as {name}="a b"',
            rule="materialize-list",
        )
    return True


def _unknown(word: Word, draft: LineDraft) -> None:
    name, _, value = word.text.partition("=")
    strategy = (value if "strategy" in name.casefold() else name).casefold()
    near = nearest(name, (*_FLAGS, *_VALUED))
    guess = _STRATEGIES.get(strategy)
    if guess is None and near is not None:
        guess = near if near in _FLAGS else f"{near}={value or _example(near)}"
    hint = f"did you mean `{guess}`?" if guess else f"the options are {', '.join(_FORMS)}"
    if strategy == "replace":
        hint = "leave it out: a table without options is replaced"
    message = f"`{word.text}` is not an option of `materialize`"
    draft.error(word.location, message, hint, rule="materialize-option")


_STRATEGIES = {"merge": "key=column", "upsert": "key=column", "scd2": "history", "append": "append"}
_FORMS = (*_FLAGS, *(f"{name}=..." for name in _VALUED))


def _example(name: str) -> str:
    return "column" if name in _COLUMNS else _CHOICES.get(name, ("1",))[0]
