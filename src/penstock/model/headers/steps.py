"""Keywords that say what a script is and how it runs: pipeline, dialect, retry and others; and
``partitioned <kind> [tz= format= start= key=]``: what a slice is.
"""

from __future__ import annotations

import re

from penstock.errors import Location
from penstock.model.files.header_lines import CommentLine, is_unclosed, unquote
from penstock.model.headers.draft import LineDraft
from penstock.model.time.partition import KINDS, PartitionSpec
from penstock.model.values.schedule import Retry
from penstock.settings.config import DIALECTS
from penstock.settings.durations import is_duration, seconds_of
from penstock.sql.identifiers import nearest

CHANGES, FILES = "changes", "files"  # what is new of an input
LATE_RUN = "run"  # slices with late rows are made by each run
MAX_TAG = 50
MAX_RETRIES = 2**32 - 1
_COUNT = re.compile(r"\+?\d+")


def pipeline(line: CommentLine, draft: LineDraft) -> None:
    if line.rest:
        draft.drop(line, "`pipeline` stands alone on its line", "pipeline")
        return
    draft.in_pipeline = True
    draft.places.setdefault("pipeline", line.location)


def macros(line: CommentLine, draft: LineDraft) -> None:
    if line.rest:
        draft.drop(line, "`macros` stands alone on its line", "macros")
        return
    draft.macros = True


def use(line: CommentLine, draft: LineDraft) -> None:
    if len(line.words) != 1 or "/" not in line.rest:
        draft.drop(line, "a library is named by its path, with a slash", "use path/of/library")
    elif line.rest in draft.use_libs:
        draft.drop(line, "it is here already", f"use {line.rest}")
    else:
        draft.use_libs.append(line.rest)
        draft.places[f"use:{line.rest}"] = line.location


def incremental(line: CommentLine, draft: LineDraft) -> None:
    if line.rest not in {CHANGES, FILES}:
        message = f"a model is incremental by `{CHANGES}` or `{FILES}`"
        draft.refuse(line, message, f"incremental {CHANGES}")
    else:
        draft.reads_changes, draft.reads_files = line.rest == CHANGES, line.rest == FILES
        draft.places["incremental"] = line.location


def late(line: CommentLine, draft: LineDraft) -> None:
    if line.rest != LATE_RUN:
        message = "what is done about late rows is `run`: their slices are made again"
        draft.refuse(line, message, f"late {LATE_RUN}")
    else:
        draft.late_run = True


def tag(line: CommentLine, draft: LineDraft) -> None:
    if draft.tag is not None:
        draft.drop(line, f"the tag is `{draft.tag}` already", f"tag {draft.tag}")
    elif len(line.words) != 1 or len(line.rest) > MAX_TAG:
        form = f"tag {line.words[0].text[:MAX_TAG]}" if line.words else "tag heavy"
        draft.drop(line, f"a tag is one word of at most {MAX_TAG} characters", form)
    else:
        draft.tag = line.rest


def dialect(line: CommentLine, draft: LineDraft) -> None:
    if line.rest not in DIALECTS:
        form = f"dialect {nearest(line.rest, DIALECTS) or 'duckdb'}"
        draft.refuse(line, "a dialect is `spark` or `duckdb`", form)
    elif draft.dialect not in {None, line.rest}:
        hint = "keep one of the two lines"
        draft.error(line.location, "a script has one dialect", hint, rule="dialect-second")
    else:
        draft.dialect = line.rest


def retry(line: CommentLine, draft: LineDraft) -> None:
    count, *delay = line.rest.split(None, 1) or [""]
    if not _COUNT.fullmatch(count) or not 1 <= int(count) <= MAX_RETRIES:
        draft.drop(line, "the count is a whole number, 1 or more", f"retry {_count(count)}")
        return
    if draft.retry is not None:
        draft.drop(line, "the first valid `retry` holds", f"retry {draft.retry.count}")
        return
    draft.retry = Retry(int(count), delay[0] if delay else None)
    if delay and not is_duration(delay[0]):
        guess = next(iter(re.findall(r"\d+[smhd]?(?![\w.])", delay[0])), "5s")
        draft.warn(
            line.location,
            f"`{line.text}`: the delay `{delay[0]}` is not a duration, so it is dropped",
            f"write `{line.prefix} retry {count} {guess}`",
            rule="retry-delay",
        )


def _count(text: str) -> int:
    """The nearest count that may be written."""
    digits = re.match(r"\d+", text)
    return min(max(int(digits[0]), 1), MAX_RETRIES) if digits else 3


def freshness(line: CommentLine, draft: LineDraft) -> None:
    if _first_duration(line, draft, draft.freshness):
        draft.freshness = line.rest
        draft.places["freshness"] = line.location


def debounce(line: CommentLine, draft: LineDraft) -> None:
    if _first_duration(line, draft, draft.debounce_default):
        draft.debounce_default = line.rest
        draft.places["debounce"] = line.location


def timeout(line: CommentLine, draft: LineDraft) -> None:
    if not is_duration(line.rest) or not seconds_of(line.rest):
        draft.refuse(line, "a timeout is a duration, 1 second or more", "timeout 10m")
    elif draft.timeout is not None:
        draft.drop(line, "the first `timeout` holds", f"timeout {draft.timeout}")
    else:
        draft.timeout = line.rest
        draft.places["timeout"] = line.location


def _first_duration(line: CommentLine, draft: LineDraft, known: str | None) -> bool:
    """Return whether the line sets the value; one that is not a duration is kept and reported."""
    if known is not None:
        draft.drop(line, f"the first `{line.keyword}` holds", f"{line.keyword} {known}")
        return False
    if not line.rest:
        draft.drop(line, "the duration is missing", f"{line.keyword} 1h")
        return False
    if not is_duration(line.rest):
        draft.warn(
            line.location,
            f"`{line.text}`: `{line.rest}` is not a duration",
            f"write seconds or <n>s|m|h|d, as `{line.prefix} {line.keyword} 1h`",
            rule=line.keyword,
        )
    return True


OPTIONS = ("tz", "format", "start", "key")


def partitioned(line: CommentLine, draft: LineDraft) -> None:
    kind = line.words[0].text if line.words else ""
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        tail = line.rest[len(kind) :].strip() if guess else ""
        form = f"{guess} {tail}" if tail else _form(guess or "daily")
        draft.refuse(line, f"a kind is one of {', '.join(KINDS)}", f"partitioned {form}")
        return
    if draft.partition is not None:
        hint = (
            "keep one of the two lines; for slices of two dimensions, as a day and a customer, "
            'write `partitioned dynamic key="$.slice"` and values that have both: 2026-01-01:eu'
        )
        draft.error(line.location, "a script has one partition", hint, rule="partitioned-second")
        return
    options = _options(line, draft, kind)
    if kind == "dynamic" and not options.get("key"):
        draft.refuse(line, "a dynamic partition needs its key", f"partitioned {_form(kind)}")
        return
    draft.partition = PartitionSpec(kind, **options)
    draft.places["partitioned"] = line.location


def _form(kind: str) -> str:
    return 'dynamic key="$.path"' if kind == "dynamic" else kind


def _options(line: CommentLine, draft: LineDraft, kind: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in line.options(after=line.words[0]):
        name, _, text = word.text.partition("=")
        value, where = unquote(text), word.location
        if name not in OPTIONS or "=" not in word.text:
            _unknown(draft, where, word.text, name)
        elif name in options:
            draft.error(where, f"`{name}=` is given twice", "keep one", rule="partitioned-twice")
        elif not value:
            draft.error(where, f"`{name}=` is empty", "give it a value", rule="partitioned-empty")
        else:
            options[name] = value
            _check(draft, where, kind, name, text)
    return options


def _unknown(draft: LineDraft, where: Location, text: str, name: str) -> None:
    guess = nearest(name, OPTIONS)
    draft.error(
        where,
        f"`{text}` is not an option of `partitioned`",
        f'did you mean `{guess}="..."`?' if guess else f"the options are {', '.join(OPTIONS)}",
        rule="partitioned-option",
    )


def _check(draft: LineDraft, where: Location, kind: str, name: str, text: str) -> None:
    if is_unclosed(text):
        message = f"`{name}={text[0]}` has no closing quote"
        draft.warn(where, message, "close it", rule="partitioned-quote")
    if (name == "key") != (kind == "dynamic"):
        draft.warn(
            where,
            f"`{name}=` means nothing on a {kind} partition",
            "take it away",
            rule="partitioned-option",
        )
