"""DuckDB's functions that make texts of others: format, printf, chr, reverse, hex and the like."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from penstock.lazy import exp
from penstock.sql.duckdb.guards import (
    TEXT,
    known_as,
    of_text,
    refused,
    spark,
    text_of,
    unless,
)
from penstock.sql.duckdb.operators import NOT_AS_TEXT

Rule = Callable[[exp.Expr], exp.Expr]

_NOT_WHOLE = "float|double|decimal%|string|boolean|binary|date|timestamp%|struct%|map%|array%"
# Letters of one code point each, of which none is written together with the next.
_PLAIN = (
    "^[\\x00-\\x0c\\x0e-\\u02ff\\u0370-\\u0482\\u048a-\\u058f\\u0e3f\\u1e00-\\u1fff\\u2010-\\u2027\\u2030-\\u205e"
    "\\u20a0-\\u20bf\\u2100-\\u23ff\\u3001-\\u3029\\u3041-\\u3096\\u30a1-\\u30ff\\u4e00-\\u9fff\\uac00-\\ud7a3]*$"
)


def _reverse(node: exp.Expr) -> exp.Expr:
    """Reverse texts whose letters are one code point each; DuckDB keeps longer ones whole."""
    text = (
        "IF(:x RLIKE :plain, REVERSE(:x), "
        "IF(:x IS NULL, NULL, RAISE_ERROR('reverse of letters that are written together')))"
    )
    plain = exp.Literal.string(_PLAIN)
    return known_as(TEXT, of_text("reverse", spark(text, x=node.this, plain=plain), node.this))


def _chr(node: exp.Expr) -> exp.Expr:
    """Take any code point, where Spark's CHR knows 256."""
    (code,) = node.expressions
    text = (
        "IF(:n BETWEEN 0 AND 55295 OR :n BETWEEN 57344 AND 1114111, "
        "DECODE(UNHEX(LPAD(HEX(:n), 8, '0')), 'UTF-32'), "
        "IF(:n IS NULL, NULL, RAISE_ERROR('chr of a number that is not a letter')))"
    )
    return known_as(TEXT, unless("chr", _NOT_WHOLE, spark(text, n=code), code))


def _of_text(name: str, text: str, kind: str = "") -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        value = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        made = of_text(name, spark(text, x=value), value)
        return known_as(kind, made) if kind else made

    return rule


def _hex(node: exp.Expr) -> exp.Expr:
    kinds = "float|double|decimal%|boolean|date|timestamp%|struct%|map%|array%"
    return known_as(TEXT, unless("hex", kinds, spark("HEX(:x)", x=node.this), node.this))


def _base64(node: exp.Expr) -> exp.Expr:
    value = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    text = spark("BASE64(:x)", x=value)
    kinds = "string|%int|float|double|decimal%|boolean|date|timestamp%"
    return known_as(TEXT, unless("base64", kinds, text, value, advice="base64(encode(text))"))


def _encode(node: exp.Expr) -> exp.Expr:
    return of_text("encode", spark("ENCODE(:x, 'UTF-8')", x=node.this), node.this)


def _levenshtein(node: exp.Expr) -> exp.Expr:
    """DuckDB counts bytes."""
    a, b = node.this, node.expression
    if any(node.args.get(key) for key in ("ins_cost", "del_cost", "sub_cost", "max_dist")):
        raise refused("levenshtein of this form")
    text = (
        "IF(CONCAT(:a, :b) RLIKE :odd, "
        "RAISE_ERROR('levenshtein of letters beyond ASCII'), CAST(LEVENSHTEIN(:a, :b) AS BIGINT))"
    )
    odd = exp.Literal.string(r"[^\x00-\x7f]")
    return of_text("levenshtein", spark(text, a=a, b=b, odd=odd), a, b)


def _translate(node: exp.Expr) -> exp.Expr:
    old, new = text_of(node.args.get("from_")), text_of(node.args.get("to"))
    if old is None or new is None:
        raise refused("translate with computed letters")
    parts = {"o": exp.Literal.string(old), "n": exp.Literal.string(new)}
    return known_as(
        TEXT, of_text("translate", spark("TRANSLATE(:x, :o, :n)", x=node.this, **parts), node.this)
    )


_FIELD = re.compile(r"\{\{|\}\}|\{(\d*)(:,)?\}|[{}][^{}]*\}?")


def _format(node: exp.Expr) -> exp.Expr:
    """``{}``, ``{0}`` and ``{:,}`` of whole numbers."""
    pattern = text_of(node.this)
    if pattern is None:
        raise refused("format with a computed pattern")
    parts: list[exp.Expr] = []
    place, at = 0, 0
    for field in _FIELD.finditer(pattern):
        parts += _literal(pattern[at : field.start()])
        at = field.end()
        if field[0] in {"{{", "}}"}:
            parts += _literal(field[0][0])
            continue
        if field[1] is None:
            raise refused(f"{field[0]} in format", "{}, or round and a cast to VARCHAR in it")
        index, place = (int(field[1]), place) if field[1] else (place, place + 1)
        parts.append(_argument(node.expressions, index, thousands=field[2] is not None))
    return _joined([*parts, *_literal(pattern[at:])])


def _literal(text: str) -> list[exp.Expr]:
    return [exp.Literal.string(text)] if text else []


def _argument(values: Sequence[exp.Expr], index: int, *, thousands: bool) -> exp.Expr:
    if index >= len(values):
        raise refused("format with more fields than values")
    value = values[index]
    if thousands:
        return unless("format of {:,}", _NOT_WHOLE, spark("FORMAT_NUMBER(:x, 0)", x=value), value)
    # A decimal loses its last zeros, as a double.
    kinds = f"{NOT_AS_TEXT}|decimal%"
    return unless("format", kinds, spark("CAST(:x AS STRING)", x=value), value)


def _joined(parts: Sequence[exp.Expr]) -> exp.Expr:
    """One text; NULL where a part is."""
    if not parts:
        return known_as(TEXT, exp.Literal.string(""))
    return known_as(
        TEXT, exp.func("CONCAT", *(part.copy() for part in parts), dialect="databricks")
    )


_CONVERSION = re.compile(r"%%|%(0?)(\d*)([ds])|%.?")


def _printf(node: exp.Expr) -> exp.Expr:
    r"""``%d`` and ``%05d`` of whole numbers, ``%s`` of texts."""
    first, *values = node.expressions
    pattern = text_of(first)
    if pattern is None:
        raise refused("printf with a computed pattern")
    found = [each for each in _CONVERSION.finditer(pattern) if each[0] != "%%"]
    for each in found:
        if each[3] is None or (each[3] == "s" and (each[1] or each[2])):
            raise refused(f"{each[0]} in printf", "%d, %05d or %s")
    if len(found) != len(values):
        raise refused("printf with another number of fields than of values")
    checked = [_checked(each[3], value) for each, value in zip(found, values, strict=True)]
    names = [f"v{at}" for at in range(len(checked))]
    listed = "".join(f", :{name}" for name in names)
    some = " OR ".join(f":{name} IS NULL" for name in names) or "FALSE"
    parts = dict(zip(names, checked, strict=True))
    return known_as(TEXT, spark(f"IF({some}, NULL, FORMAT_STRING(:p{listed}))", p=first, **parts))


def _checked(conversion: str, value: exp.Expr) -> exp.Expr:
    if conversion == "d":
        return unless("printf of %d", _NOT_WHOLE, value.copy(), value)
    return of_text("printf of %s", value.copy(), value)


WORDS: Mapping[type[exp.Expr], Rule] = {
    exp.Ascii: _of_text("ascii", "ASCII(:x)"),
    exp.Chr: _chr,
    exp.Encode: _encode,
    exp.Format: _format,
    exp.Hex: _hex,
    exp.Levenshtein: _levenshtein,
    exp.Reverse: _reverse,
    exp.ToBase64: _base64,
    exp.Translate: _translate,
}
NAMED_WORDS: Mapping[str, Rule] = {
    "base64": _base64,
    "editdist3": lambda node: _levenshtein(_pair(node)),
    "printf": _printf,
    "strlen": _of_text("strlen", "OCTET_LENGTH(:x)"),
}


def _pair(node: exp.Expr) -> exp.Expr:
    a, b = node.expressions
    return exp.Levenshtein(this=a.copy(), expression=b.copy())
