"""SQLMesh's ``@`` macros: expanded in the text of a script before anything else reads it.

What they may name is the documents' list (kinds.md, "macro variables"), and what a project has in
``macros/`` (`python_macros`). `at_scope` says what they stand for. Those that every project has
(``@EACH``, ``@IF``, ``@AND``) are here by name, and those that Penstock lacks, with what to write
instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import reduce

from penstock.model.macros import at_library
from penstock.model.macros.at_library import LIBRARY
from penstock.model.macros.at_scope import AtMacros, Builtin, Made, Scope
from penstock.model.script.at_text import Lambda, MacroError, bare, substituted, tokens_of, unpacked
from penstock.model.time.time_macros import TIMES
from penstock.sql.query.edits import Mapped, edited
from penstock.sql.tokens import STRING, Unclosed, words


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
    return at_library.is_true(scope.expanded(written), scope.dialect)


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
    """Return what a function gets of an item: of ``(a, b)`` both where it has two parameters."""
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
    found = at_library.value(scope.expanded(written[0]), scope.dialect)
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


_CLAUSE = "write @IF(condition, ...) inside of the clause, or AND @IF(condition, a > 1, TRUE)"
_OF_ENVIRONMENTS = "environments are settings, which macros do not read; take it out"

#: by their names in small letters
ELSEWHERE: Mapping[str, str] = {
    "star": "list the columns, or write SELECT * EXCEPT (a, b)",
    "union": "write SELECT a, b FROM t UNION ALL SELECT a, b FROM u",
    "with": "write the WITH; a common table expression that nothing reads costs nothing",
    "join": "write the JOIN, or two models",
    "where": _CLAUSE,
    "group_by": _CLAUSE,
    "having": _CLAUSE,
    "order_by": _CLAUSE,
    "limit": _CLAUSE,
    "blueprint_var": "write a file for each model, with @DEF(name, value)",
    "resolve_template": "write the path; @this_model is the table",
    "physical_location": "write the path; @this_model is the table",
    "this_env": _OF_ENVIRONMENTS,
    "schemas": _OF_ENVIRONMENTS,
    "views": _OF_ENVIRONMENTS,
    "date_spine": "write SELECT explode(sequence(DATE '2026-01-01', DATE '2026-12-31'))",
}


_NEAREST = 3


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
    library = {name: each for name, each in LIBRARY.items() if name not in macros.functions}
    scope = Scope(macros, dialect, {**library, **BUILTINS}, _unknown)
    edits = list(scope.edits(text, tokens))
    return edited(text, edits) if edits else None


def expanded(text: str, dialect: str, macros: AtMacros) -> str:
    """A text with its macros expanded. Raises MacroError."""
    made = expand(text, 0, dialect, macros)
    return text if made is None else made.text


def _unknown(name: str, scope: Scope, called: bool) -> MacroError:
    """Return what to say of a name that nothing has; of SQLMesh's own, what to write instead."""
    folded = name.lower()
    message = f"macro @{name} does not exist"
    if folded in ELSEWHERE:
        return MacroError(f"@{name} is a macro of SQLMesh that Penstock lacks", ELSEWHERE[folded])
    functions = {*scope.builtins, *scope.macros.functions}
    own = (*scope.given, *scope.defined, *scope.macros.variables, *scope.macros.settings)
    variables = {*own, *TIMES}
    if called:
        near = _near(folded, functions) or _near(folded, variables)
        other = (
            f"or define it: a function {name} marked @macro in macros/, or @DEF({name}, x -> ...)"
        )
        return MacroError(message, f"{near}{other}" if near else other.removeprefix("or "))
    if folded in functions:
        called_as = f"@{name} is a macro, which is called with brackets"
        return MacroError(called_as, f"write @{name}()")
    near = _near(folded, variables) or _near(folded, functions - {"var"})
    other = (
        f"for a variable of your own write {name} = ... in [project.variables] of penstock.toml, "
        f"@DEF({name}, value) here, or `-- ${name} (text)` in the header and ${name} in the query"
    )
    return MacroError(message, f"{near}{other}", missing=name)


def _near(name: str, known: Collection[str]) -> str:
    found = get_close_matches(name, sorted(known), n=_NEAREST, cutoff=0.6)
    return f"did you mean {' or '.join(f'@{each}' for each in found)}? " if found else ""
