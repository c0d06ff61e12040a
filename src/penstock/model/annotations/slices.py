"""``partitioned <kind> [tz= format= start= key=]``: what a slice is."""

from __future__ import annotations

from penstock.errors import Location
from penstock.model.annotations.draft import Draft
from penstock.model.files.header_lines import CommentLine, is_unclosed, unquote
from penstock.model.time.partition import KINDS, PartitionSpec
from penstock.sql.identifiers import nearest

OPTIONS = ("tz", "format", "start", "key")


def partitioned(line: CommentLine, draft: Draft) -> None:
    kind = line.words[0].text if line.words else ""
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        tail = line.rest[len(kind) :].strip() if guess else ""
        form = f"{guess} {tail}" if tail else _form(guess or "daily")
        draft.refuse(line, f"a kind is one of {', '.join(KINDS)}", f"partitioned {form}")
        return
    if draft.partition is not None:
        hint = "keep one of the two lines"
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


def _options(line: CommentLine, draft: Draft, kind: str) -> dict[str, str]:
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


def _unknown(draft: Draft, where: Location, text: str, name: str) -> None:
    guess = nearest(name, OPTIONS)
    draft.error(
        where,
        f"`{text}` is not an option of `partitioned`",
        f'did you mean `{guess}="..."`?' if guess else f"the options are {', '.join(OPTIONS)}",
        rule="partitioned-option",
    )


def _check(draft: Draft, where: Location, kind: str, name: str, text: str) -> None:
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
