"""``partitioned <kind> [tz= format= start= key=]``: what a slice is."""

from __future__ import annotations

import re

from penstock.errors import Location
from penstock.model.header.draft import Draft
from penstock.model.header.lines import CommentLine
from penstock.model.nearest import nearest
from penstock.model.partition import KINDS, PartitionSpec

OPTIONS = ("tz", "format", "start", "key")
_OPTION = re.compile(r'(?P<name>[^\s="]+)=(?:"(?P<quoted>[^"]*)(?P<close>"?)|(?P<bare>\S*))')
_ITEM = re.compile(rf"{_OPTION.pattern}|(?P<junk>\S+)")


def partitioned(line: CommentLine, draft: Draft) -> None:
    kind = line.words[0].text if line.words else ""
    if kind not in KINDS:
        guess = nearest(kind, KINDS)
        tail = line.rest[len(kind) :].strip() if guess else ""
        form = f"{guess} {tail}" if tail else _form(guess or "daily")
        draft.refuse(line, f"a kind is one of {', '.join(KINDS)}", f"partitioned {form}")
        return
    if draft.partition is not None:
        draft.drop(line, "the first valid `partitioned` holds", f"partitioned {_form(kind)}")
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
    found: dict[str, str] = {}
    after_kind = line.text.index(kind, len(line.keyword)) + len(kind)
    for item in _ITEM.finditer(line.text, after_kind):
        where = line.at(item.start())
        name, value = item["name"], item["quoted"] if item["bare"] is None else item["bare"]
        if name not in OPTIONS:
            _unknown(draft, where, item.group(), name)
        elif name in found:
            draft.error(where, f"`{name}=` is given twice", "keep one", rule="partitioned-twice")
        elif not value:
            draft.error(where, f"`{name}=` is empty", "give it a value", rule="partitioned-empty")
        else:
            found[name] = value
            _check(draft, where, kind, name, closed=item["close"] != "")
    return found


def _unknown(draft: Draft, where: Location, text: str, name: str | None) -> None:
    guess = nearest(name or text, OPTIONS)
    draft.error(
        where,
        f"`{text}` is no option of `partitioned`",
        f'did you mean `{guess}="..."`?' if guess else f"the options are {', '.join(OPTIONS)}",
        rule="partitioned-option",
    )


def _check(draft: Draft, where: Location, kind: str, name: str, *, closed: bool) -> None:
    if not closed:
        draft.warn(where, f'`{name}="` has no closing quote', "close it", rule="partitioned-quote")
    if (name == "key") != (kind == "dynamic"):
        draft.warn(
            where,
            f"`{name}=` means nothing on a {kind} partition",
            "take it away",
            rule="partitioned-option",
        )
