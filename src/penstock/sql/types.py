"""Types as DuckDB and the format name them, in Spark's SQL: on their own and in casts.

A cast to a type of the format that Spark lacks is one to a wider type of Spark's, each value
checked: ``CAST(x AS UTINYINT)`` and ``x::UUID`` become an expression that rounds as DuckDB does and
fails for a value outside the type. The operand stands in it once, as the argument of a lambda,
since it may be an aggregate or differ from call to call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from penstock.lazy import exp
from penstock.sql.text import breaks, wrong
from penstock.sql.tokens import (
    MARKER,
    NAME,
    NO_VALUE,
    NUMBER,
    STRING,
    WORD,
    Token,
    loose_words,
    tokenize,
)

_WHOLE = {
    ("UTINYINT", "UINT8"): ("0", "255", "SMALLINT"),
    ("USMALLINT", "UINT16"): ("0", "65535", "INT"),
    ("UINTEGER", "UINT32"): ("0", "4294967295", "BIGINT"),
    ("UBIGINT", "UINT64"): ("0", "18446744073709551615", "DECIMAL(20, 0)"),
    ("UHUGEINT", "UINT128"): ("0", "9" * 38, "DECIMAL(38, 0)"),
    ("HUGEINT", "INT128"): ("-" + "9" * 38, "9" * 38, "DECIMAL(38, 0)"),
}
# Spark makes a decimal of a double's shortest text, which beyond 2**53 is another number.
_ROUNDED = (
    "transform(array(:x), v -> CASE WHEN typeof(v) IN ('float', 'double') THEN "
    "CASE WHEN abs(v) <= 9007199254740992D THEN CAST(rint(v) AS DECIMAL(38, 0)) "
    "WHEN v IS NOT NULL THEN raise_error(concat(CAST(v AS STRING), ' cannot be cast to :type: "
    "cast a decimal or a text')) END ELSE CAST(v AS DECIMAL(38, 0)) END)"
)
_RANGE = (
    f"transform({_ROUNDED}, v -> CASE WHEN v BETWEEN :low AND :high THEN CAST(v AS :spark) "
    "WHEN v IS NOT NULL THEN raise_error(concat(CAST(v AS STRING), ' is out of the range of "
    ":type: :low to :high')) END)[0]"
)
_UUID = (
    "transform(array(:x), v -> CASE WHEN regexp_replace(lower(v), '[0-9a-f]', 'h') = "
    "'hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh' THEN lower(v) WHEN v IS NOT NULL THEN "
    "raise_error(concat('UUID is expected: ', CAST(v AS STRING))) END)[0]"
)


def _range(name: str, low: str, high: str, spark: str) -> str:
    parts = {":type": name, ":low": low, ":high": high, ":spark": spark}
    return re.sub(r":(?:type|low|high|spark)\b", lambda match: parts[match[0]], _RANGE)


# For each name of a type the expression, in which ``:x`` is what is cast.
CHECKED = {
    **{name: _range(names[0], *ends) for names, ends in _WHOLE.items() for name in names},
    **dict.fromkeys(("UUID", "GUID"), _UUID),
}
_REFUSED = {"GEOMETRY": "write st_geomfromwkb(bytes)"}
_MENTIONED = frozenset({*CHECKED, *_REFUSED})
_WORDS = re.compile(r"\w+")

_TYPED_TEXTS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME", "X"})


def checked(text: str) -> str:
    """``text`` of Spark's dialect with these casts as expressions. Lines stay lines.

    Raises QueryFailed with the place where a value is not known to be the same.
    """
    if _MENTIONED.isdisjoint(_WORDS.findall(text.upper())):
        return text
    casts = _Casts(text)
    for at, token in enumerate(casts.tokens):
        casts.look(at, token)
    return casts.written()


class _Casts:
    """The words of a text, those that are replaced, and what is written before some."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.tokens = tokenize(text)
        self._open: list[int] = []
        self._opening: dict[int, int] = {}  # of each bracket that closes
        self._before: dict[int, str] = {}
        self._replaced: dict[int, str] = {}

    def look(self, at: int, token: Token) -> None:
        """The next word; casts inside of others come first."""
        if token.text in {"(", "["}:
            self._open.append(at)
        elif token.text in {")", "]"} and self._open:
            self._opening[at] = self._open.pop()
        elif token.text == "::" and self._is_checked(at + 1):
            self._postfix(at)
        elif token.upper == "AS" and self._is_of_a_cast() and self._is_checked(at + 1):
            self._call(self._open[-1], at)

    def written(self) -> str:
        parts: list[str] = []
        position = 0
        for at, token in enumerate(self.tokens):
            parts += [self._text[position : token.start], self._before.get(at, "")]
            parts.append(self._replaced.get(at, token.text))
            position = token.end
        return "".join([*parts, self._text[position:]])

    def _is_of_a_cast(self) -> bool:
        word = self._upper(self._open[-1] - 1) if self._open else ""
        return word in {"CAST", "TRY_CAST"}

    def _is_checked(self, at: int) -> bool:
        """Return whether the type at this place is of those that are checked. Raises for the
        others.
        """
        name = self._upper(at)
        after = self.tokens[at + 1].text if at + 1 < len(self.tokens) else ""
        if name not in CHECKED and (name not in _REFUSED or after == "("):
            return False
        hint = _REFUSED.get(name)
        if hint is None and after == "[":
            hint = f"cast each element: transform(x, e -> CAST(e AS {name}))"
        if hint is not None:
            raise wrong(f"a cast to {name} is not supported", self._text, self._start(at), hint)
        return True

    def _call(self, bracket: int, at: int) -> None:
        """``CAST(x AS type)``: the word, its bracket, AS, the type and the last bracket."""
        name = self._upper(at + 1)
        if self._upper(bracket - 1) == "TRY_CAST":
            hint = f"write CASE WHEN <the value fits> THEN CAST(x AS {name}) END"
            raise wrong(f"TRY_CAST to {name} is not supported", self._text, self._start(at), hint)
        head, tail = CHECKED[name].split(":x")
        self._replaced |= {bracket - 1: head, bracket: "(", at: ")", at + 1: tail, at + 2: ""}

    def _postfix(self, at: int) -> None:
        name = self._upper(at + 1)
        start = self._operand(at - 1)
        if start is None:
            hint = f"write CAST(... AS {name})"
            raise wrong(f"what :: casts to {name} is not clear", self._text, self._start(at), hint)
        head, tail = CHECKED[name].split(":x")
        self._before[start] = head + self._before.get(start, "")
        self._replaced |= {at: "", at + 1: tail}

    def _operand(self, at: int) -> int | None:
        """Return where the value begins that ends at a place; ``None`` where that is not known."""
        while at >= 0:
            token = self.tokens[at]
            at -= self._is_suffix(at)
            if token.text in {")", "]"}:
                opening = self._opening.get(at)
                if opening is None or self._upper(opening - 1) in {"OVER", "FILTER", "GROUP"}:
                    return None
                at = opening - 1 if token.text == "]" or self._is_called(opening) else opening
                if at != opening:
                    continue
            elif self.tokens[at].kind == NUMBER:
                at -= self._is_signed(at)
            elif token.kind == STRING:
                if at and self.tokens[at - 1].kind == STRING:
                    return None
                at -= self._upper(at - 1) in _TYPED_TEXTS
            elif token.kind not in {WORD, NAME, MARKER} or token.upper in {"END", *NO_VALUE}:
                return None
            before = self.tokens[at - 1].text if at else ""
            if before not in {".", "::"}:
                return None if before == ":" else at
            at -= 2  # a name in parts, or a value that is cast already
        return None

    def _is_called(self, bracket: int) -> bool:
        """Return whether the bracket is that of a function, not of a value on its own."""
        before = self.tokens[bracket - 1] if bracket else None
        if before is None or before.kind not in {WORD, NAME}:
            return False
        return before.upper not in NO_VALUE

    def _is_suffix(self, at: int) -> bool:
        """Return whether the word is the type of a number: ``1.5D``."""
        before = self.tokens[at - 1] if at and self.tokens[at].kind == WORD else None
        return before is not None and before.kind == NUMBER and before.end == self._start(at)

    def _is_signed(self, at: int) -> bool:
        """Return whether the number has a sign: ``-1``, but not ``a - 1``."""
        if not at or self.tokens[at - 1].text not in {"-", "+"}:
            return False
        before = self.tokens[at - 2] if at > 1 else None
        if before is None or before.upper in NO_VALUE:
            return True
        return before.kind not in {WORD, NAME, NUMBER, STRING} and before.text not in {")", "]"}

    def _upper(self, at: int) -> str:
        return self.tokens[at].upper if 0 <= at < len(self.tokens) else ""

    def _start(self, at: int) -> int:
        return self.tokens[at].start


def spark_type(text: str, dialect: str = "duckdb") -> str:
    """A type of a dialect as Spark's SQL writes it.

    Raises ValueError for one that Spark cannot hold.
    """
    from sqlglot.errors import SqlglotError

    try:
        kind = exp.DataType.build(text, dialect=dialect)
    except SqlglotError:
        raise ValueError(f"has the unknown type {text!r}") from None
    return _substituted(kind).sql("spark")


def _substituted(kind: exp.DataType) -> exp.DataType:
    """Types that Spark lacks, as the lake reads them (`lake.format.types`)."""

    def substitute(node: exp.Expression) -> exp.Expression:
        name = node.this.value if isinstance(node, exp.DataType) and node.this else None
        if name in ("TIME", "TIMETZ", "INTERVAL", "USERDEFINED"):
            raise ValueError(f"has the type {node.sql('duckdb')}, which Spark cannot hold")
        wider = _WIDER.get(str(name))
        return exp.DataType.build(wider, dialect="spark") if wider else node

    changed = kind.transform(substitute)
    assert isinstance(changed, exp.DataType)
    return changed


_WIDER = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINT": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)",
    "INT128": "DECIMAL(38, 0)",
    "UINT128": "DECIMAL(38, 0)",
    "JSON": "STRING",
    "UUID": "STRING",
    "TIMESTAMP_S": "TIMESTAMP_NTZ",
    "TIMESTAMP_MS": "TIMESTAMP_NTZ",
    "TIMESTAMP_NS": "TIMESTAMP_NTZ",
}


_ANY_CAST = re.compile(r"::|\bcast\b|\btry_cast\b", re.I)
# The types of two words and more, and those that have no meaning with a length.
_LONGER = (("DOUBLE", "PRECISION"), ("TIMESTAMP", "WITH", "TIME", "ZONE"))
_WITHOUT_LENGTH = frozenset({"VARCHAR", "NVARCHAR", "CHAR", "BPCHAR", "TEXT"})
_IN_SPARK = {
    **dict.fromkeys(("VARCHAR", "NVARCHAR", "CHAR", "BPCHAR", "TEXT"), "STRING"),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"), "TIMESTAMP_LTZ"),
    **dict.fromkeys(("BLOB", "BYTEA"), "BINARY"),
    "DATETIME": "TIMESTAMP_NTZ", "DOUBLE PRECISION": "DOUBLE",
    "INT2": "SMALLINT", "INT4": "INT", "INT8": "BIGINT", "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE",
}  # fmt: skip


_RENAMED = frozenset(kind.split()[0] for kind in _IN_SPARK)


def cast_types(text: str) -> str:
    """``text`` with those in Spark's words; what follows on the line may move by some columns."""
    if _RENAMED.isdisjoint(_WORDS.findall(text.upper())) or not _ANY_CAST.search(text):
        return text
    parts: list[str] = []
    position = 0
    tokens = loose_words(text)
    for at in _type_places(tokens):
        kind = _other_type(tokens, at)
        if kind is None:
            continue
        start, end = tokens[at].start, tokens[at + kind.count(" ")].end
        parts += [text[position:start], _IN_SPARK[kind].ljust(len(kind)), breaks(text, start, end)]
        position = end
    return "".join([*parts, text[position:]])


def _other_type(tokens: Sequence[Token], at: int) -> str | None:
    """The type that is named there, in capitals, if Spark calls it otherwise."""
    following = tuple(token.upper for token in tokens[at : at + 4])
    for longer in _LONGER:
        if following[: len(longer)] == longer:
            return " ".join(longer)
    kind = following[0] if following else ""
    sized = kind in _WITHOUT_LENGTH and following[1:2] == ("(",)
    return kind if kind in _IN_SPARK and not sized else None


def _type_places(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield where the type of a cast is named: after ``::``, and after the AS of a CAST."""
    casts: list[bool] = []  # for each bracket that is open, whether it is that of a CAST
    before = ""
    for at, token in enumerate(tokens):
        word = token.upper
        if word == "(":
            casts.append(before in {"CAST", "TRY_CAST"})
        elif word == ")" and casts:
            casts.pop()
        elif word == "::" or (word == "AS" and casts and casts[-1]):
            yield at + 1
        before = word
