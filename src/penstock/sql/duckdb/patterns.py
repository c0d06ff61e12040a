"""Regular expressions of DuckDB (RE2) as Java's, where both are known to mean the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import of_text, refused, spark, text_of, whole_number

_SPACES = r"\t\n\f\r "
_ESCAPES = {letter: rf"\{letter}" for letter in "dDwWtnrf"}
_OUTSIDE = {"s": f"[{_SPACES}]", "S": f"[^{_SPACES}]"} | _ESCAPES
_INSIDE = {"s": _SPACES} | _ESCAPES
_REFERENCE = re.compile(r"\\(\d|\\)|\\|\$|[^\\$]+")


def java(node: exp.Expr | None) -> str:
    r"""Java's text of a constant pattern: ``$`` is the very end there, ``.`` all but ``\n``."""
    text = text_of(node)
    if text is None:
        raise refused("a regular expression that is computed")
    parts: list[str] = []
    at, opened = 0, -1  # where the class began that `at` is in
    while at < len(text):
        char, at = text[at], at + 1
        if char == "\\":
            parts.append(_escape(text[at : at + 1], opened >= 0))
            at += 1
        elif opened >= 0:
            first = at - 1 == opened
            opened = -1 if char == "]" and not first else opened
            parts.append("\\" + char if char in "[&~" or (char == "]" and first) else char)
            if text[at - 1 : at + 1] == "[:":
                raise refused("a class by name in a regular expression")
        elif char == "[":
            negated = text[at : at + 1] == "^"
            parts.append("[^" if negated else "[")
            at += negated
            opened = at
        elif char == "(" and text[at : at + 1] == "?" and text[at : at + 2] != "?:":
            raise refused("a regular expression with (?")
        else:
            parts.append({"$": r"\z", ".": r"[^\n]"}.get(char, char))
    return "".join(parts)


def _escape(letter: str, in_class: bool) -> str:
    known = (_INSIDE if in_class else _OUTSIDE).get(letter)
    if known is None and (not letter or letter.isalnum() or not letter.isascii()):
        raise refused(f"\\{letter} in a regular expression")
    return known or f"\\{letter}"


def _matches(node: exp.Expr) -> exp.Expr:
    """``~`` has to match the whole text. Only the function has a place of its own in the tree."""
    if "start" not in node.meta:
        return _full_match(node)
    if node.args.get("flag"):
        raise refused("regexp_matches with options")
    return spark("(:x RLIKE :p)", x=node.this, p=_literal(java(node.expression)))


def _full_match(node: exp.Expr) -> exp.Expr:
    whole = _literal(rf"\A(?:{java(node.expression)})\z")
    return spark("(:x RLIKE :p)", x=node.this, p=whole)


def _extract(node: exp.Expr) -> exp.Expr:
    group = node.args.get("group")
    if node.args.get("parameters") or (group is not None and whole_number(group) is None):
        raise refused("regexp_extract with options")
    text = f"REGEXP_EXTRACT(:x, :p, {whole_number(group) or 0})"
    return spark(text, x=node.this, p=_literal(java(node.expression)))


def _replace(node: exp.Expr) -> exp.Expr:
    """The first match, with ``g`` all. Which empty matches count differs."""
    pattern, options = java(node.expression), node.args.get("modifiers")
    replacement = text_of(node.args.get("replacement"))
    if replacement is None or (options is not None and text_of(options) not in {"", "g"}):
        raise refused("regexp_replace with options or a computed replacement")
    if re.search(pattern.replace(r"\z", r"\Z"), "") is not None:
        raise refused("regexp_replace of what can be empty")
    every = options is not None and text_of(options) == "g"
    new = "".join(_reference(found, every) for found in _REFERENCE.finditer(replacement))
    if not every:
        pattern, new = rf"\A([\s\S]*?)(?:{pattern})", "$1" + new
    text = "REGEXP_REPLACE(:x, :p, :r)"
    return spark(text, x=node.this, p=_literal(pattern), r=_literal(new))


def _split(node: exp.Expr) -> exp.Expr:
    """At each match; what can be empty is split otherwise."""
    named = isinstance(node, exp.Anonymous)
    value, pattern, *rest = node.expressions if named else (node.this, node.expression)
    found = java(pattern)
    if rest or re.search(found.replace(r"\z", r"\Z"), "") is not None:
        raise refused("a split by what can be empty, or with options")
    return of_text("a split", spark("SPLIT(:x, :p)", x=value, p=_literal(found)), value)


def _extract_all(node: exp.Expr) -> exp.Expr:
    found = java(node.expression)
    if whole_number(node.args.get("group")) not in {None, 0} or node.args.get("parameters"):
        raise refused("regexp_extract_all of a group")
    if re.search(found.replace(r"\z", r"\Z"), "") is not None:
        raise refused("regexp_extract_all of what can be empty")
    text = spark("REGEXP_EXTRACT_ALL(:x, :p, 0)", x=node.this, p=_literal(found))
    return of_text("regexp_extract_all", text, node.this)


def _reference(match: re.Match[str], every: bool) -> str:
    if match[1] is not None and match[1].isdigit():
        if match[1] in {"0", "9"}:
            raise refused(f"{match[0]} in a replacement")
        return f"${int(match[1]) + (not every)}"
    if match[0] == "\\":
        raise refused("a backslash in a replacement")
    text = "\\" if match[1] else match[0]
    return re.sub(r"[\\$\d]", r"\\\g<0>", text)  # a digit after a reference is not its own


def _literal(text: str) -> exp.Expr:
    return exp.Literal.string(text)


PATTERNS: Mapping[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.RegexpExtract: _extract,
    exp.RegexpExtractAll: _extract_all,
    exp.RegexpFullMatch: _full_match,
    exp.RegexpLike: _matches,
    exp.RegexpReplace: _replace,
    exp.RegexpSplit: _split,
    exp.SimilarTo: _full_match,
}
NAMED_PATTERNS: Mapping[str, Callable[[exp.Expr], exp.Expr]] = {"regexp_split_to_array": _split}
