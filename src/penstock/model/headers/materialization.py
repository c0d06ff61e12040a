"""The managed table of a header, and how it is made: ``materialize ...`` and ``kind ...``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from penstock.errors import PenstockError
from penstock.model.files.header_lines import CommentLine, Word, is_unclosed, split_values, unquote
from penstock.model.headers.draft import BlockDraft, LineDraft
from penstock.model.headers.syntax import NamedValue, Value, Wrong, properties, suggestion
from penstock.model.headers.values import READERS, quoted
from penstock.model.values.asset import DEFAULT_LAKE, SCHEMA_CHANGES, Materialize, parse_asset
from penstock.model.values.custom_strategy import Custom
from penstock.model.values.history import TIME_TYPE, History, Start, read_time_type
from penstock.model.values.kinds import KINDS, Kind
from penstock.model.values.strategy import Strategy
from penstock.model.values.upsert import SHAPE as UPSERT_SHAPE
from penstock.model.values.upsert import Matched, Upsert, check_sides, columns_in, read_matched
from penstock.sql.identifiers import nearest
from penstock.sql.text import offset
from penstock.sql.tokens import NAME, STRING, WORD, closing

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


#: what follows a comma in ``when_matched`` without brackets
_GO_ON = ("target", "when")


def read_kind(prop: NamedValue, draft: BlockDraft) -> Strategy | None:
    """Options that are not given have their defaults. Raises Wrong."""
    value = prop.value
    kind = _kind_of(value)
    draft.kind = kind
    draft.places["kind"] = draft.place(value)
    draft.options = dict(kind.defaults)
    if kind.refusal is not None:
        raise value.wrong(f"the kind {kind.name} is refused: {kind.refusal}", kind.hint)
    options = _options(value)
    for option in options:
        try:
            draft.options[option.name] = _read(draft, kind, option)
        except Wrong as error:
            draft.refuse(error)
        draft.places[option.name] = draft.place(option)
    values = {option.name: option.value for option in options}
    for required in kind.options:
        if required.required and required.name not in values:
            message = f"the kind {kind.name} needs `{required.name}`"
            raise value.wrong(message, f"write kind {kind.name} ({required.name} ...)")
    draft.chosen = _upsert(draft, values) or None
    if "materialization" in values:
        draft.chosen = _custom(draft, values["materialization"])
    elif kind.strategy is not None and kind.strategy.keeps_versions:
        draft.chosen = _history(draft, kind, values)
    return kind.strategy


def _history(draft: BlockDraft, kind: Kind, given: Mapping[str, Value]) -> History:
    """Return what the options say; a wrong type of time is placed at its option."""
    said = draft.options
    by_time = kind.option("columns") is None
    columns = tuple(said.get("columns") or ())
    start: Start = "epoch"
    if said.get("updated_at_as_valid_from"):
        start = "updated_at"
    elif said.get("execution_time_as_valid_from"):
        start = "execution"
    time_type = TIME_TYPE
    try:
        time_type = read_time_type(str(said["time_data_type"]), draft.dialect)
    except ValueError as error:
        draft.refuse(given["time_data_type"].wrong(str(error), "take it away for TIMESTAMP"))
    return History(
        by_time=by_time,
        updated_at=said.get("updated_at_name"),
        track=() if columns == ("*",) else columns,
        closes=bool(said["invalidate_hard_deletes"]),
        max_closed=int(str(said["max_closed"])),
        start=start,
        valid_from=str(said["valid_from_name"]),
        valid_to=str(said["valid_to_name"]),
        time_type=time_type,
    )


def _custom(draft: BlockDraft, value: Value) -> Custom | None:
    name = str(draft.options.get("materialization"))
    made = draft.materializations.get(name.lower())
    if made is not None:
        return Custom(made, dict(draft.options.get("materialization_properties") or ()))
    known = {each.name for each in draft.materializations.values()}
    hint = suggestion(name, known, f"there are {', '.join(sorted(known)) or 'none'}")
    draft.refuse(value.wrong(f"materialization {name} does not exist in materializations/", hint))
    return None


def _upsert(draft: BlockDraft, given: Mapping[str, Value]) -> Upsert:
    """Return what a merge does besides; what is wrong with it is placed at its option."""
    key, matched = given.get("unique_key"), given.get("when_matched")
    keys = key.items() if key is not None else ()
    draft.key_expressions = tuple(each.text for each in keys if len(each.tokens) > 1)
    own = draft.options.get("merge_filter")
    for name in ("merge_filter", "when_matched", "deletes"):
        if name in given and (macro := _macro_in(given[name])):
            hint = "compare source.column and target.column; filter rows in the query"
            hint = "write a condition over the query's columns" if name == "deletes" else hint
            draft.refuse(given[name].wrong(f"{macro}: no macro can stand in {name}", hint))
            return Upsert()
    with _placed(draft, key, "write columns or expressions of columns: (id, COALESCE(name, ''))"):
        for text in draft.key_expressions:
            columns_in(text, draft.dialect)
    hint = "write a condition over source.column and target.column; AND joins several"
    with _placed(draft, given.get("merge_filter"), hint):
        if own is not None:
            check_sides(own, draft.dialect)
    rules: tuple[Matched, ...] = ()
    if matched is not None and draft.options.get("when_matched"):
        with _placed(draft, matched, UPSERT_SHAPE):
            rules = read_matched(draft.options["when_matched"], draft.dialect)
    options = draft.options
    return Upsert(rules, own, sequence=options.get("sequence"), deletes=options.get("deletes"))


def _macro_in(value: Value) -> str | None:
    """The first ``@name`` in a value."""
    for token, after in pairwise(value.tokens):
        if token.text == "@" and after.start == token.end:
            return f"@{after.text}"
    return None


@contextmanager
def _placed(draft: BlockDraft, value: Value | None, hint: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, PenstockError) as error:
        assert value is not None, "what is not given is not wrong"
        draft.refuse(_within(value, error, hint))


def _within(value: Value, error: Exception, hint: str) -> Wrong:
    """Return what is wrong with a value, at the place in it that the error knows."""
    if not isinstance(error, PenstockError):
        return value.wrong(str(error), hint)
    line, column = error.data.get("line"), error.data.get("column")
    if line is None or column is None:
        return value.wrong(error.message, hint)
    inside = value.bracketed() or value.tokens
    at = offset(value.source.text[inside[0].start : inside[-1].end], line, column)
    return Wrong(inside[0].start + at, error.cause, hint)


def _kind_of(value: Value) -> Kind:
    name = value.tokens[0]
    kind = KINDS.get(name.value.upper()) if name.kind in {WORD, NAME, STRING} else None
    if kind is None:
        hint = suggestion(name.value.upper(), KINDS, f"the kinds are {', '.join(KINDS)}")
        raise value.wrong(f"kind {name.value} does not exist", hint)
    rest = value.tokens[1:]
    if rest and (rest[0].text != "(" or closing(rest, 0) != len(rest) - 1):
        hint = f"is a comma missing before `{rest[0].text}`?"
        raise Wrong(rest[0].start, f"`{rest[0].text}` follows the kind {kind.name}", hint)
    return kind


def _options(value: Value) -> tuple[NamedValue, ...]:
    inside = value.tokens[2:-1]
    found = properties(value.source, inside, value.tokens[-1].start) if inside else ()
    found = _with_assignments(found)
    names = [option.name for option in found]
    for number, option in enumerate(found):
        if option.name in names[:number]:
            message = f"the option `{option.name}` is given twice"
            raise Wrong(option.start, message, "keep one", "model-twice")
    return found


def _with_assignments(options: Sequence[NamedValue]) -> tuple[NamedValue, ...]:
    """The options, where commas of a ``when_matched`` without brackets divide none of its rules."""
    found: list[NamedValue] = []
    for option in options:
        before = found[-1] if found else None
        if before and before.name == "when_matched" and option.name in _GO_ON:
            tokens = (*before.value.tokens, *option.value.tokens)
            found[-1] = replace(before, value=Value(before.value.source, tokens))
        else:
            found.append(option)
    return tuple(found)


def _read(draft: BlockDraft, kind: Kind, option: NamedValue) -> object:
    known = kind.option(option.name)
    if known is None:
        raise _unknown(kind, option)
    read = READERS[known.type]
    if known.refusal is not None and not (
        known.only_default and read(option.value) == known.default
    ):
        message = f"`{known.name}` of {kind.name} cannot be given: {known.refusal}"
        raise Wrong(option.start, message, "take it away", "model-option")
    setting = read(option.value)
    if known.idle is not None:
        message = f"`{known.name}` has no effect: {known.idle}"
        draft.warn(option.start, message, "take it away", "model-idle")
    return setting


def _unknown(kind: Kind, option: NamedValue) -> Wrong:
    names = [item.name for item in kind.options if item.refusal is None]
    listed = f"its options are {', '.join(names)}" if names else "it has none"
    message = f"`{option.name}` is not an option of the kind {kind.name}"
    hint = suggestion(option.name, names, listed)
    return Wrong(option.start, message, hint, "model-option")
