"""SQLMesh's macros that every project has: ``@EACH``, ``@IF``, ``@AND`` and the like, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from penstock.model.macros import at_constants
from penstock.model.macros.at_scope import Builtin, Made, Scope
from penstock.model.script.at_text import Lambda, MacroError, bare, substituted, tokens_of, unpacked
from penstock.sql.tokens import STRING


def need(name: str, written: Sequence[str], least: int, most: int, shape: str) -> None:
    """Raise MacroError unless the number of arguments fits."""
    if not least <= len(written) <= most:
        raise MacroError(f"@{name} has {len(written)} arguments", f"write {shape}")


def _def(written: Sequence[str], scope: Scope) -> Made:
    need("DEF", written, 2, 2, "@DEF(name, expression) or @DEF(name, x -> expression)")
    function = Lambda.of(written[1], scope.dialect)
    scope.defined[written[0].strip().lower()] = written[1] if function is None else function
    return ""


def _if(written: Sequence[str], scope: Scope) -> Made:
    need("IF", written, 2, 3, "@IF(condition, then) or @IF(condition, then, else)")
    chosen = written[1:2] if _is_true(written[0], scope) else written[2:]
    made = scope.spliced(chosen)
    return made[0] if len(made) == 1 else made


def _is_true(written: str, scope: Scope) -> bool:
    return at_constants.is_true(scope.expanded(written), scope.dialect)


def _of_lambda(name: str, written: Sequence[str], scope: Scope) -> Lambda:
    if len(written) < 2:
        need(name, written, 2, 2, f"@{name}([a, b], x -> ...)")
    function = Lambda.of(written[-1], scope.dialect)
    if function is None:
        raise MacroError(f"`{written[-1]}` is not a function", f"write @{name}([a, b], x -> ...)")
    return function


def _items(written: Sequence[str], scope: Scope) -> list[str]:
    """The items of one list, or several items."""
    if len(written) != 1:
        return scope.spliced(written)
    made = scope.list_of(written[0])
    if made is not None and len(made) != 1:
        return [each for each in made if each.strip()]
    return unpacked(made[0] if made else scope.expanded(written[0]).strip(), scope.dialect)


def _values(item: str, function: Lambda, scope: Scope) -> Sequence[str]:
    """What a function gets of an item: of ``(a, b)`` both where it has two parameters."""
    return [item] if len(function.names) == 1 else unpacked(item, scope.dialect)


def _each(written: Sequence[str], scope: Scope) -> Made:
    function = _of_lambda("EACH", written, scope)
    items = _items(written[:-1], scope)
    return [scope.applied(function, _values(item, function, scope)) for item in items]


def _filter(written: Sequence[str], scope: Scope) -> Made:
    function = _of_lambda("FILTER", written, scope)
    asked = [(each, _values(each, function, scope)) for each in _items(written[:-1], scope)]
    return [each for each, values in asked if _is_true(scope.applied(function, values), scope)]


def _reduce(written: Sequence[str], scope: Scope) -> Made:
    function = _of_lambda("REDUCE", written, scope)
    items = _items(written[:-1], scope)
    return reduce(lambda a, b: scope.applied(function, [a, b]), items) if items else ""


def _joined(word: str) -> Builtin:
    """Conditions with a word between them; NULL is none, and of none it is TRUE."""

    def join(written: Sequence[str], scope: Scope) -> Made:
        texts = [item for each in written for item in _items([each], scope)]
        conditions = [text for text in texts if text.strip().upper() not in {"", "NULL"}]
        return f" {word} ".join(f"({text})" for text in conditions) or "TRUE"

    return join


def _eval(written: Sequence[str], scope: Scope) -> Made:
    need("EVAL", written, 1, 1, "@EVAL(1 + 1)")
    found = at_constants.value(scope.expanded(written[0]), scope.dialect)
    return str(found.sql(scope.dialect))


def _sql(written: Sequence[str], scope: Scope) -> Made:
    need("SQL", written, 1, 1, "@SQL('text')")
    text = scope.expanded(written[0])
    tokens = tokens_of(text, scope.dialect)
    if len(tokens) != 1 or tokens[0].kind != STRING:
        raise MacroError(f"`{text}` is not a text", "write @SQL('text')")

    def value_of(name: str) -> str | None:
        value = scope.known(name)
        return None if value is None else bare(value, scope.dialect)

    return scope.expanded(substituted(tokens[0].value, value_of))


BUILTINS: Mapping[str, Builtin] = {
    "def": _def,
    "if": _if,
    "each": _each,
    "filter": _filter,
    "reduce": _reduce,
    "and": _joined("AND"),
    "or": _joined("OR"),
    "eval": _eval,
    "sql": _sql,
}
