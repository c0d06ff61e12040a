"""``SET VARIABLE x = value``, ``RESET VARIABLE x`` and ``getvariable('x')``.

A value of constants stands in the text in place of ``getvariable('x')``, so that it prunes files
and names them as a constant does. Any other value, a subquery or a random number, is a temporary
view of one row, which the query reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.lazy import exp
from penstock.model.script.at_text import MacroError
from penstock.model.script.script import Statement
from penstock.sql.determinism import EACH_CALL
from penstock.sql.identifiers import fold, nearest
from penstock.sql.text import Unreadable, mask, parse_expression
from penstock.sql.tokens import ARGUMENT, NAME, STRING, WORD, Token, depth_of, tokenize

GETVARIABLE = "getvariable"
VIEW = "penstock_variable_{}"


@dataclass(frozen=True, slots=True)
class Variable:
    """``text`` stands for it in a query; ``origin`` says where it is set."""

    name: str
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A statement that sets a variable: ``value`` is None for RESET."""

    name: str
    value: Statement | None


def read_setting(statement: Statement) -> Setting:
    """Return what ``SET VARIABLE x = value`` or ``RESET VARIABLE x`` says. Raises MacroError."""
    tokens = statement.tokens
    reset = statement.word == "RESET"
    shape = "write RESET VARIABLE x" if reset else "write SET VARIABLE x = value"
    if len(tokens) < 3 or tokens[2].kind not in {WORD, NAME}:
        raise MacroError(f"{statement.word} VARIABLE has no name", shape, statement.start)
    name, rest = tokens[2].value, tokens[3:]
    if reset:
        if rest:
            raise MacroError(f"`{rest[0].text}` is not expected here", shape, rest[0].start)
        return Setting(name, None)
    if len(rest) < 2 or rest[0].upper not in {"=", "TO"}:
        at = rest[0].start if rest else statement.end
        raise MacroError(f"the variable {name} has no value", shape, at)
    depth = 0
    for token in rest[1:]:
        depth += depth_of(token)
        if token.text == "," and depth == 0:
            raise MacroError("a statement sets one variable", shape, token.start)
    return Setting(name, Statement(tuple(rest[1:])))


def is_constant(value: str, dialect: str, at: int) -> bool:
    """Return whether a value is the same wherever it stands: no subquery and nothing random in it.

    Raises MacroError for a column, which there is none of.
    """
    tokens = tokenize(value, dialect)
    if any(fold(token.value) in EACH_CALL for token in tokens if token.kind == WORD):
        return False
    arguments = [(token.start, token.end, "1") for token in tokens if token.kind == ARGUMENT]
    try:
        tree = parse_expression(mask(value, arguments), dialect)
    except Unreadable:
        return False  # Spark may read it
    if tree.find(exp.Query) is not None:
        return False
    column = tree.find(exp.Column)
    if column is not None:
        message = f"a variable's value has no column `{column.name}`"
        raise MacroError(message, "write 'text', or (SELECT max(a) FROM t)", at)
    return True


def readings(
    text: str, dialect: str, variables: Mapping[str, Variable]
) -> Iterator[tuple[int, int, Variable]]:
    """The calls of ``getvariable`` in a text. Raises MacroError for one that is never set."""
    if GETVARIABLE not in text.lower():
        return
    tokens = tokenize(text, dialect)
    for at, token in enumerate(tokens[:-1]):
        if token.kind == WORD and fold(token.text) == GETVARIABLE and tokens[at + 1].text == "(":
            yield token.start, _end(tokens, at), _variable(tokens, at, variables)


def _end(tokens: Sequence[Token], at: int) -> int:
    inside = tokens[at + 2 : at + 4]
    if [token.kind for token in inside[:1]] != [STRING] or [t.text for t in inside[1:]] != [")"]:
        hint = "write getvariable('x')"
        raise MacroError("getvariable takes the name as a text", hint, tokens[at].start)
    return inside[1].end


def _variable(tokens: Sequence[Token], at: int, variables: Mapping[str, Variable]) -> Variable:
    name = tokens[at + 2].value
    found = variables.get(fold(name))
    if found is None:
        guess = nearest(name, [each.name for each in variables.values()])
        hint = f"did you mean {guess}?" if guess else f"write SET VARIABLE {name} = ... before it"
        raise MacroError(f"the variable {name} is not set", hint, tokens[at].start)
    return found
