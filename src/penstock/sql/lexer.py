"""sqlglot's words of a text, which its parsers read and hashes of definitions are made of.

They are not those of `penstock.sql.tokens`: they come together or apart by dialect
(``PARTITIONED BY``, ``1L``), and comments are no words.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import Token
    from sqlglot.dialects.dialect import Dialect

_NAMES = frozenset({"SETTINGS"})  # keywords to sqlglot; a table function of lakes
_CASE_MATTERS = frozenset({"VAR", "IDENTIFIER", "STRING", "RAW_STRING", "HEREDOC_STRING"})


@cache
def reader(name: str) -> type[Dialect]:
    """Return sqlglot's dialect of a name, which takes some time to load, as our parsers read it."""
    from sqlglot.dialects.dialect import Dialect

    base: Any = type(Dialect.get_or_raise(name))
    keywords = {word: kind for word, kind in base.Tokenizer.KEYWORDS.items() if word not in _NAMES}
    # '' is a quote within a text, in Spark since 4.0; sqlglot reads two texts there.
    changes = {"KEYWORDS": keywords, "STRING_ESCAPES": [*base.Tokenizer.STRING_ESCAPES, "'"]}
    tokenizer = type(base.Tokenizer)("Tokenizer", (base.Tokenizer,), changes)
    made: type[Dialect] = type(base)(f"Penstock{base.__name__}", (base,), {"Tokenizer": tokenizer})
    return made


class Lexer:
    """The words of some texts, which are read once for all who look at the same text."""

    __slots__ = ("_read",)

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], list[Token]] = {}

    def words(self, text: str, name: str) -> list[Token]:
        """As the `reader` of this name has them. Raises TokenError."""
        read = self._read.get((text, name))
        if read is None:
            read = self._read[text, name] = reader(name)().tokenize(text)
        return read


def canonical(text: str, dialect: str, lexer: Lexer | None = None) -> list[str]:
    """The words of a text in one spelling, in which the case of keywords does not count.

    Names and texts stay as they are and never look alike. The hashes of models' definitions, which
    are stored, are made of this: it has the words of sqlglot's own dialect, as the first had.
    """
    from sqlglot import TokenType

    kinds = {TokenType[kind]: kind for kind in _CASE_MATTERS}  # .name takes longer
    spelled: list[str] = []
    dollar = -1  # where a ``$`` ended that came just before
    for token in _own_words(text, dialect, lexer or Lexer()):
        kind, said = kinds.get(token.token_type), token.text
        if token.start == dollar and kind not in {"STRING", "RAW_STRING", "IDENTIFIER"}:
            spelled[-1], dollar = f"ARGUMENT {said}", -1
            continue
        spelled.append(said.upper() if kind is None else f"{kind} {said}")
        is_mark = said == "$" and token.token_type is TokenType.PARAMETER
        dollar = token.end + 1 if is_mark else -1
    return spelled


def _own_words(text: str, dialect: str, lexer: Lexer) -> list[Token]:
    """Return those of sqlglot's dialect, which differ from our readers' at some names and texts."""
    if "''" not in text and not any(name in text.upper() for name in _NAMES):
        return lexer.words(text, dialect)
    from sqlglot.dialects.dialect import Dialect

    return Dialect.get_or_raise(dialect).tokenize(text)
