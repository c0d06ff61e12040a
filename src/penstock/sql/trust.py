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

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.sql.dialect import Unreadable
from penstock.sql.harmless import FUNCTIONS
from penstock.sql.identifiers import fold
from penstock.sql.tables import FORMATS, analyse
from penstock.sql.text import blank
from penstock.sql.tokens import (
    ARGUMENT,
    COMMENT,
    MARKER,
    NAME,
    NOT_CALLED,
    SPACE,
    SYMBOL,
    UNCLOSED,
    WORD,
    Token,
    scan,
)

Own = Callable[[str | None, str], bool]  # whether (schema, name) is a function of the lake

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_STATEMENTS = frozenset({"insert", "map", "reduce"})  # where a query may be: Hive's forms


# What Spark skips between words, and the symbols that it has.
_MADE_OF = {SPACE: frozenset(" \t\r\n"), SYMBOL: frozenset("-+*/%~&|^=<>!(){}[],.:?@;$")}
_TWO_COMMENTS = re.compile(r"/\*|\\(?:\n|\Z)")


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
    tokens: list[Token] = []
    for token in _tokens(text, what):
        parts.append(blank(token.text) if token.kind == COMMENT else token.text)
        if token.kind not in {COMMENT, SPACE}:
            tokens.append(token)
    for at in range(len(tokens)):
        _refuse_word(tokens, at, what)
        _refuse_call(tokens, at, what, own)
    return "".join(parts)


def _tokens(text: str, what: str) -> Iterator[Token]:
    if _CONTROL.search(text):
        raise _refusal(what, "holds control characters")
    for token in scan(text):
        problem = _problem(token)
        if problem is not None:
            raise _refusal(what, problem)
        yield token


def _problem(token: Token) -> str | None:
    """Why Spark may read other words there."""
    written = token.text
    if token.kind == UNCLOSED or not set(written) <= _MADE_OF.get(token.kind, set(written)):
        return f"holds {written!r}, which is not understood"
    if token.kind == COMMENT and _TWO_COMMENTS.search(written, 2):
        return "holds a comment that may be read in two ways"
    if token.kind == NAME and written[0] == '"' and "\\" in written:
        return "holds a name that may be read in two ways"
    return None


def _refuse_word(tokens: Sequence[Token], at: int, what: str) -> None:
    token, before, after = tokens[at], _text(tokens, at - 1), _text(tokens, at + 1)
    if token.text in {";", "$", "|>"} or token.kind == ARGUMENT or (token.text + after) == "|>":
        raise _refusal(what, f"holds {'|>' if token.text == '|' else token.text}")
    if token.kind == WORD and before != ".":
        # Spark compares keywords in capitals, which a long s has as well.
        word = token.text.upper().lower()
        if word == "using" and after != "(":
            raise _refusal(what, "runs a program (USING)")
        if word in _STATEMENTS and after not in {"(", ".", ",", ")", ""}:
            raise _refusal(what, f"holds {token.text.upper()}")
    if token.kind in {NAME, WORD} and after == ".":
        following = tokens[at + 2].kind if at + 2 < len(tokens) else ""
        if following == NAME and (_said(token) in FORMATS or "." in _said(token)):
            raise _refusal(what, f"may read a file: {token.text}.{_text(tokens, at + 2)}")


def _refuse_call(tokens: Sequence[Token], at: int, what: str, own: Own) -> None:
    """Refuse a call of a function that is not allowed."""
    name = tokens[at]
    if name.kind == SYMBOL or _text(tokens, at + 1) != "(":
        return
    before = tokens[at - 1] if at else None
    qualified = before is not None and before.text == "."
    schema = _said(tokens[at - 2]) if qualified and at > 1 else None
    if name.kind in {NAME, WORD} and own(schema, _said(name)):
        return
    if not qualified:
        if name.kind == WORD and _said(name) in NOT_CALLED | FUNCTIONS:
            return
        if name.kind == NAME and _said(name) in FUNCTIONS:
            return
        if name.kind != MARKER and _names_columns(tokens, at):
            return
    raise _refusal(what, f"calls {name.text}")


def _said(token: Token) -> str:
    return fold(token.value if token.kind == NAME else token.text)


def _names_columns(tokens: Sequence[Token], at: int) -> bool:
    """Whether it is an alias with columns: ``AS t(a)``, ``(...) t(a)``, ``WITH t(a)``."""
    before = tokens[at - 1] if at else None
    if before is None:
        return False
    if before.text == ")" or _said(before) in {"as", "with", "recursive"}:
        return True
    depth = 0
    for i in range(at + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth == 0:
            following = [_said(token) for token in tokens[i + 1 : i + 5]]
            query = following[:3] == ["as", "(", "select"]
            return query and following[3:] not in ([","], [")"], [])
    return False


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def _refusal(what: str, does: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{what} {does}, which SQL of a catalog may not",
        hint="a view, macro or sort key computes from tables of the lake; write a query or a model "
        "of your own for more (docs/security.md)",
        data={"refused": what},
    )
