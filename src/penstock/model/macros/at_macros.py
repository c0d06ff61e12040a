"""SQLMesh's ``@`` macros: expanded in the text of a script before anything else reads it.

What they may name is the documents' list (kinds.md, "macro variables"), and what a project has in
``macros/`` (`python_macros`). `at_scope` says what they stand for.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from penstock.model.macros.at_builtins import BUILTINS
from penstock.model.macros.at_elsewhere import ELSEWHERE
from penstock.model.macros.at_library import LIBRARY
from penstock.model.macros.at_scope import AtMacros, Scope
from penstock.model.script.at_text import MacroError
from penstock.model.time.time_macros import TIMES
from penstock.sql.query.edits import Mapped, edited
from penstock.sql.tokens import Unclosed, words

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
    """What to say of a name that nothing has; of SQLMesh's own, what to write instead."""
    folded = name.lower()
    message = f"macro @{name} does not exist"
    if folded in ELSEWHERE:
        return MacroError(f"@{name} is a macro of SQLMesh that Penstock lacks", ELSEWHERE[folded])
    functions = {*scope.builtins, *scope.macros.functions}
    variables = {*scope.given, *scope.defined, *scope.macros.variables, *TIMES}
    if called:
        near = _near(folded, functions) or _near(folded, variables)
        own = f"or define it: a function {name} marked @macro in macros/, or @DEF({name}, x -> ...)"
        return MacroError(message, f"{near}{own}" if near else own.removeprefix("or "))
    near = _near(folded, variables) or _near(folded, functions)
    own = (
        f"for a variable of your own write @DEF({name}, value) here, "
        f"or `-- ${name} (text)` in the header and ${name} in the query"
    )
    return MacroError(message, f"{near}{own}", missing=name)


def _near(name: str, known: Collection[str]) -> str:
    found = get_close_matches(name, sorted(known), n=_NEAREST, cutoff=0.6)
    return f"did you mean {' or '.join(f'@{each}' for each in found)}? " if found else ""
