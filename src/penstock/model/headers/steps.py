"""Read header lines by their keywords, but for ``materialize`` and ``data_test``.

They say what a script is (``pipeline``, ``dialect``), when it runs (``on``, ``retry``), what a
slice is (``partitioned``), and what it needs and returns (``needs``, ``column``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from penstock.errors import Location
from penstock.model.files.header_lines import CommentLine, Word, is_unclosed, unquote
from penstock.model.headers.draft import LineDraft
from penstock.model.headers.tests import split_asset_column
from penstock.model.headers.values import quoted
from penstock.model.script.declaration import CHANGES, FILES
from penstock.model.time.needs import FORMS as NEED_FORMS
from penstock.model.time.needs import NeedLine, read_need
from penstock.model.time.partition import KINDS, PartitionSpec
from penstock.model.values.asset import ColumnInput, ColumnLineage, ColumnType, parse_asset
from penstock.model.values.schedule import (
    CATCHUP_MODES,
    EVENTS,
    NAME_OPTIONS,
    OPTIONS,
    Retry,
    Trigger,
    read_catchup,
)
from penstock.settings.keys import DIALECTS
from penstock.settings.quantities import is_duration, seconds_of
from penstock.sql.identifiers import nearest
from penstock.sql.types import spark_type

LATE_RUN = "run"  # slices with late rows are made by each run
MAX_TAG = 50
MAX_RETRIES = 2**32 - 1
JOINS = ("all", "any")
LINEAGE_FORM = "column out <- ducklake://main/table.column"
TYPE_FORM = "column out BIGINT"
PARTITION_OPTIONS = ("tz", "format", "start", "key")
_NAME = re.compile(r"[\w./-]{1,200}", re.ASCII)
_WORD = re.compile(r"[^\s,'\"]+")
_COUNT = re.compile(r"\+?\d+")
_DEBOUNCE = re.compile(r"^(?P<asset>.*?)\s+debounce=(?P<duration>\S*)$")
_LINEAGE = re.compile(r"(?P<column>\S+?)\s*<-\s*(?P<inputs>.+)")
_TYPED = re.compile(r"""(?P<column>'[^']+'|"[^"]+"|\S+)\s+(?P<type>.+)""")


def flag(field: str) -> Callable[[CommentLine, LineDraft], None]:
    """Return the reader of a keyword that stands alone.

    Args:
        field: The field of `Annotations` that it sets.

    Returns:
        A reader of lines.
    """

    def read(line: CommentLine, draft: LineDraft) -> None:
        if line.rest:
            draft.drop(line, f"`{line.keyword}` stands alone on its line", line.keyword)
        else:
            draft.record(**{field: True})
            draft.places.setdefault(line.keyword, line.location)

    return read


def use(line: CommentLine, draft: LineDraft) -> None:
    libraries = draft.annotations.use_libs
    if len(line.words) != 1 or "/" not in line.rest:
        draft.drop(line, "a library is named by its path, with a slash", "use path/of/library")
    elif line.rest in libraries:
        draft.drop(line, "it is here already", f"use {line.rest}")
    else:
        draft.record(use_libs=(*libraries, line.rest))
        draft.places[f"use:{line.rest}"] = line.location


def incremental(line: CommentLine, draft: LineDraft) -> None:
    if line.rest not in {CHANGES, FILES}:
        message = f"a model is incremental by `{CHANGES}` or `{FILES}`"
        draft.refuse(line, message, f"incremental {CHANGES}")
    else:
        draft.record(incremental=line.rest)
        draft.places["incremental"] = line.location


def late(line: CommentLine, draft: LineDraft) -> None:
    if line.rest != LATE_RUN:
        message = "what is done about late rows is `run`: their slices are made again"
        draft.refuse(line, message, f"late {LATE_RUN}")
    else:
        draft.record(late_run=True)


def tag(line: CommentLine, draft: LineDraft) -> None:
    earlier = draft.annotations.tag
    if earlier is not None:
        draft.drop(line, f"the tag is `{earlier}` already", f"tag {earlier}")
    elif len(line.words) != 1 or len(line.rest) > MAX_TAG:
        form = f"tag {line.words[0].text[:MAX_TAG]}" if line.words else "tag heavy"
        draft.drop(line, f"a tag is one word of at most {MAX_TAG} characters", form)
    else:
        draft.record(tag=line.rest)


def dialect(line: CommentLine, draft: LineDraft) -> None:
    if line.rest not in DIALECTS:
        form = f"dialect {nearest(line.rest, DIALECTS) or 'duckdb'}"
        draft.refuse(line, "a dialect is `spark` or `duckdb`", form)
    elif draft.annotations.dialect not in {"", line.rest}:
        hint = "keep one of the two lines"
        draft.error(line.location, "a script has one dialect", hint, rule="dialect-second")
    else:
        draft.record(dialect=line.rest)


def retry(line: CommentLine, draft: LineDraft) -> None:
    count, *delay = line.rest.split(None, 1) or [""]
    earlier = draft.annotations.retry
    if not _COUNT.fullmatch(count) or not 1 <= int(count) <= MAX_RETRIES:
        digits = re.match(r"\d+", count)
        nearest_count = min(max(int(digits[0]), 1), MAX_RETRIES) if digits else 3
        draft.drop(line, "the count is a whole number, 1 or more", f"retry {nearest_count}")
        return
    if earlier is not None:
        draft.drop(line, "the first valid `retry` holds", f"retry {earlier.count}")
        return
    draft.record(retry=Retry(int(count), delay[0] if delay else None))
    if delay and not is_duration(delay[0]):
        guess = next(iter(re.findall(r"\d+[smhd]?(?![\w.])", delay[0])), "5s")
        draft.warn(
            line.location,
            f"`{line.text}`: the delay `{delay[0]}` is not a duration, so it is dropped",
            f"write `{line.prefix} retry {count} {guess}`",
            rule="retry-delay",
        )


def timeout(line: CommentLine, draft: LineDraft) -> None:
    earlier = draft.annotations.timeout
    if not is_duration(line.rest) or not seconds_of(line.rest):
        draft.refuse(line, "a timeout is a duration, 1 second or more", "timeout 10m")
    elif earlier is not None:
        draft.drop(line, "the first `timeout` holds", f"timeout {earlier}")
    else:
        draft.record(timeout=line.rest)
        draft.places["timeout"] = line.location


def duration(field: str) -> Callable[[CommentLine, LineDraft], None]:
    """Return the reader of a duration, which keeps one that it reports as wrong.

    Args:
        field: The field of `Annotations` that has it.

    Returns:
        A reader of lines.
    """

    def read(line: CommentLine, draft: LineDraft) -> None:
        earlier = getattr(draft.annotations, field)
        if earlier is not None:
            draft.drop(line, f"the first `{line.keyword}` holds", f"{line.keyword} {earlier}")
            return
        if not line.rest:
            draft.drop(line, "the duration is missing", f"{line.keyword} 1h")
            return
        if not is_duration(line.rest):
            draft.warn(
                line.location,
                f"`{line.text}`: `{line.rest}` is not a duration",
                f"write seconds or <n>s|m|h|d, as `{line.prefix} {line.keyword} 1h`",
                rule=line.keyword,
            )
        draft.record(**{field: line.rest})
        draft.places[line.keyword] = line.location

    return read


def partitioned(line: CommentLine, draft: LineDraft) -> None:
    kind = line.words[0].text if line.words else ""
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        tail = line.rest[len(kind) :].strip() if guess else ""
        form = f"{guess} {tail}" if tail else _partition_form(guess or "daily")
        draft.refuse(line, f"a kind is one of {', '.join(KINDS)}", f"partitioned {form}")
        return
    if draft.annotations.partition is not None:
        hint = (
            "keep one of the two lines; for slices of two dimensions, as a day and a customer, "
            'write `partitioned dynamic key="$.slice"` and values that have both: 2026-01-01:eu'
        )
        draft.error(line.location, "a script has one partition", hint, rule="partitioned-second")
        return
    options = _partition_options(line, draft, kind)
    if kind == "dynamic" and not options.get("key"):
        form = f"partitioned {_partition_form(kind)}"
        draft.refuse(line, "a dynamic partition needs its key", form)
        return
    draft.record(partition=PartitionSpec(kind, **options))
    draft.places["partitioned"] = line.location


def _partition_form(kind: str) -> str:
    return 'dynamic key="$.path"' if kind == "dynamic" else kind


def _partition_options(line: CommentLine, draft: LineDraft, kind: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in line.options(after=line.words[0]):
        name, equals, text = word.text.partition("=")
        value, place = unquote(text), word.location
        if name not in PARTITION_OPTIONS or not equals:
            guess = nearest(name, PARTITION_OPTIONS)
            draft.error(
                place,
                f"`{word.text}` is not an option of `partitioned`",
                f'did you mean `{guess}="..."`?'
                if guess
                else f"the options are {', '.join(PARTITION_OPTIONS)}",
                rule="partitioned-option",
            )
        elif name in options:
            draft.error(place, f"`{name}=` is given twice", "keep one", rule="partitioned-twice")
        elif not value:
            draft.error(place, f"`{name}=` is empty", "give it a value", rule="partitioned-empty")
        else:
            options[name] = value
            _warn_of_option(draft, place, kind, name, text)
    return options


def _warn_of_option(draft: LineDraft, place: Location, kind: str, name: str, text: str) -> None:
    if is_unclosed(text):
        message = f"`{name}={text[0]}` has no closing quote"
        draft.warn(place, message, "close it", rule="partitioned-quote")
    if (name == "key") != (kind == "dynamic"):
        message = f"`{name}=` means nothing on a {kind} partition"
        draft.warn(place, message, "take it away", rule="partitioned-option")


def on(line: CommentLine, draft: LineDraft) -> None:
    # `on <asset> [debounce=<dur>]` or `on <event> [options]`; the path may hold blanks
    triggers = draft.annotations.triggers
    place = f"on:{len(triggers)}"
    word = line.words[0].text if line.words else ""
    new = _read_event(line, draft, place) if word in EVENTS else _read_asset(line, draft)
    if new is None:
        return
    if any((old.kind, old.asset, old.name) == (new.kind, new.asset, new.name) for old in triggers):
        draft.drop(line, "it is here already", line.text)
        return
    draft.places[place] = line.location
    draft.record(triggers=(*triggers, new))


def _read_asset(line: CommentLine, draft: LineDraft) -> Trigger | None:
    cut = _DEBOUNCE.match(line.rest)
    text, debounce = (cut["asset"], cut["duration"]) if cut else (line.rest, None)
    asset = parse_asset(text, bare_ducklake=False)
    if asset is None:
        draft.drop(line, *_why_no_trigger(line))
        return None
    if debounce is not None and not is_duration(debounce):
        _drop_debounce(line, draft, debounce, f"on {text} debounce=60s")
        debounce = None
    return Trigger("asset", asset, debounce)


def _drop_debounce(line: CommentLine, draft: LineDraft, debounce: str, form: str) -> None:
    message = f"`{line.text}`: `debounce={debounce}` is not a duration, so it is dropped"
    draft.warn(line.location, message, f"write `{line.prefix} {form}`", rule="debounce")


def _read_event(line: CommentLine, draft: LineDraft, place: str) -> Trigger | None:
    """An event with its options. The place of each is that of the trigger with its name."""
    event = line.words[0].text
    words = line.options(after=line.words[0])
    if any("=" not in word.text for word in words):
        draft.drop(line, "only options follow an event, as `name=value`", _event_form(event, words))
        return None
    options: dict[str, str] = {}
    for word in words:
        name, _, text = word.text.partition("=")
        value = unquote(text)
        if _is_option(line, draft, word, options) and _is_value(line, draft, word, value):
            options[name] = value
            draft.places[f"{place}:{name}"] = word.location
    return Trigger(
        event,
        debounce=options.get("debounce"),
        name=options.get(NAME_OPTIONS.get(event, "")),
        cron=options.get("cron"),
        tz=options.get("tz"),
    )


def _event_form(event: str, words: Sequence[Word]) -> str:
    """Write the options that bare words were probably meant as."""
    groups: list[str] = []
    for word in words:
        if groups and "=" not in word.text:
            groups[-1] += f" {word.text}"
        elif "=" in word.text:
            groups.append(word.text)
        elif event in NAME_OPTIONS and _NAME.fullmatch(word.text):
            groups.append(f"{NAME_OPTIONS[event]}={word.text}")
    options = [group.partition("=") for group in groups]
    texts = (f"{name}={quoted(unquote(text), _WORD)}" for name, _, text in options)
    named = (text for text, option in zip(texts, options, strict=True) if option[0])
    return " ".join(("on", event, *named))


def _is_option(line: CommentLine, draft: LineDraft, word: Word, options: Mapping[str, str]) -> bool:
    """Return whether an event has the option, once; report one that is dropped."""
    event, (name, _, text) = line.words[0].text, word.text.partition("=")
    if name in OPTIONS[event] and name not in options:
        return True
    guess = nearest(name, OPTIONS[event]) if name not in OPTIONS[event] else None
    instead = f"{guess}={text}" if guess else ""
    reason = f"`{event}` has no option `{name}`"
    if name in options:
        reason = f"`{name}=` is given twice"
    elif name == "debounce":
        reason = "only an asset or a message has a debounce, so there is none"
    rule = "debounce" if name == "debounce" else "on-option"
    hint = f"write `{line.prefix} {_replace(line, word, instead)}`"
    draft.warn(word.location, f"`{line.text}`: {reason}", hint, rule=rule)
    return False


def _is_value(line: CommentLine, draft: LineDraft, word: Word, value: str) -> bool:
    """Return whether an option can have the value; report one that it cannot."""
    name, _, text = word.text.partition("=")
    if is_unclosed(text):
        message = f"`{word.text}` has no closing quote"
        hint = f"write `{line.prefix} {_replace(line, word, word.text + text[0])}`"
        draft.warn(word.location, message, hint, rule="on-option")
    if name == "debounce" and not is_duration(value):
        _drop_debounce(line, draft, value, _replace(line, word, "debounce=60s"))
        return False
    if not value:
        hint = f"write `{line.prefix} {_replace(line, word, '')}`, or give it a value"
        draft.warn(word.location, f"`{name}=` is empty", hint, rule="on-option")
        return False
    if name in NAME_OPTIONS.values() and not _NAME.fullmatch(value):
        message = f"`{word.text}` is not a name of messages"
        hint = "use letters, digits, `_`, `-`, `.` and `/`, at most 200 of them"
        draft.error(word.location, message, hint, rule="on-name")
        return False
    return True


def _replace(line: CommentLine, word: Word, instead: str) -> str:
    """Return a line with another word in place of one."""
    start = (word.location.column or 0) - line.column
    before, after = line.text[:start].rstrip(), line.text[start + len(word.text) :].strip()
    return " ".join(part for part in (before, instead, after) if part)


def _why_no_trigger(line: CommentLine) -> tuple[str, str]:
    word = line.words[0].text if line.words else ""
    if word.startswith("delta://"):
        return "the asset names no table", "on delta://ROOT/schema/table"
    if word == "ducklake" or word.startswith("ducklake://"):
        return "the asset names no table", "on ducklake://main/table"
    guess = nearest(word, EVENTS)
    form = f"on {guess}" if guess else "on ducklake://main/table"
    return "it names no asset and no event", form


def catchup(line: CommentLine, draft: LineDraft) -> None:
    """Read which missed times of a schedule fire, or report a line that says something else.

    Args:
        line: The line.
        draft: The header.
    """
    earlier = draft.annotations.catchup
    if earlier is not None:
        draft.drop(line, "the first `catchup` holds", f"catchup {earlier}")
        return
    try:
        draft.record(catchup=read_catchup(line.rest))
        draft.places["catchup"] = line.location
    except ValueError as error:
        mode = nearest(line.words[0].text if line.words else "", CATCHUP_MODES) or "latest"
        draft.drop(line, str(error), f"catchup {mode}")


def trigger(line: CommentLine, draft: LineDraft) -> None:
    join = draft.annotations.join_mode
    if line.rest not in JOINS:
        guess = line.rest.lower() if line.rest.lower() in JOINS else "all"
        draft.drop(line, "the join is `all` or `any`, in small letters", f"trigger {guess}")
        return
    if join not in {None, line.rest}:
        draft.warn(
            line.location,
            f"`{line.text}` replaces `trigger {join}` above",
            "keep one of the two",
            rule="trigger",
        )
    draft.record(join_mode=line.rest)
    draft.places["trigger"] = line.location


def needs(line: CommentLine, draft: LineDraft) -> None:
    # `needs <table> lag=<duration>|same|all|none`
    asset, _, text = line.rest.rpartition(" ")
    asset, text = asset.strip(), text.strip()
    if not asset:
        draft.refuse(line, "it names a table and what is needed of it", f"needs {text} all")
    elif read_need(text) is None:
        draft.refuse(line, f"what is needed is {NEED_FORMS}", f"needs {asset} lag=7d")
    elif any(need.asset == asset for need in draft.annotations.needs):
        draft.refuse(line, f"it says already what it needs of {asset}", f"needs {asset} {text}")
    else:
        need = NeedLine(asset, text, line.location)
        draft.record(needs=(*draft.annotations.needs, need))


def column(line: CommentLine, draft: LineDraft) -> None:
    # `column <out> <- <asset>.<col>[, ...]` or `column <out> <TYPE>`
    match = _LINEAGE.fullmatch(line.rest)
    if match is None:
        _read_type(line, draft)
        return
    texts = [text.strip() for text in match["inputs"].split(",")]
    pairs = {text: split_asset_column(text) for text in texts}
    inputs = tuple(ColumnInput(*pair) for pair in pairs.values() if pair)
    if not inputs:
        draft.drop(line, "none of its inputs is <asset>.<column>", LINEAGE_FORM)
        return
    for text, pair in pairs.items():
        if pair is None:
            draft.warn(
                line.location,
                f"`{line.text}`: the input `{text}` is dropped: it is no <asset>.<column>",
                f"write `{line.prefix} {LINEAGE_FORM}`",
                rule="column-input",
            )
    draft.places.setdefault(f"column:{match['column']}", line.location)
    lineage = ColumnLineage(match["column"], inputs)
    draft.record(column_lineage=(*draft.annotations.column_lineage, lineage))


def _read_type(line: CommentLine, draft: LineDraft) -> None:
    """Types that only a model which reads its own table needs, before its first run."""
    match, types = _TYPED.fullmatch(line.rest), draft.annotations.column_types
    name, type_ = (unquote(match["column"]), match["type"]) if match else ("", "")
    try:
        spark_type(type_)
    except ValueError:
        draft.drop(line, "it says neither lineage nor a type", f"{LINEAGE_FORM}` or `{TYPE_FORM}")
        return
    if any(column.name.casefold() == name.casefold() for column in types):
        message = f"column {name} is declared twice"
        draft.error(line.location, message, "keep one", rule="column-twice")
        return
    draft.record(column_types=(*types, ColumnType(name, type_, line.location)))
