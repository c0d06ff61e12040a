"""SQL that a catalog holds (views, macros, sort keys): code of whoever could write the catalog.

Its reader has not read it, so it may only compute: call functions of an allow-list
(`penstock.sql.harmless`) and the lake's own, and read tables of the lake. It may not run programs
(``TRANSFORM ... USING``), call into Java or read files. `docs/security.md` says who is trusted with
what.

Calls are found in the words of the text rather than in a tree, so that nothing escapes by where it
stands. Spark must see the same words: comments and hints are blanked, and what one lexer may read
otherwise than another is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.sql.harmless import FUNCTIONS
from penstock.sql.tables import FORMATS, Unreadable, analyse

Own = Callable[[str | None, str], bool]  # whether (schema, name) is a function of the lake

_WORDS = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<comment>--[^\r\n]*|/\*.*?\*/)
    |(?P<string>[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*')
    |(?P<name>`(?:[^`]|``)*`|"(?:[^"\\]|\\.|"")*")
    |(?P<word>\w+)
    |(?P<symbol>[-+*/%~&|^=<>!(){}\[\],.:?@;$])""",
    re.S | re.X,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# What may stand before a bracket and calls nothing.
_BEFORE_BRACKETS = """
    all and anti any as at between by case cross cube distinct div else end escape except exists
    filter from full group having ilike in inner intersect is join lateral left like limit minus not
    of offset on or order over outer partition pivot qualify range regexp rlike rollup rows select
    semi sets some tablesample then union unpivot using values when where window with within
"""
_KEYWORDS = frozenset(_BEFORE_BRACKETS.split())
_STATEMENTS = frozenset({"insert", "map", "reduce"})  # where a query may be: Hive's forms


@dataclass(frozen=True, slots=True)
class _Word:
    kind: str
    text: str
    start: int

    @property
    def folded(self) -> str:
        mark = self.text[0]
        plain = self.text[1:-1].replace(mark * 2, mark) if self.kind == "name" else self.text
        return plain.lower()


def harmless_query(text: str, what: str, own: Own) -> str:
    """A query of the catalog as Spark may have it: without comments, its places as they were.

    Raises UnsupportedFeature, which says of ``what`` that it does more than compute.
    """
    clean = _harmless(text, what, own)
    _refuse_files(clean, what)
    return clean


def harmless_expression(text: str, what: str, own: Own = lambda _, __: False) -> str:
    """`harmless_query` of an expression."""
    clean = _harmless(text, what, own)
    _refuse_files(f"SELECT {clean}", what)
    return clean


def _refuse_files(text: str, what: str) -> None:
    """Tables are looked up in the lake, but for what Spark would take for files."""
    try:
        analysis = analyse(text)
    except (Unreadable, QueryFailed, UnsupportedFeature):
        raise _refusal(what, "holds something other than a query that is understood") from None
    if analysis.files:
        raise _refusal(what, f"reads the file {analysis.files[0]}")


def _harmless(text: str, what: str, own: Own) -> str:
    parts: list[str] = []
    words: list[_Word] = []
    for word in _words(text, what):
        blank = word.kind == "comment"
        parts.append(re.sub(r"[^\n]", " ", word.text) if blank else word.text)
        if word.kind not in {"comment", "space"}:
            words.append(word)
    for at in range(len(words)):
        _refuse_word(words, at, what)
        _refuse_call(words, at, what, own)
    return "".join(parts)


def _words(text: str, what: str) -> Iterator[_Word]:
    if _CONTROL.search(text):
        raise _refusal(what, "holds control characters")
    at = 0
    while at < len(text):
        match = _WORDS.match(text, at)
        if match is None:
            raise _refusal(what, f"holds {text[at : at + 20]!r}, which is not understood")
        word = _Word(str(match.lastgroup), match[0], at)
        if word.kind == "comment" and ("/*" in word.text[2:] or word.text.endswith("\\")):
            raise _refusal(what, "holds a comment that may be read in two ways")
        yield word
        at = match.end()


def _refuse_word(words: Sequence[_Word], at: int, what: str) -> None:
    word, after = words[at], _text(words, at + 1)
    before = _text(words, at - 1)
    if word.text in {";", "$"} or (word.text == "|" and after == ">"):
        raise _refusal(what, f"holds {word.text}{after if word.text == '|' else ''}")
    if word.kind == "word" and before != ".":
        if word.folded == "using" and after != "(":
            raise _refusal(what, "runs a program (USING)")
        if word.folded in _STATEMENTS and after not in {"(", ".", ",", ")", ""}:
            raise _refusal(what, f"holds {word.text.upper()}")
    if word.kind in {"name", "word"} and after == ".":
        following = words[at + 2].kind if at + 2 < len(words) else ""
        if following == "name" and (word.folded in FORMATS or "." in word.folded):
            raise _refusal(what, f"may read a file: {word.text}.{_text(words, at + 2)}")


def _refuse_call(words: Sequence[_Word], at: int, what: str, own: Own) -> None:
    """Refuse a call of a function that is not allowed."""
    name = words[at]
    if name.kind not in {"name", "word", "string"} or _text(words, at + 1) != "(":
        return
    before = words[at - 1] if at else None
    qualified = before is not None and before.text == "."
    schema = words[at - 2].folded if qualified and at > 1 else None
    if name.kind != "string" and own(schema, name.folded):
        return
    if not qualified:
        if name.kind == "word" and name.folded in _KEYWORDS | FUNCTIONS:
            return
        if name.kind == "name" and name.folded in FUNCTIONS:
            return
        if _names_columns(words, at):
            return
    raise _refusal(what, f"calls {name.text}")


def _names_columns(words: Sequence[_Word], at: int) -> bool:
    """Whether it is an alias with columns: ``AS t(a)``, ``(...) t(a)``, ``WITH t(a)``."""
    before = words[at - 1] if at else None
    if before is None:
        return False
    if before.text == ")" or before.folded in {"as", "with", "recursive"}:
        return True
    depth = 0
    for i in range(at + 1, len(words)):
        depth += {"(": 1, ")": -1}.get(words[i].text, 0)
        if depth == 0:
            following = [word.folded for word in words[i + 1 : i + 5]]
            query = following[:3] == ["as", "(", "select"]
            return query and following[3:] not in ([","], [")"], [])
    return False


def _text(words: Sequence[_Word], at: int) -> str:
    return words[at].text if 0 <= at < len(words) else ""


def _refusal(what: str, does: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{what} {does}, which SQL of a catalog may not",
        hint="a view, macro or sort key computes from tables of the lake; write a query or a model "
        "of your own for more (docs/security.md)",
        data={"refused": what},
    )
