"""``data_test accepted_range <column> min=... max=... [inclusive=false]``; NULL is accepted.

Bounds are compared in the column's type: a number is not rounded to that of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from penstock.engine.checks.check import Check, Scope, never, of_rows, quoted
from penstock.errors import ArgumentError
from penstock.model.values.data_test import AcceptedRangeTest

_MOST_DIGITS = 38  # of a decimal


def build(test: AcceptedRangeTest, scope: Scope) -> Check:
    """Raises ArgumentError, at the test's line, for a bound that the column's type cannot be."""
    name = scope.column(test.column)
    column = quoted(name)
    less, more = ("<", ">") if test.inclusive else ("<=", ">=")
    bounds = (("min", less, test.minimum), ("max", more, test.maximum))
    args: dict[str, str] = {}
    failing = []
    for option, sign, bound in bounds:
        if bound is not None:
            literal = _literal(option, bound, name, scope)
            if literal is None:
                marker = f"{scope.prefix}_{option}"
                args[marker], literal = bound, f":{marker}"
            failing.append(f"{column} {sign} {literal}")
    predicate = " OR ".join(failing)
    proof = None if args else never(predicate, (name,))
    return of_rows(test.name, scope.view, predicate, args, proof)


def _literal(option: str, bound: str, column: str, scope: Scope) -> str | None:
    """The bound in Spark's SQL; ``None`` for a text, which is bound as a value."""
    kind = scope.type_name(column)
    form = _FORMS.get(kind.partition("(")[0])
    if form is None:
        raise ArgumentError(
            f"accepted_range tests numbers, dates, times and texts, and {column} is {kind}",
            hint="write a condition: data_test expression ...",
            location=scope.location,
        )
    to_literal, example = form
    try:
        return to_literal(bound)
    except (ValueError, InvalidOperation):
        raise ArgumentError(
            f"`{option}={bound}` is not a value of {column}, which is {kind}",
            hint=f"write it like {option}={example}",
            location=scope.location,
        ) from None


def _number(text: str) -> str:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError
    plain = f"{value:f}"
    digits = sum(character.isdigit() for character in plain)
    return plain if digits <= _MOST_DIGITS else f"CAST('{value}' AS DOUBLE)"


def _floating(kind: str) -> Callable[[str], str]:
    return lambda text: f"CAST('{float(text)!r}' AS {kind})"


def _date(text: str) -> str:
    return f"DATE'{date.fromisoformat(text).isoformat()}'"


def _time(kind: str) -> Callable[[str], str]:
    return lambda text: f"{kind}'{datetime.fromisoformat(text).isoformat(sep=' ')}'"


def _text(_: str) -> None:
    return None


_NUMBERS = (_number, "0.5")
_FORMS: Mapping[str, tuple[Callable[[str], str | None], str]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "decimal"), _NUMBERS),
    "float": (_floating("FLOAT"), "0.5"),
    "double": (_floating("DOUBLE"), "0.5"),
    "date": (_date, "2026-05-16"),
    "timestamp": (_time("TIMESTAMP"), "'2026-05-16 09:30:00'"),
    "timestamp_ntz": (_time("TIMESTAMP_NTZ"), "'2026-05-16 09:30:00'"),
    "string": (_text, "a"),
}
