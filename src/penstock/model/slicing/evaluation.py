"""Evaluate conditions on one column over the values that the column may have. Pure.

An expression is a tuple, an operation and its arguments: ``("eq", ("column",), ("text", "a"))``.
The result is a set of truths: one that holds what SQL's three-valued logic makes of any value that
the column may have, so a condition whose truths lack True is never true. What is not known, another
column or a function without an entry, is any value at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial, reduce

from penstock.model.slicing.evaluated_functions import FUNCTIONS, Function
from penstock.model.slicing.evaluated_values import (
    ANY_TRUTH,
    FALSE,
    NULL,
    TRUE,
    UNKNOWN,
    Casts,
    LooseText,
    Span,
    Truths,
    Unknown,
    Value,
    kind_of,
)

#: an operation and its arguments, which are expressions, but for those of ``_CONSTANTS``
Expression = tuple[object, ...]
COLUMN: Expression = ("column",)
ANYTHING: Expression = ("anything",)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluate expressions in a time zone; ``slice_values`` are those of the reader's slice."""

    casts: Casts
    slice_values: Mapping[str, Value]

    def truths(self, expression: Expression, column: Value) -> Truths:
        """Return what a condition may be where the column has a value, or those of a span."""
        return as_truths(self.value(expression, column))

    def value(self, expression: Expression, column: Value) -> Value:
        """Return the value of an expression; errors of Spark, too, are `UNKNOWN`."""
        program = Program.of(expression, self.casts)
        return program.run(column, program.constants(self.slice_values))


#: compute a value of the column's, and of those of the parts that are about the slice
Run = Callable[[Value, Sequence[Value]], Value]


@dataclass(frozen=True, slots=True)
class Program:
    """An expression that is made ready for many values of the column, and of many slices.

    ``parts`` are about the slice alone: `constants` computes them once for each.
    """

    run: Run
    parts: tuple[Expression, ...]
    casts: Casts

    @classmethod
    def of(cls, expression: Expression, casts: Casts) -> Program:
        compiler = _Compiler(casts)
        return cls(compiler.compiled(expression), tuple(compiler.parts), casts)

    def constants(self, slice_values: Mapping[str, Value]) -> tuple[Value, ...]:
        """Return the values of the parts for a slice."""
        compiler = _Compiler(self.casts)
        return tuple(compiler.constant(each, slice_values) for each in self.parts)


@dataclass(slots=True)
class _Compiler:
    """Compile expressions. What depends on the column alone is computed once for each value."""

    casts: Casts
    parts: list[Expression] = field(default_factory=list)

    def compiled(self, expression: Expression) -> Run:
        if expression == COLUMN:
            return lambda column, _: column
        if not depends_on("column", expression):
            return self._without_column(expression)
        operation, *arguments = expression
        runs = [self.compiled(each) for each in arguments if isinstance(each, tuple)]
        apply = self._applied(str(operation))

        def run(column: Value, constants: Sequence[Value]) -> Value:
            try:
                return apply([each(column, constants) for each in runs])
            except (ValueError, OverflowError):  # beyond the years of a date
                return UNKNOWN

        return run if depends_on("slice", expression) else _once(run)

    def _without_column(self, expression: Expression) -> Run:
        if not depends_on("slice", expression):
            value = self.constant(expression, {})
            return lambda _, __: value
        number = len(self.parts)
        self.parts.append(expression)
        return lambda _, constants: constants[number]

    def constant(self, expression: Expression, slice_values: Mapping[str, Value]) -> Value:
        """Return the value of an expression without the column."""
        operation, *arguments = expression
        if operation == "slice":
            return slice_values.get(str(arguments[0]), UNKNOWN)
        if operation in _CONSTANTS:
            return _CONSTANTS[str(operation)](*arguments)
        values = [self.constant(e, slice_values) for e in arguments if isinstance(e, tuple)]
        try:
            return self._applied(str(operation))(values)
        except (ValueError, OverflowError):
            return UNKNOWN

    def _applied(self, operation: str) -> Callable[[Sequence[Value]], Value]:
        """Return what an operation makes of the values of its arguments."""
        own, function = _OPERATIONS.get(operation), FUNCTIONS.get(operation)
        if own is not None:
            return partial(own, self.casts)
        if function is None:
            return lambda _: UNKNOWN
        return partial(_call, self.casts, function)


def _once(run: Run) -> Run:
    """Return what computes each value of the column once."""
    known: dict[Value, Value] = {}

    def run_once(column: Value, constants: Sequence[Value]) -> Value:
        try:
            return known[column]
        except KeyError:
            found = known[column] = run(column, constants)
            return found

    return run_once


def _call(casts: Casts, function: Function, values: Sequence[Value]) -> Value:
    kinds = function.kinds
    cast = [casts.to(kinds[min(n, len(kinds) - 1)], each) for n, each in enumerate(values)]
    if any(each is None for each in cast):
        return None
    if any(isinstance(each, Unknown) for each in cast):
        return UNKNOWN
    found = function.call(casts, cast)
    return frozenset({found}) if isinstance(found, bool) else found


def depends_on(operation: object, expression: Expression) -> bool:
    """Return whether an operation is anywhere in an expression: the column, or the slice."""
    return expression[0] == operation or any(
        depends_on(operation, each) for each in expression[1:] if isinstance(each, tuple)
    )


def as_truths(value: Value) -> Truths:
    """Return a value as what a condition may be."""
    if value is None:
        return NULL
    if isinstance(value, frozenset):
        return value
    return frozenset({value}) if isinstance(value, bool) else ANY_TRUTH


_CONSTANTS: Mapping[str, Callable[..., Value]] = {
    "text": lambda text: text,
    "int": lambda number: number,
    "truth": lambda is_true: frozenset({is_true}),
    "date": date.fromisoformat,
    "null": lambda: None,
    "anything": lambda: UNKNOWN,
}


# --- comparisons


@lru_cache(maxsize=65536)
def orders(casts: Casts, left: Value, right: Value) -> frozenset[int | None]:
    """Return how two values may compare: -1, 0, 1, or None for NULL; empty if not known."""
    if left is None or right is None:
        return frozenset({None})
    one, other = _alike(casts, left, right)
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return frozenset()
    if isinstance(one, LooseText) or kind_of(one) != kind_of(other):
        return frozenset()
    if kind_of(one) == "truth":
        return frozenset()
    low, high = _ends(one)
    other_low, other_high = _ends(other)
    found: set[int | None] = set()
    if low < other_high:
        found.add(-1)
    if high > other_low:
        found.add(1)
    if low <= other_high and other_low <= high:
        found.add(0)
    return frozenset(found)


def _ends(value: Value) -> tuple[Value, Value]:
    return (value.low, value.high) if isinstance(value, Span) else (value, value)


def _alike(casts: Casts, left: Value, right: Value) -> tuple[Value, Value]:
    """Return two values as those of the type in which Spark compares them."""
    kinds = {_kind(left), _kind(right)}
    if len(kinds) == 1:
        return (UNKNOWN, UNKNOWN) if isinstance(left, LooseText) else (left, right)
    wider = next((each for each in ("moment", "date", "int") if each in kinds), None)
    if wider is None or not kinds <= _COMPARED[wider]:
        return UNKNOWN, UNKNOWN
    return casts.to(wider, left), casts.to(wider, right)


def _kind(value: Value) -> str:
    return "text" if isinstance(value, LooseText) else kind_of(value)


_COMPARED: Mapping[str, frozenset[str]] = {
    "moment": frozenset({"moment", "date", "text"}),
    "date": frozenset({"date", "text"}),
    "int": frozenset({"int", "text"}),
}


def _compare(wanted: frozenset[int]) -> Callable[[Casts, Sequence[Value]], Truths]:
    def compare(casts: Casts, values: Sequence[Value]) -> Truths:
        found = orders(casts, *values)
        if not found:
            return ANY_TRUTH
        return frozenset(None if each is None else each in wanted for each in found)

    return compare


def _same(casts: Casts, values: Sequence[Value]) -> Truths:
    """Compare so that NULL equals NULL and nothing else."""
    left, right = values
    if left is None or right is None:
        other = right if left is None else left
        if isinstance(other, Unknown):
            return frozenset({True, False})
        return TRUE if other is None else FALSE
    found = orders(casts, left, right)
    return frozenset(each == 0 for each in found) if found else frozenset({True, False})


def _is_in(casts: Casts, values: Sequence[Value]) -> Truths:
    """Compare with each of a list, as values of one type: settings decide which, so values whose
    texts do not tell are not compared.
    """
    one, *others = values
    kinds = {_kind(each) for each in values if each is not None and each is not UNKNOWN}
    if len(kinds) > 1 and not _are_plain(casts, values):
        return ANY_TRUTH
    equal = _compare(frozenset({0}))
    found = [equal(casts, (one, other)) for other in others]
    if "moment" in kinds and len(kinds) > 1:  # as texts they may differ
        found = [each | FALSE if True in each else each for each in found]
    return reduce(lambda left, right: or_(casts, (left, right)), found, FALSE)


def _are_plain(casts: Casts, values: Sequence[Value]) -> bool:
    """Return whether texts beside dates are written as dates are."""
    texts = [each for each in values if _kind(each) == "text"]
    if any(isinstance(each, LooseText | Span) for each in texts):
        return False
    if any(_kind(each) in {"int", "truth"} for each in values):
        return False
    return all(casts.to("text", casts.to("date", each)) == each for each in texts)


# --- logic


def and_(_: Casts, values: Sequence[Value]) -> Truths:
    left, right = map(as_truths, values)
    return frozenset(_and(one, other) for one in left for other in right)


def or_(_: Casts, values: Sequence[Value]) -> Truths:
    left, right = map(as_truths, values)
    return frozenset(_negated(_and(_negated(a), _negated(b))) for a in left for b in right)


def _not(_: Casts, values: Sequence[Value]) -> Truths:
    return frozenset(map(_negated, as_truths(values[0])))


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _is_null(_: Casts, values: Sequence[Value]) -> Truths:
    (value,) = values
    if isinstance(value, Unknown):
        return TRUE | FALSE
    if isinstance(value, frozenset):
        return frozenset(each is None for each in value)
    return TRUE if value is None else FALSE


def _is_true(_: Casts, values: Sequence[Value]) -> Truths:
    return frozenset(each is True for each in as_truths(values[0]))


def _is_false(_: Casts, values: Sequence[Value]) -> Truths:
    return frozenset(each is False for each in as_truths(values[0]))


# --- choices


def _coalesce(_: Casts, values: Sequence[Value]) -> Value:
    """Return the first value that is not NULL, where all are of one type."""
    if not _are_of_one_type(values):
        return UNKNOWN
    if all(each is None or isinstance(each, frozenset) for each in values):
        return reduce(_first_truth, map(as_truths, values))
    return next((each for each in values if each is not None), None)


def _first_truth(one: Truths, other: Truths) -> Truths:
    return (one - NULL) | other if None in one else one


def _case(_: Casts, values: Sequence[Value]) -> Value:
    """Choose by conditions: condition, value, condition, value, and the value without any."""
    *pairs, default = values
    branches = (*pairs[1::2], default)
    if not _are_of_one_type(branches):
        return UNKNOWN
    found: list[Value] = []
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        truths = as_truths(condition)
        if True in truths:
            found.append(value)
        if truths == TRUE:
            break
    else:
        found.append(default)
    if all(each is None or isinstance(each, frozenset) for each in branches):
        return frozenset[bool | None]().union(*map(as_truths, found))
    return found[0] if all(each == found[0] for each in found) else UNKNOWN


def _null_if(casts: Casts, values: Sequence[Value]) -> Value:
    truths = _compare(frozenset({0}))(casts, values)
    if True not in truths:
        return values[0]
    return None if truths == TRUE else UNKNOWN


def _are_of_one_type(values: Sequence[Value]) -> bool:
    kinds = {_kind(each) for each in values if each is not None}
    return len(kinds) <= 1 and not any(isinstance(each, Unknown | LooseText) for each in values)


def _greatest(_: Casts, values: Sequence[Value]) -> Value:
    return _most(values, max)


def _least(_: Casts, values: Sequence[Value]) -> Value:
    return _most(values, min)


def _most(values: Sequence[Value], choose: Callable[[Sequence[Value]], Value]) -> Value:
    known = [each for each in values if each is not None]
    is_single = not any(isinstance(each, Span | frozenset) for each in known)
    if not is_single or not _are_of_one_type(values):
        return UNKNOWN
    return choose(known) if known else None


_OPERATIONS: Mapping[str, Callable[[Casts, Sequence[Value]], Value]] = {
    "eq": _compare(frozenset({0})),
    "ne": _compare(frozenset({-1, 1})),
    "lt": _compare(frozenset({-1})),
    "le": _compare(frozenset({-1, 0})),
    "gt": _compare(frozenset({1})),
    "ge": _compare(frozenset({0, 1})),
    "same": _same,
    "in": _is_in,
    "and": and_,
    "or": or_,
    "not": _not,
    "is_null": _is_null,
    "is_true": _is_true,
    "is_false": _is_false,
    "coalesce": _coalesce,
    "case": _case,
    "null_if": _null_if,
    "greatest": _greatest,
    "least": _least,
}
#: all that an expression may be made of, but for columns, constants and the slice
NAMES = frozenset({*_OPERATIONS, *FUNCTIONS})
