"""The text of DuckDB's SQL: made readable for a parser, its columns and words as DuckDB has them.

Views and macros hold SQL as DuckDB prints its own parse tree (measured, 1.5.5): functions carry
``main.``, lambdas are ``(lambda x: ...)``, and names that had the lake's own in front have
``{DUCKLAKE_CATALOG}`` there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from penstock.lazy import exp
from penstock.sql.identifiers import fold, quote_identifier
from penstock.sql.literals import plain_text_literal, text_literal
from penstock.sql.query.edits import Edit, Mapped, edited
from penstock.sql.query.reading import leading_heads, list_items
from penstock.sql.text import Unreadable, parse_query
from penstock.sql.tokens import (
    MARKER,
    NAME,
    NUMBER,
    STRING,
    WORD,
    Token,
    closing,
    depth_of,
    tokenize,
    unquoted,
    words,
)

_CATALOG = "{DUCKLAKE_CATALOG}."


def readable(sql: str, own: Collection[str] = ()) -> str:
    """``sql`` without those. ``own`` are macros (``main.f``, folded) whose schema has to stay.

    Raises QueryFailed for a quote that is not closed.
    """
    sql = sql.replace(_CATALOG, "")
    return edited(sql, _printed_forms(tokenize(sql, "duckdb"), own)).text


def named(sql: str, own: Collection[str] = ()) -> Mapped:
    """`readable` for a query that a user wrote, in which each column of a SELECT gets the name
    that DuckDB gives it, since Spark has others. Raises Unreadable.
    """
    return edited(sql, naming(sql, own))


def naming(sql: str, own: Collection[str] = ()) -> list[Edit]:
    """The edits of `named`."""
    tokens = tokenize(sql, "duckdb")
    edits = _printed_forms(tokens, own)
    for item in _items(tokens):
        name = _unnamed_at(sql, item)
        if name is not None:
            edits.append(_alias(item, name))
    return edits


def _items(tokens: Sequence[Token], *, are_inner: bool = False) -> Iterator[Sequence[Token]]:
    """Yield the words of each item of the SELECTs, or only of those in brackets."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += depth_of(token)
        if token.upper == "SELECT" and (depth or not are_inner):
            for begin, end in list_items(tokens, place):
                yield tokens[begin:end]


def _alias(item: Sequence[Token], name: str) -> Edit:
    return Edit(item[-1].end, item[-1].end, f" AS {quote_identifier(name)}")


def cast_aliases(sql: str, start: int) -> Iterator[Edit]:
    """Yield an alias for each cast of a column that has none, from ``start`` on.

    SQLMesh names ``id::INT`` as its column, ``id``; DuckDB names it ``CAST(id AS INTEGER)``.
    """
    for item in _items(words(sql, "duckdb", start)):
        if any(word.text == "::" or word.upper in ("CAST", "TRY_CAST") for word in item):
            name = _cast_column(sql[item[0].start : item[-1].end])
            if name is not None:
                yield _alias(item, name)


def _cast_column(text: str) -> str | None:
    """Return the column that an item of a SELECT casts, where it does nothing else."""
    try:
        items = parse_query(f"SELECT {text}", "duckdb").expressions
    except Unreadable:  # which reading the query reports
        return None
    inner = node = items[0] if len(items) == 1 else None
    while isinstance(inner, exp.Cast):
        inner = inner.this
    return inner.name if inner is not node and isinstance(inner, exp.Column) else None


def cast_name(node: exp.Expr) -> str | None:
    """Return DuckDB's name of a cast of a column; None for anything else."""
    inner = node
    while isinstance(inner, exp.Cast) and not isinstance(inner, exp.TryCast):
        inner = inner.this
    return _printed(node) if inner is not node and isinstance(inner, exp.Column) else None


def _unnamed_at(sql: str, item: Sequence[Token]) -> str | None:
    if not item:
        return None
    start = item[0].start
    try:
        return unnamed(sql[start : item[-1].end])
    except Unreadable as error:
        raise Unreadable(str(error), start + error.at) from None


def _printed_forms(tokens: Sequence[Token], own: Collection[str]) -> list[Edit]:
    edits: list[Edit] = []
    for at, token in enumerate(tokens):
        edits += _schema_of_function(tokens, at, own)
        edits += _first_word(tokens, at)
        edits += _json_key(tokens, at)
        if token.upper == "LAMBDA":
            edits += _lambda(tokens, at)
        if token.text == "->":
            edits += _arrow(tokens, at)
        if [after.text for after in tokens[at + 2 : at + 3]] == ["::"]:
            edits += _typed_literal(tokens, at)
    return edits


def named_inside(sql: str) -> str:
    """``sql`` in which what the inner SELECTs leave without a name has the one that DuckDB gives.

    Spark has names of its own for those, and a ``*`` or a name outside would find them. Raises
    QueryFailed for a quote that is not closed.
    """
    sql = sql.replace(_CATALOG, "")
    items = _items(tokenize(sql, "duckdb"), are_inner=True)
    return edited(
        sql, [_alias(item, _text(sql, item)) for item in items if not _has_name(item)]
    ).text


def _has_name(item: Sequence[Token]) -> bool:
    """Return whether it is a column, a star, or has an AS (that of a cast is in brackets)."""
    depth = 0
    for token in item:
        depth += depth_of(token)
        if depth == 0 and token.upper == "AS":
            return True
    dotted = len(item) % 2 == 1 and all(token.text == "." for token in item[1::2])
    if dotted and item[0].kind in {NAME, WORD} and item[0].upper not in _VALUES:
        return True
    first = item[2:3] if [token.text for token in item[1:2]] == ["."] else item[:1]
    return not first or first[0].text == "*"


_VALUES = ("NULL", "TRUE", "FALSE")


def projections(sql: str) -> list[str]:
    """The text of each item of the first SELECT's list: DuckDB's name for one without an alias."""
    sql = sql.replace(_CATALOG, "")
    tokens = tokenize(sql, "duckdb")
    start = max((head.closing for head in leading_heads(tokens)), default=0)
    select = next((at for at in range(start, len(tokens)) if tokens[at].upper == "SELECT"), None)
    items = () if select is None else list_items(tokens, select)
    return [_text(sql, tokens[begin:end]) for begin, end in items]


def _text(sql: str, item: Sequence[Token]) -> str:
    """The text of an item, as DuckDB prints what it has read."""
    text = sql[item[0].start : item[-1].end] if item else ""
    return text.replace(" AS DOUBLE)", ' AS "DOUBLE")')


def _schema_of_function(tokens: Sequence[Token], at: int, own: Collection[str]) -> list[Edit]:
    """``main.`` of ``main.list_value(``."""
    if at + 3 >= len(tokens) or fold(tokens[at].value) != "main":
        return []
    dot, name, bracket = (token.value for token in tokens[at + 1 : at + 4])
    if dot != "." or bracket != "(" or f"main.{fold(name)}" in own:
        return []
    if at and tokens[at - 1].text == ".":
        return []
    return [Edit(tokens[at].start, tokens[at + 2].start, "")]


def _lambda(tokens: Sequence[Token], at: int) -> list[Edit]:
    """``(lambda x, y: body)`` as ``(x, y) -> body``, without the brackets around it."""
    colon = next((i for i in range(at, len(tokens)) if tokens[i].text == ":"), None)
    close = closing(tokens, at - 1) if at else None
    if colon is None or close is None or tokens[at - 1].text != "(":
        return []
    names = ", ".join(t.text for t in tokens[at + 1 : colon] if t.text != ",")
    head = f"({names}) -> " if "," in names else f"{names} -> "
    return [
        Edit(tokens[at - 1].start, tokens[colon].end, head),
        Edit(tokens[close].start, tokens[close].end, ""),
    ]


def _arrow(tokens: Sequence[Token], at: int) -> list[Edit]:
    """The older ``list_filter(l, (x -> body))``, told from JSON's ``->`` by the function."""
    opening = at - 2
    if opening < 1 or tokens[opening].text != "(" or tokens[opening - 1].text != ",":
        return []
    close = closing(tokens, opening)
    if close is None or not _takes_lambda(tokens, opening):
        return []
    return [
        Edit(tokens[opening].start, tokens[opening].end, ""),
        Edit(tokens[close].start, tokens[close].end, ""),
    ]


def _takes_lambda(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the function around a place is one of lists."""
    depth = 0
    for i in range(at - 1, 0, -1):
        depth += depth_of(tokens[i])
        if depth > 0:
            caller = fold(tokens[i - 1].value)
            return caller.startswith(("list_", "array_")) or caller in {"apply", "filter", "reduce"}
    return False


def _first_word(tokens: Sequence[Token], at: int) -> list[Edit]:
    """Words that sqlglot takes for another: ``:x`` that begins an item (for an alias without a
    name), and a column called ``values``.
    """
    token, before = tokens[at], tokens[at - 1].upper if at else ""
    if token.kind == MARKER and before in {"SELECT", "DISTINCT", "ALL", ","}:
        return [Edit(token.start, token.end, f"${token.value}")]
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.kind == WORD and token.upper == "VALUES" and after != "(":
        return [Edit(token.start, token.end, quote_identifier(token.text))]
    return []


_PATHS = frozenset(
    {"JSON_EXTRACT", "JSON_EXTRACT_PATH", "JSON_EXTRACT_PATH_TEXT", "JSON_EXTRACT_STRING"}
)
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*")


def _json_key(tokens: Sequence[Token], at: int) -> list[Edit]:
    """Write out what sqlglot reads otherwise: a key of JSON that is not a path (``j->'a.b'``), and
    ``f(j -> 'a')``, which is a lambda to it.
    """
    if tokens[at].upper in _PATHS and [t.text for t in tokens[at + 1 : at + 2]] == ["("]:
        close = closing(tokens, at + 1)
        if close is None or tokens[close - 2].text != ",":
            return []
        return _as_path(tokens[close - 1], "")
    if tokens[at].text not in {"->", "->>"} or at + 1 >= len(tokens) or at == 0:
        return []
    value, key = tokens[at - 1], tokens[at + 1]
    opens = at > 1 and tokens[at - 2].text in {",", "("} and value.kind in {WORD, NAME}
    if tokens[at].text == "->>" or not opens:
        return _as_path(key, "")
    if key.kind not in {STRING, NUMBER} or _takes_lambda(tokens, at):
        return []
    begin = Edit(value.start, value.start, "json_extract(")
    return [begin, Edit(tokens[at].start, tokens[at].end, ","), *_as_path(key, ")")]


def _as_path(key: Token, after: str) -> list[Edit]:
    """The edit of a key, which is followed by ``after``."""
    said = unquoted(key) if key.kind == STRING else ""
    if key.kind != STRING or _PLAIN_KEY.fullmatch(said) or said[:1] in {"$", "/"} or '"' in said:
        return [Edit(key.end, key.end, after)] if after else []
    return [Edit(key.start, key.end, plain_text_literal(f'$."{said}"') + after)]


def _typed_literal(tokens: Sequence[Token], at: int) -> list[Edit]:
    """``DATE '2020-01-01'::VARCHAR``: the name of the type binds closer than the cast."""
    value = tokens[at + 1]
    if tokens[at].upper not in _TYPES or value.kind != STRING:
        return []
    start, end = tokens[at].start, value.end
    return [Edit(start, start, "("), Edit(end, end, ")")]


_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")


def name_in_spark(written: str) -> str:
    """``"a ""b"`` in backticks."""
    return quote_identifier(written[1:-1].replace('""', '"'), mark="`")


def text_in_spark(token: Token) -> str:
    r"""``'a\b'``, ``E'a\nb'`` or ``$$a$$``, whose backslashes and quotes Spark escapes."""
    return text_literal(unquoted(token))


_NAMED = (exp.Alias, exp.Column, exp.Star, exp.Columns, exp.Dot, exp.Subquery)
_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+", exp.And: "AND", exp.DPipe: "||", exp.Div: "/", exp.EQ: "=", exp.GT: ">",
    exp.GTE: ">=", exp.IntDiv: "//", exp.LT: "<", exp.LTE: "<=", exp.Mod: "%", exp.Mul: "*",
    exp.NEQ: "!=", exp.Or: "OR", exp.Sub: "-",
}  # fmt: skip


_TYPED = re.compile(r"\b(DATE|TIMESTAMP|TIMESTAMPTZ)\s+'[^']*'(?=\s*::)", re.IGNORECASE)
_WRITTEN = (exp.Like, exp.ILike, exp.Is, exp.In, exp.Between, exp.Not, exp.NullSafeEQ, exp.Pow)
_ARROW = re.compile(r"([\w.]+)\s*(->>?)\s*('[^']*'|\d+)")
_PRINTED_TYPES = {
    "BLOB": '"BLOB"',
    "INT": "INTEGER",
    "INT[]": "INTEGER[]",
    "TEXT[]": "VARCHAR[]",
    "INT128": '"HUGEINT"',
    "TEXT": "VARCHAR",
    "DOUBLE": '"DOUBLE"',
    "DATE": '"DATE"',
}


def unnamed(text: str) -> str | None:
    """DuckDB's name for an item of a SELECT; ``None`` where the item has a name on its own.

    Functions are named as they were written, which is DuckDB's name when nothing but columns and
    constants is in them. Raises Unreadable.
    """
    text = _TYPED.sub(r"(\g<0>)", text)  # the name of the type binds closer than a cast
    text = f"${text[1:]}" if text.startswith(":") else text
    before = "SELECT "
    try:
        items = parse_query(f"{before}{text}", "duckdb").expressions
    except Unreadable as error:
        raise Unreadable(str(error), max(error.at - len(before), 0)) from None
    if len(items) != 1 or isinstance(items[0], _NAMED) or items[0].is_star:
        return None
    if items[0].find(exp.Columns) is not None:  # named by the columns that it stands for
        return None
    return _printed(items[0], text)


def _printed(node: exp.Expr, text: str | None = None) -> str:
    """``text`` is what was written, where that is known."""
    if isinstance(node, exp.Paren):
        node, text = node.unnest(), None
    if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star)):
        return "count_star()" if not isinstance(node.parent, exp.Filter) else "count(*)"
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        kind = node.args["to"].sql("duckdb")
        return f"CAST({_printed(node.this)} AS {_PRINTED_TYPES.get(kind, kind)})"
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return f"-({_printed(node.this)})"
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar) and text is not None:
        arrow = _ARROW.fullmatch(text)
        return text if arrow is None else f"({arrow[1]} {arrow[2]} {arrow[3]})"
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        return f"({_printed(node.this)} {operator} {_printed(node.expression)})"
    written = text or node.sql("duckdb", normalize_functions="lower")
    return f"({written})" if isinstance(node, _WRITTEN) else written
