"""SQLMesh's ``@`` macros: expanded in the text of a script before anything else reads it.

``@name`` and ``@{name}`` stand for a variable, ``@name(...)`` for what a function makes of its
arguments as they are written; ``@DEF(name, text)`` names a text, or with ``x -> text`` a function.
What they may name is the documents' list (kinds.md, "macro variables"), and what a project has in
``macros/`` (`penstock.model.python_macros`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from penstock.model.mapping import Edit, Mapped, assemble, edited
from penstock.model.time_macros import TIMES, argument_of
from penstock.sql.identifiers import nearest
from penstock.sql.text import Unreadable, parse_expression
from penstock.sql.tokens import NAME, STRING, WORD, Token, Unclosed, closing, words

Function = Callable[[Sequence[str], Mapping[str, str]], str]
_ARROW = ("-", ">")


class MacroError(Exception):
    """What is wrong with a macro at ``at``, an offset, and what would be right."""

    def __init__(self, message: str, hint: str, at: int = -1) -> None:
        super().__init__(message)
        self.hint = hint
        self.at = at


@dataclass(frozen=True, slots=True)
class AtMacros:
    """``variables`` are texts by name; ``functions`` those of the project."""

    variables: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)

    def saying(self, **variables: str) -> AtMacros:
        return replace(self, variables={**self.variables, **variables})


@dataclass(frozen=True, slots=True)
class _Lambda:
    """``x -> body`` or ``(x, y) -> body``."""

    names: tuple[str, ...]
    body: str

    def __call__(self, values: Sequence[str], scope: _Scope) -> str:
        if len(values) != len(self.names):
            raise MacroError(
                f"{len(values)} values are given for {', '.join(self.names)}", "give one for each"
            )
        given = dict(zip(self.names, values, strict=True))
        return _expanded(_filled(self.body, given, scope.dialect), scope.saying(given))


@dataclass(slots=True)
class _Scope:
    """``defined`` is filled by ``@DEF``."""

    macros: AtMacros
    dialect: str
    defined: dict[str, str | _Lambda] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)

    def saying(self, given: Mapping[str, str]) -> _Scope:
        return _Scope(self.macros, self.dialect, self.defined, {**self.given, **given})

    def variable(self, name: str) -> str:
        known = self.given.get(name)
        if known is None:
            known = self.macros.variables.get(name.lower())
        if known is not None:
            return known
        defined = self.defined.get(name.lower())
        if isinstance(defined, str):
            return _expanded(defined, self)
        if name.lower() in TIMES:
            return f"${argument_of(name.lower())}"
        raise self._unknown(name)

    def call(self, name: str, written: Sequence[str]) -> str:
        own = self.defined.get(name.lower())
        if isinstance(own, _Lambda):
            return own([_expanded(text, self) for text in written], self)
        builtin = _BUILTINS.get(name.lower())
        if builtin is not None:
            return builtin(written, self)
        function = self.macros.functions.get(name.lower())
        if function is None:
            raise self._unknown(name)
        plain: list[str] = []
        named: dict[str, str] = {}
        for text in written:
            key, sign, value = text.partition(":=")
            if sign and key.strip().isidentifier():
                named[key.strip()] = _expanded(value.strip(), self)
            else:
                plain.append(_expanded(text, self))
        return _expanded(function(plain, named), self)

    def _unknown(self, name: str) -> MacroError:
        known = [*self.given, *self.defined, *self.macros.variables]
        known += [*_BUILTINS, *self.macros.functions, *TIMES]
        guess = nearest(name.lower(), known)
        listed = ", ".join(f"@{each}" for each in sorted(set(known)))
        return MacroError(
            f"macro @{name} does not exist",
            f"did you mean @{guess}?" if guess else f"there are {listed}",
        )


def expand(text: str, start: int, dialect: str, macros: AtMacros) -> Mapped | None:
    """The text with its macros expanded from ``start`` on; ``None`` where it has none.

    Raises MacroError with the place in ``text``.
    """
    if "@" not in text[start:]:
        return None
    try:
        tokens = words(text, dialect, start)
    except Unclosed:
        return None  # which reading the query reports
    edits = list(_edits(text, tokens, _Scope(macros, dialect)))
    return assemble(edited(text, edits)) if edits else None


def _expanded(text: str, scope: _Scope) -> str:
    """A part of a script, or what a macro made."""
    if "@" not in text:
        return text
    try:
        tokens = words(text, scope.dialect)
    except Unclosed as error:
        raise MacroError(f"`{error.opener}` is never closed in `{text}`", "close it") from None
    return assemble(edited(text, _edits(text, tokens, scope))).text


def _edits(text: str, tokens: Sequence[Token], scope: _Scope) -> Iterator[Edit]:
    at, done = 0, 0
    while at < len(tokens):
        token = tokens[at]
        if token.text != "@" or at + 1 >= len(tokens) or tokens[at + 1].start != token.end:
            at += 1
            continue
        try:
            last, made = _one(text, tokens, at, scope)
        except MacroError as error:
            error.at = token.start
            raise
        if last is None:
            at += 1
            continue
        begin, end = token.start, tokens[last].end
        if not made.strip():
            begin, end, last = _without_comma(tokens, at, last, done)
        yield Edit(begin, end, made)
        done = end
        at = last + 1


def _without_comma(
    tokens: Sequence[Token], first: int, last: int, done: int
) -> tuple[int, int, int]:
    """The span of what became nothing, with a comma of the list that it stands in."""
    if last + 1 < len(tokens) and tokens[last + 1].text == ",":
        return tokens[first].start, tokens[last + 1].end, last + 1
    if first and tokens[first - 1].text == "," and tokens[first - 1].start >= done:
        return tokens[first - 1].start, tokens[last].end, last
    return tokens[first].start, tokens[last].end, last


def _one(text: str, tokens: Sequence[Token], at: int, scope: _Scope) -> tuple[int | None, str]:
    """The last token of what begins with the ``@`` at ``at``, and what it stands for."""
    after = tokens[at + 1]
    if after.text == "{":
        close = closing(tokens, at + 1)
        if close != at + 3:
            raise MacroError("@{...} holds a name", "write @{name}")
        return close, scope.variable(tokens[at + 2].value)
    if after.kind == STRING:
        return at + 1, _interpolated(after.text, scope)
    if after.kind not in {WORD, NAME}:
        return None, ""
    opening = tokens[at + 2] if at + 2 < len(tokens) else None
    if opening is None or opening.text != "(" or opening.start != after.end:
        return at + 1, scope.variable(after.value)
    close = closing(tokens, at + 2)
    if close is None:
        raise MacroError(f"the bracket of @{after.value}( is never closed", "close it")
    inside = tokens[at + 3 : close]
    return close, scope.call(after.value, _arguments(text, inside))


def _interpolated(written: str, scope: _Scope) -> str:
    """``'a@{x}'`` with the values of its variables."""
    before, *rest = written.split("@{")
    parts = [before]
    for part in rest:
        name, _, after = part.partition("}")
        if name.strip().lower() in TIMES:
            message = f"@{{{name}}} is a value of the run, which never becomes a part of a text"
            raise MacroError(message, f"concatenate: 'text' || @{name.strip()}")
        parts += [scope.variable(name.strip()).replace("'", "''"), after]
    return "".join(parts)


def _arguments(text: str, tokens: Sequence[Token]) -> list[str]:
    """The texts between commas outside of brackets."""
    found: list[str] = []
    depth, first = 0, 0
    for number, token in enumerate(tokens):
        depth += (token.text in {"(", "[", "{"}) - (token.text in {")", "]", "}"})
        if token.text == "," and depth == 0:
            found.append(_between(text, tokens, first, number))
            first = number + 1
    return [*found, _between(text, tokens, first, len(tokens))] if tokens else []


def _between(text: str, tokens: Sequence[Token], first: int, end: int) -> str:
    return text[tokens[first].start : tokens[end - 1].end] if first < end else ""


def _items(written: str, scope: _Scope) -> list[str]:
    """``[a, b]``, ``(a, b)`` or what a variable has, as texts."""
    text = _expanded(written, scope).strip()
    tokens = words(text, scope.dialect)
    if tokens and tokens[0].text in {"[", "("} and closing(tokens, 0) == len(tokens) - 1:
        return _arguments(text, tokens[1:-1])
    return [text] if text else []


def _lambda(written: str, dialect: str) -> _Lambda | None:
    tokens = words(written, dialect)
    for number, token in enumerate(tokens):
        if token.text == "->":
            names = [each.value for each in tokens[:number] if each.kind in {WORD, NAME}]
            return _Lambda(tuple(names), written[token.end :].strip())
        if token.text not in {"(", ")", ","} and token.kind not in {WORD, NAME}:
            return None
    return None


def _filled(body: str, given: Mapping[str, str], dialect: str) -> str:
    """The body of a function with its arguments, which are words of their own or ``@name``."""
    tokens = words(body, dialect)
    edits: list[Edit] = []
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        own = token.kind == WORD and token.value in given
        if not own or (before is not None and before.text in {".", "{"}):
            continue
        at_sign = before is not None and before.text == "@" and before.end == token.start
        start = before.start if at_sign and before is not None else token.start
        edits.append(Edit(start, token.end, given[token.value]))
    return assemble(edited(body, edits)).text


def _need(name: str, written: Sequence[str], least: int, most: int, shape: str) -> None:
    if not least <= len(written) <= most:
        raise MacroError(f"@{name} has {len(written)} arguments", f"write {shape}")


def _def(written: Sequence[str], scope: _Scope) -> str:
    _need("DEF", written, 2, 2, "@DEF(name, expression) or @DEF(name, x -> expression)")
    function = _lambda(written[1], scope.dialect)
    scope.defined[written[0].strip().lower()] = written[1] if function is None else function
    return ""


def _if(written: Sequence[str], scope: _Scope) -> str:
    _need("IF", written, 2, 3, "@IF(condition, then) or @IF(condition, then, else)")
    chosen = written[1] if _is_true(written[0], scope) else "".join(written[2:])
    return _expanded(chosen, scope)


def _is_true(written: str, scope: _Scope) -> bool:
    from sqlglot import exp

    found = _value(written, scope)
    if isinstance(found, exp.Boolean):
        return bool(found.this)
    if isinstance(found, exp.Null):
        return False
    raise MacroError(
        f"`{written}` is not known to be true or false", "compare values that are written out"
    )


def _value(written: str, scope: _Scope) -> object:
    """The value of an expression of constants."""
    from sqlglot.optimizer.simplify import simplify

    text = _expanded(written, scope)
    try:
        return simplify(parse_expression(text, scope.dialect), dialect=scope.dialect)
    except Unreadable as error:
        raise MacroError(f"`{text}` cannot be read{error}", "write an expression") from None


def _of_lambda(name: str, written: Sequence[str], scope: _Scope) -> _Lambda:
    _need(name, written, 2, 2, f"@{name}([a, b], x -> ...)")
    function = _lambda(written[1], scope.dialect)
    if function is None:
        raise MacroError(f"`{written[1]}` is not a function", f"write @{name}([a, b], x -> ...)")
    return function


def _values(item: str, function: _Lambda, scope: _Scope) -> Sequence[str]:
    """What a function gets of an item: of ``(a, b)`` both where it has two arguments."""
    return [item] if len(function.names) == 1 else _items(item, scope)


def _each(written: Sequence[str], scope: _Scope) -> str:
    function = _of_lambda("EACH", written, scope)
    items = _items(written[0], scope)
    return ", ".join(function(_values(item, function, scope), scope) for item in items)


def _filter(written: Sequence[str], scope: _Scope) -> str:
    function = _of_lambda("FILTER", written, scope)
    asked = ((each, _values(each, function, scope)) for each in _items(written[0], scope))
    kept = [each for each, values in asked if _is_true(function(values, scope), scope)]
    return f"[{', '.join(kept)}]"


def _reduce(written: Sequence[str], scope: _Scope) -> str:
    function = _of_lambda("REDUCE", written, scope)
    items = _items(written[0], scope)
    return reduce(lambda a, b: function([a, b], scope), items) if items else ""


def _joined(word: str, empty: str) -> Callable[[Sequence[str], _Scope], str]:
    def join(written: Sequence[str], scope: _Scope) -> str:
        texts = [item for each in written for item in _items(each, scope)]
        return f" {word} ".join(f"({text})" for text in texts) or empty

    return join


def _eval(written: Sequence[str], scope: _Scope) -> str:
    from sqlglot import exp

    _need("EVAL", written, 1, 1, "@EVAL(1 + 1)")
    found = _value(written[0], scope)
    assert isinstance(found, exp.Expr), "which parsing gives"
    return str(found.sql(scope.dialect))


def _sql(written: Sequence[str], scope: _Scope) -> str:
    _need("SQL", written, 1, 1, "@SQL('text')")
    text = _expanded(written[0], scope)
    tokens = words(text, scope.dialect)
    if len(tokens) != 1 or tokens[0].kind != STRING:
        raise MacroError(f"`{text}` is not a text", "write @SQL('text')")
    return _expanded(tokens[0].value, scope)


_BUILTINS: Mapping[str, Callable[[Sequence[str], _Scope], str]] = {
    "def": _def,
    "if": _if,
    "each": _each,
    "filter": _filter,
    "reduce": _reduce,
    "and": _joined("AND", "TRUE"),
    "or": _joined("OR", "TRUE"),
    "eval": _eval,
    "sql": _sql,
}
