"""DuckDB's JSON: values out of a text by constant paths, told apart from what is not JSON.

``->>`` gives a text and ``->`` JSON again. Spark's GET_JSON_OBJECT has the numbers as they are but
no quotes around texts, and NULL for text that is not JSON; PARSE_JSON fails there, as DuckDB does.
"""

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
    whole_number,
)

Rule = Callable[[exp.Expr], exp.Expr]

_KEY = re.compile(r"[^'\"?\\\[\]*]+")
_VALID = "(:j IS NULL OR PARSE_JSON(:j) IS NOT NULL)"
# Numbers that the two write otherwise: with exponents, and those of more digits than a double or a
# whole number of 64 bits has.
_ODD = "[0-9.][eE][-+0-9]|[0-9]{20}|(?<![0-9.])(?=[0-9.]{18})[0-9]+[.]"
_TEXTS = r'"([^"\\]|\\.)*"'
_CONTROL = r"[\x00-\x07\x0b\x0e-\x1f\x7f]"  # which are written otherwise within quotes
_FOUND = "VARIANT_GET(PARSE_JSON(:j), :p)"
_UNUSUAL = "RAISE_ERROR('a JSON value of unusual form')"
# A number that Spark writes with an exponent and DuckDB without.
_WRITTEN = "VARIANT_GET(PARSE_JSON(:j), :p, 'string')"
_FEW = "^-?(?!0[.]000000)(?=[0-9.]{1,16}$)[0-9]{1,15}([.][0-9]+)?$"
_PLAIN = (
    f"WHEN SCHEMA_OF_VARIANT({_FOUND}) LIKE 'DECIMAL%' AND GET_JSON_OBJECT(:j, :p) RLIKE '[eE]' "
    f"AND {_WRITTEN} RLIKE :few THEN IF({_WRITTEN} LIKE '%.%', {_WRITTEN}, "
    f"CONCAT({_WRITTEN}, '.0')) "
)
_AS_TEXT = (
    f"CASE WHEN {_FOUND} IS NULL THEN NULL WHEN IS_VARIANT_NULL({_FOUND}) THEN NULL "
    f"WHEN SCHEMA_OF_VARIANT({_FOUND}) = 'STRING' THEN GET_JSON_OBJECT(:j, :p) "
    f"{_PLAIN}"
    f"WHEN REGEXP_REPLACE(GET_JSON_OBJECT(:j, :p), :texts, '') RLIKE :odd THEN {_UNUSUAL} "
    "ELSE GET_JSON_OBJECT(:j, :p) END"
)
_AS_JSON = (
    f"CASE WHEN {_FOUND} IS NULL THEN NULL WHEN IS_VARIANT_NULL({_FOUND}) THEN 'null' "
    f"WHEN SCHEMA_OF_VARIANT({_FOUND}) = 'STRING' THEN "
    f"IF(GET_JSON_OBJECT(:j, :p) RLIKE :control, {_UNUSUAL}, TO_JSON({_FOUND})) "
    f"{_PLAIN}"
    f"WHEN REGEXP_REPLACE(GET_JSON_OBJECT(:j, :p), :texts, '') RLIKE :odd THEN {_UNUSUAL} "
    "ELSE GET_JSON_OBJECT(:j, :p) END"
)


def _extracted(template: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        value, path = _merged(node)
        parts = {
            "p": exp.Literal.string(path),
            "odd": exp.Literal.string(_ODD),
            "texts": exp.Literal.string(_TEXTS),
            "control": exp.Literal.string(_CONTROL),
            "few": exp.Literal.string(_FEW),
        }
        if any(
            node.args.get(key) for key in ("only_json_types", "option", "quote", "on_condition")
        ):
            raise refused("this form of JSON")
        result = spark(template, j=value, **parts)
        return known_as(TEXT, of_text("JSON", result, value))

    return rule


def _merged(node: exp.Expr) -> tuple[exp.Expr, str]:
    """Return the text and Spark's path: that of a value within a value is one path."""
    value, path = node.this, _path(node.args.get("expression"))
    while isinstance(value, exp.Paren):
        value = value.this
    inside = value.meta.get(_INSIDE)
    if inside is not None:
        return inside[0].copy(), f"${inside[1][1:]}{path[1:]}"
    return value, path


_INSIDE = "inside"  # of an extracted JSON: the text that it is of, and its path


def _json(node: exp.Expr) -> exp.Expr:
    result = _extracted(_AS_JSON)(node)
    result.meta[_INSIDE] = _merged(node)
    return result


def _path(node: exp.Expr | None) -> str:
    """Return Spark's path of keys and places from the root."""
    parts: Sequence[exp.Expr] = node.expressions if isinstance(node, exp.JSONPath) else ()
    if not parts or not isinstance(parts[0], exp.JSONPathRoot):
        raise refused("a JSON path that is computed or a pointer", "'$.key[0]'")
    return "$" + "".join(map(_step, parts[1:]))


def _step(part: exp.Expr) -> str:
    what = part.this
    if isinstance(part, exp.JSONPathKey) and isinstance(what, str) and _KEY.fullmatch(what):
        return f"['{what}']"
    if isinstance(part, exp.JSONPathSubscript) and isinstance(what, int) and what >= 0:
        return f"[{what}]"
    raise refused(f"the JSON path {part.sql('duckdb')}", "'$.key[0]'")


def _array_length(node: exp.Expr) -> exp.Expr:
    """Of what is no array it is 0."""
    if len(node.expressions) != 1:
        raise refused("json_array_length with a path", "json_array_length(j->'key')")
    (value,) = node.expressions
    text = f"IF({_VALID}, IF(:j IS NULL, NULL, COALESCE(JSON_ARRAY_LENGTH(:j), 0)), NULL)"
    return of_text("json_array_length", spark(text, j=value), value)


def _keys(node: exp.Expr) -> exp.Expr:
    """Of what is no object there are none."""
    if node.expression is not None or node.expressions:
        raise refused("json_keys with a path", "json_keys(j->'key')")
    none = "CAST(ARRAY() AS ARRAY<STRING>)"
    text = f"IF({_VALID}, IF(:j IS NULL, NULL, COALESCE(JSON_OBJECT_KEYS(:j), {none})), NULL)"
    return of_text("json_keys", spark(text, j=node.this), node.this)


def as_json(operand: exp.Expr) -> exp.Expr:
    """Check that a text is JSON; the text itself stays."""
    if text_of(operand) is None and whole_number(operand) is not None:
        raise refused("a number as JSON", "a text in quotes")
    text = "IF(PARSE_JSON(:j) IS NULL, NULL, CAST(:j AS STRING))"
    return known_as(TEXT, of_text("a cast to JSON", spark(text, j=operand), operand))


def _path_node(node: exp.Expr) -> exp.Expr:
    return node  # for the function that it is part of


_STEPS = (
    *(exp.JSONPathFilter, exp.JSONPathKey, exp.JSONPathRecursive, exp.JSONPathRoot),
    *(exp.JSONPathScript, exp.JSONPathSelector, exp.JSONPathSlice, exp.JSONPathSubscript),
    *(exp.JSONPathUnion, exp.JSONPathWildcard),
)

JSON: Mapping[type[exp.Expr], Rule] = {
    exp.JSONKeys: _keys,
    exp.JSONExtract: _json,
    exp.JSONExtractScalar: _extracted(_AS_TEXT),
    **dict.fromkeys((exp.JSONPath, *_STEPS), _path_node),
}
NAMED_JSON: Mapping[str, Rule] = {"json_array_length": _array_length}
