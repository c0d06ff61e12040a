"""DuckDB's functions of texts, and what is inside of texts: formats, regular expressions, JSON.

Regular expressions of DuckDB are RE2's, of Spark Java's. Spark's GET_JSON_OBJECT has the numbers
of JSON as they are but no quotes around texts, and NULL for text that is not JSON; PARSE_JSON fails
there, as DuckDB does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from penstock.lazy import exp
from penstock.sql.duckdb.guards import (
    NOT_AS_TEXT,
    TEXT,
    of_text,
    refused,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.rules import Row, is_absent, is_constant_text, is_length
from penstock.sql.literals import text_literal


def _concatenation(node: exp.Expr) -> exp.Expr:
    """NULLs are left out."""
    values = [unless("concatenation", NOT_AS_TEXT, x.copy(), x) for x in node.expressions]
    filled = [spark("COALESCE(CAST(:x AS STRING), '')", x=value) for value in values]
    return exp.func("CONCAT", *filled, dialect="databricks")


def _concatenation_with(node: exp.Expr) -> exp.Expr:
    if any(isinstance(value, exp.Array) for value in node.expressions):
        raise refused("concat_ws of a list")
    separator, *items = node.expressions
    values = [unless("concatenation", NOT_AS_TEXT, x.copy(), x) for x in items]
    return exp.Anonymous(this="CONCAT_WS", expressions=[separator.copy(), *values])


_SPACES = (
    " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)


def _trim(node: exp.Expr) -> exp.Expr:
    """By default all spaces of Unicode are removed, not only the one of ASCII."""
    characters = node.expression
    if characters is None:
        node.set("expression", exp.Literal.string(_SPACES))
    elif not (text_of(characters) or "").isascii():
        raise refused("trim of these characters")
    elif not text_of(characters):
        raise refused("trim of computed characters")
    return node


def _split(node: exp.Expr) -> str:
    """Spark's separator is a pattern."""
    separator = text_of(node.expression)
    if not separator:
        raise refused("string_split with a computed or empty separator")
    pattern = "".join(c if c.isalnum() or ord(c) > 127 else f"\\{c}" for c in separator)
    return f"SPLIT(:x, {text_literal(pattern)})"


_NUMBERS = "float|double|decimal%"
_NOT_WHOLE = f"{_NUMBERS}|string|boolean|binary|date|timestamp%|struct%|map%|array%"
_FIELD = re.compile(r"\{\{|\}\}|\{(\d*)(:,)?\}|[{}][^{}]*\}?")


def _format(node: exp.Expr) -> exp.Expr:
    """``{}``, ``{0}`` and ``{:,}`` of whole numbers."""
    pattern = text_of(node.this)
    if pattern is None:
        raise refused("format with a computed pattern")
    parts: list[exp.Expr] = []
    place = end = 0
    for field in _FIELD.finditer(pattern):
        parts.append(exp.Literal.string(pattern[end : field.start()]))
        end = field.end()
        if field[0] in {"{{", "}}"}:
            parts.append(exp.Literal.string(field[0][0]))
            continue
        if field[1] is None:
            raise refused(f"{field[0]} in format", "{}, or round and a cast to VARCHAR in it")
        index, place = (int(field[1]), place) if field[1] else (place, place + 1)
        parts.append(_formatted(node.expressions, index, thousands=field[2] is not None))
    parts.append(exp.Literal.string(pattern[end:]))
    values = [part for part in parts if text_of(part) != ""]
    return exp.func("CONCAT", *values, dialect="databricks") if values else exp.Literal.string("")


def _formatted(values: Sequence[exp.Expr], index: int, *, thousands: bool) -> exp.Expr:
    if index >= len(values):
        raise refused("format with more fields than values")
    value = values[index]
    if thousands:
        return unless("format of {:,}", _NOT_WHOLE, spark("FORMAT_NUMBER(:x, 0)", x=value), value)
    # A decimal loses its last zeros, as a double.
    kinds = f"{NOT_AS_TEXT}|decimal%"
    return unless("format", kinds, spark("CAST(:x AS STRING)", x=value), value)


_CONVERSION = re.compile(r"%%|%(0?)(\d*)([ds])|%.?")


def _printf(node: exp.Expr) -> exp.Expr:
    r"""``%d`` and ``%05d`` of whole numbers, ``%s`` of texts; NULL where a value is."""
    pattern, *values = node.expressions
    if text_of(pattern) is None:
        raise refused("printf with a computed pattern")
    fields = [field for field in _CONVERSION.finditer(pattern.name) if field[0] != "%%"]
    for field in fields:
        if field[3] is None or (field[3] == "s" and (field[1] or field[2])):
            raise refused(f"{field[0]} in printf", "%d, %05d or %s")
    if len(fields) != len(values):
        raise refused("printf with another number of fields than of values")
    parts = {
        f"v{place}": unless("printf of %d", _NOT_WHOLE, value.copy(), value)
        if field[3] == "d"
        else of_text("printf of %s", value.copy(), value)
        for place, (field, value) in enumerate(zip(fields, values, strict=True))
    }
    is_null = " OR ".join(f":{name} IS NULL" for name in parts) or "FALSE"
    listed = ", ".join(f":{name}" for name in ("p", *parts))
    return spark(f"IF({is_null}, NULL, FORMAT_STRING({listed}))", p=pattern, **parts)


_BLANKS = r"\t\n\f\r "
_ESCAPES = {letter: rf"\{letter}" for letter in "dDwWtnrf"}
_OUTSIDE = {"s": f"[{_BLANKS}]", "S": f"[^{_BLANKS}]"} | _ESCAPES
_INSIDE = {"s": _BLANKS} | _ESCAPES
_REFERENCE = re.compile(r"\\(\d|\\)|\\|\$|[^\\$]+")


def _java(node: exp.Expr | None) -> str:
    r"""Java's text of a constant pattern: ``$`` is the very end there, ``.`` all but ``\n``."""
    text = text_of(node)
    if text is None:
        raise refused("a regular expression that is computed")
    parts: list[str] = []
    end, start = 0, -1  # where the class began that `end` is in
    while end < len(text):
        char, end = text[end], end + 1
        if char == "\\":
            parts.append(_escape(text[end : end + 1], start >= 0))
            end += 1
        elif start >= 0:
            is_first = end - 1 == start
            start = -1 if char == "]" and not is_first else start
            parts.append("\\" + char if char in "[&~" or (char == "]" and is_first) else char)
            if text[end - 1 : end + 1] == "[:":
                raise refused("a class by name in a regular expression")
        elif char == "[":
            is_negated = text[end : end + 1] == "^"
            parts.append("[^" if is_negated else "[")
            end += is_negated
            start = end
        elif char == "(" and text[end : end + 1] == "?" and text[end : end + 2] != "?:":
            raise refused("a regular expression with (?")
        else:
            parts.append({"$": r"\z", ".": r"[^\n]"}.get(char, char))
    return "".join(parts)


def _escape(letter: str, is_in_class: bool) -> str:
    pattern = (_INSIDE if is_in_class else _OUTSIDE).get(letter)
    if pattern is None and (not letter or letter.isalnum() or not letter.isascii()):
        raise refused(f"\\{letter} in a regular expression")
    return pattern or f"\\{letter}"


def _can_be_empty(pattern: str) -> bool:
    """Return whether a pattern matches no letter: which of such matches count differs."""
    return re.search(pattern.replace(r"\z", r"\Z"), "") is not None


def _match(node: exp.Expr) -> str:
    """``~`` has to match the whole text. Only the function has a place of its own in the tree."""
    if "start" not in node.meta:
        return _whole_match(node)
    if node.args.get("flag"):
        raise refused("regexp_matches with options")
    return f"(:x RLIKE {text_literal(_java(node.expression))})"


def _whole_match(node: exp.Expr) -> str:
    pattern = rf"\A(?:{_java(node.expression)})\z"
    return f"(:x RLIKE {text_literal(pattern)})"


def _extraction(node: exp.Expr) -> str:
    group = node.args.get("group")
    if node.args.get("parameters") or (group is not None and whole_number(group) is None):
        raise refused("regexp_extract with options")
    pattern = text_literal(_java(node.expression))
    return f"REGEXP_EXTRACT(:x, {pattern}, {whole_number(group) or 0})"


def _replacement(node: exp.Expr) -> str:
    """The first match, with ``g`` all."""
    pattern, options = _java(node.expression), node.args.get("modifiers")
    text = text_of(node.args.get("replacement"))
    if text is None or (options is not None and text_of(options) not in {"", "g"}):
        raise refused("regexp_replace with options or a computed replacement")
    if _can_be_empty(pattern):
        raise refused("regexp_replace of what can be empty")
    is_global = options is not None and text_of(options) == "g"
    new = "".join(_reference(part, is_global) for part in _REFERENCE.finditer(text))
    if not is_global:
        pattern, new = rf"\A([\s\S]*?)(?:{pattern})", "$1" + new
    return f"REGEXP_REPLACE(:x, {text_literal(pattern)}, {text_literal(new)})"


def _reference(match: re.Match[str], is_global: bool) -> str:
    if match[1] is not None and match[1].isdigit():
        if match[1] in {"0", "9"}:
            raise refused(f"{match[0]} in a replacement")
        return f"${int(match[1]) + (not is_global)}"
    if match[0] == "\\":
        raise refused("a backslash in a replacement")
    text = "\\" if match[1] else match[0]
    return re.sub(r"[\\$\d]", r"\\\g<0>", text)  # a digit after a reference is not its own


def _pattern_split(node: exp.Expr) -> str:
    """At each match; what can be empty is split otherwise."""
    is_named = isinstance(node, exp.Anonymous)
    _, pattern, *options = node.expressions if is_named else (node.this, node.expression)
    java = _java(pattern)
    if options or _can_be_empty(java):
        raise refused("a split by what can be empty, or with options")
    return f"SPLIT(:x, {text_literal(java)})"


def _all_extractions(node: exp.Expr) -> str:
    pattern = _java(node.expression)
    if whole_number(node.args.get("group")) not in {None, 0} or node.args.get("parameters"):
        raise refused("regexp_extract_all of a group")
    if _can_be_empty(pattern):
        raise refused("regexp_extract_all of what can be empty")
    return f"REGEXP_EXTRACT_ALL(:x, {text_literal(pattern)}, 0)"


_KEY = re.compile(r"[^'\"?\\\[\]*]+")
_VALID = "(:j IS NULL OR PARSE_JSON(:j) IS NOT NULL)"
# Numbers that the two write otherwise: with exponents, and those of more digits than a double or a
# whole number of 64 bits has.
_ODD = "[0-9.][eE][-+0-9]|[0-9]{20}|(?<![0-9.])(?=[0-9.]{18})[0-9]+[.]"
_QUOTED = r'"([^"\\]|\\.)*"'
_CONTROL = r"[\x00-\x07\x0b\x0e-\x1f\x7f]"  # which are written otherwise within quotes
_INNER = "VARIANT_GET(PARSE_JSON(:j), :p)"
_UNUSUAL = "RAISE_ERROR('a JSON value of unusual form')"
# A number that Spark writes with an exponent and DuckDB without.
_NUMBER = "VARIANT_GET(PARSE_JSON(:j), :p, 'string')"
_FEW = "^-?(?!0[.]000000)(?=[0-9.]{1,16}$)[0-9]{1,15}([.][0-9]+)?$"


def _value_inside(null: str, text: str) -> str:
    """Spark's text of a value at the path ``:p``, with what a null and a text in JSON become."""
    return (
        f"CASE WHEN {_INNER} IS NULL THEN NULL WHEN IS_VARIANT_NULL({_INNER}) THEN {null} "
        f"WHEN SCHEMA_OF_VARIANT({_INNER}) = 'STRING' THEN {text} "
        f"WHEN SCHEMA_OF_VARIANT({_INNER}) LIKE 'DECIMAL%' "
        "AND GET_JSON_OBJECT(:j, :p) RLIKE '[eE]' "
        f"AND {_NUMBER} RLIKE '{_FEW}' "
        f"THEN IF({_NUMBER} LIKE '%.%', {_NUMBER}, CONCAT({_NUMBER}, '.0')) "
        f"WHEN REGEXP_REPLACE(GET_JSON_OBJECT(:j, :p), {text_literal(_QUOTED)}, '') "
        f"RLIKE '{_ODD}' THEN {_UNUSUAL} ELSE GET_JSON_OBJECT(:j, :p) END"
    )


_AS_TEXT = _value_inside("NULL", "GET_JSON_OBJECT(:j, :p)")
_AS_JSON = _value_inside(
    "'null'",
    f"IF(GET_JSON_OBJECT(:j, :p) RLIKE {text_literal(_CONTROL)}, {_UNUSUAL}, TO_JSON({_INNER}))",
)
_INSIDE_OF = "inside"  # of an extracted JSON: the text that it is of, and its path


def _extracted(node: exp.Expr) -> exp.Expr:
    """``->>`` returns a text, ``->`` JSON again; a value within a value has one path."""
    value, path = node.this, _path(node.args.get("expression"))
    while isinstance(value, exp.Paren):
        value = value.this
    if _INSIDE_OF in value.meta:
        outer, before = value.meta[_INSIDE_OF]
        value, path = outer.copy(), before + path[1:]
    options = ("only_json_types", "option", "quote", "on_condition")
    if any(node.args.get(key) for key in options):
        raise refused("this form of JSON")
    is_json = isinstance(node, exp.JSONExtract)
    template = _AS_JSON if is_json else _AS_TEXT
    result = of_text("JSON", spark(template, j=value, p=exp.Literal.string(path)), value)
    if is_json:
        result.meta[_INSIDE_OF] = value, path
    return result


def _path(node: exp.Expr | None) -> str:
    """Return Spark's path of keys and places from the root."""
    parts: Sequence[exp.Expr] = node.expressions if isinstance(node, exp.JSONPath) else ()
    if not parts or not isinstance(parts[0], exp.JSONPathRoot):
        raise refused("a JSON path that is computed or a pointer", "'$.key[0]'")
    return "$" + "".join(map(_step, parts[1:]))


def _step(part: exp.Expr) -> str:
    key = part.this
    if isinstance(part, exp.JSONPathKey) and isinstance(key, str) and _KEY.fullmatch(key):
        return f"['{key}']"
    if isinstance(part, exp.JSONPathSubscript) and isinstance(key, int) and key >= 0:
        return f"[{key}]"
    raise refused(f"the JSON path {part.sql('duckdb')}", "'$.key[0]'")


# Letters that DuckDB keeps one letter in capitals where Java writes two, and those that only one
# of their versions of Unicode knows (measured letter by letter: DuckDB 1.5.5, Java 17).
_NOT_RAISED = (
    "[\u0149\u019b\u01f0\u0264\u0390\u03b0\u0587\u1c8a\u1e96-\u1e9a\u1f50-\u1f56\u1f80-\u1faf\u1fb2-\u1fb7"
    "\u1fbc\u1fc2-\u1fc7\u1fcc\u1fd2-\u1fd7\u1fe2-\u1fe7\u1ff2-\u1ff7\u1ffc\ua7cb-\ua7dc\ufb00-\ufb17"
    "\U00010d50-\U00010d85\U00016ea0-\U00016ecc]"
)
_NOT_LOWERED = "[\u0130\u1c89\ua7cb-\ua7dc\U00010d50-\U00010d85\U00016ea0-\U00016ecc]"
# Letters of one code point each, of which none is written together with the next.
_PLAIN = (
    "^[\\x00-\\x0c\\x0e-\\u02ff\\u0370-\\u0482\\u048a-\\u058f\\u0e3f\\u1e00-\\u1fff\\u2010-\\u2027\\u2030-\\u205e"
    "\\u20a0-\\u20bf\\u2100-\\u23ff\\u3001-\\u3029\\u3041-\\u3096\\u30a1-\\u30ff\\u4e00-\\u9fff\\uac00-\\ud7a3]*$"
)
_LEVENSHTEIN = Row(  # DuckDB counts bytes
    "levenshtein(a, b)",
    exp.Levenshtein,
    "CAST(LEVENSHTEIN(:a, :b) AS BIGINT)",
    texts="ab",
    fails=(r"CONCAT(:a, :b) RLIKE '[^\\x00-\\x7f]'", "levenshtein of letters beyond ASCII"),
    forms=dict.fromkeys(("ins_cost", "del_cost", "sub_cost", "max_dist"), is_absent),
)
_NO_BYTES = f"{_NUMBERS}|boolean|date|timestamp%|struct%|map%|array%"
_NO_TEXT = f"string|%int|{_NUMBERS}|boolean|date|timestamp%"
_LENGTH = "{} with this length"

# Functions whose value is a text.
_TEXTS = (
    Row("base64(x)", exp.ToBase64, "BASE64(:x)", _NO_TEXT, advice="base64(encode(text))"),
    Row("base64(x)", None, "BASE64(:x)", _NO_TEXT, advice="base64(encode(text))"),
    Row(  # any code point, where Spark's CHR knows 256
        "chr(n)",
        exp.Chr,
        "IF(:n BETWEEN 0 AND 55295 OR :n BETWEEN 57344 AND 1114111, "
        "DECODE(UNHEX(LPAD(HEX(:n), 8, '0')), 'UTF-32'), "
        "IF(:n IS NULL, NULL, RAISE_ERROR('chr of a number that is not a letter')))",
        _NOT_WHOLE,
    ),
    Row("concat", exp.Concat, _concatenation),
    Row("concat_ws", exp.ConcatWs, _concatenation_with),
    Row("format", exp.Format, _format),
    Row("hex(x)", exp.Hex, "HEX(:x)", _NO_BYTES),
    Row("json_extract", exp.JSONExtract, _extracted),
    Row("json_extract_string", exp.JSONExtractScalar, _extracted),
    Row("left", exp.Left, forms={"expression": is_length}, otherwise=_LENGTH),
    Row(  # the last sigma of a word is like any other
        "lower(x)",
        exp.Lower,
        "LOWER(TRANSLATE(:x, '\u03a3', '\u03c3'))",
        fails=(f":x RLIKE '{_NOT_LOWERED}'", "lower of a letter that differs"),
    ),
    Row("md5", exp.MD5),
    Row(
        "pad",
        exp.Pad,
        forms={"fill_pattern": lambda node: bool(text_of(node)), "expression": is_length},
        otherwise="padding of this kind",
    ),
    Row("printf(p, ...)", None, _printf),
    Row("regexp_extract(x)", exp.RegexpExtract, _extraction),
    Row("regexp_replace(x)", exp.RegexpReplace, _replacement),
    Row("repeat", exp.Repeat),
    Row("replace", exp.Replace),
    Row(  # of letters that are one code point each; DuckDB keeps longer ones whole
        "reverse(x)",
        exp.Reverse,
        f"IF(:x RLIKE {text_literal(_PLAIN)}, REVERSE(:x), "
        "IF(:x IS NULL, NULL, RAISE_ERROR('reverse of letters that are written together')))",
        texts="x",
    ),
    Row("right", exp.Right, forms={"expression": is_length}, otherwise=_LENGTH),
    Row(
        "sha256(x)",
        exp.SHA2,
        "SHA2(:x, 256)",
        forms={"length": lambda node: whole_number(node) in {None, 256}},
        otherwise="sha of this length",
    ),
    Row(
        "split_part",
        exp.SplitPart,
        forms={"part_index": lambda node: whole_number(node) != 0},
        otherwise="split_part at position 0",
    ),
    Row(
        "substring",
        exp.Substring,
        forms={
            "start": lambda node: (whole_number(node) or 0) >= 1,
            "length": lambda node: node is None or is_length(node),
        },
        otherwise="substring with these positions",
    ),
    Row(
        "translate(x, o, n)",
        exp.Translate,
        "TRANSLATE(:x, :o, :n)",
        texts="x",
        forms={"from_": is_constant_text, "to": is_constant_text},
        otherwise="translate with computed letters",
    ),
    Row("trim", exp.Trim, _trim),
    Row(
        "upper(x)",
        exp.Upper,
        "UPPER(TRANSLATE(:x, '\u00df', '\u1e9e'))",
        fails=(f":x RLIKE '{_NOT_RAISED}'", "upper of a letter that differs"),
    ),
)
STRINGS = (
    *(replace(row, kind=TEXT) for row in _TEXTS),
    Row("ascii(x)", exp.Ascii, "ASCII(:x)", texts="x"),
    Row("encode(x)", exp.Encode, "ENCODE(:x, 'UTF-8')", texts="x"),
    Row(  # 0 of what is no array
        "json_array_length(j)",
        None,
        f"IF({_VALID}, IF(:j IS NULL, NULL, COALESCE(JSON_ARRAY_LENGTH(:j), 0)), NULL)",
        texts="j",
        forms={"": lambda node: len(node.expressions) == 1},
        otherwise="json_array_length with a path; write json_array_length(j->'key')",
    ),
    Row(  # none of what is no object
        "json_keys(j)",
        exp.JSONKeys,
        f"IF({_VALID}, IF(:j IS NULL, NULL, "
        "COALESCE(JSON_OBJECT_KEYS(:j), CAST(ARRAY() AS ARRAY<STRING>))), NULL)",
        texts="j",
        forms={"expression": is_absent, "expressions": is_absent},
        otherwise="json_keys with a path; write json_keys(j->'key')",
    ),
    _LEVENSHTEIN,
    replace(_LEVENSHTEIN, signature="editdist3(a, b)", node=None, title="levenshtein", forms={}),
    Row("prefix(x, p)", None, "STARTSWITH(:x, :p)"),
    Row("regexp_extract_all(x)", exp.RegexpExtractAll, _all_extractions, texts="x"),
    Row("regexp_full_match(x)", exp.RegexpFullMatch, _whole_match),
    Row("regexp_matches(x)", exp.RegexpLike, _match),
    Row("regexp_split_to_array(x, p, ...)", None, _pattern_split, texts="x", title="a split"),
    Row("regexp_split_to_array(x)", exp.RegexpSplit, _pattern_split, texts="x", title="a split"),
    Row("similar_to(x)", exp.SimilarTo, _whole_match),
    Row("string_split(x)", exp.Split, _split),
    Row("strlen(x)", None, "OCTET_LENGTH(:x)", texts="x"),
    Row("suffix(x, p)", None, "ENDSWITH(:x, :p)"),
)
