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

from penstock.model.slicing.evaluated_values import (
    ANY_TRUTH,
    FALSE,
    FUNCTIONS,
    NULL,
    TRUE,
    UNKNOWN,
    Casts,
    Function,
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
        """Evaluate a condition.

        Args:
            expression: The condition.
            column: The value of the column, or a span of values.

        Returns:
            What the condition may be.
        """
        return as_truths(self.value(expression, column))

    def value(self, expression: Expression, column: Value) -> Value:
        """Evaluate an expression.

        Args:
            expression: The expression.
            column: The value of the column, or a span of values.

        Returns:
            Its value; `UNKNOWN` also where Spark has an error.
        """
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
        """Prepare an expression.

        Args:
            expression: The expression.
            casts: Converts between types.

        Returns:
            The program.
        """
        compiler = _Compiler(casts)
        return cls(compiler.compiled(expression), tuple(compiler.parts), casts)

    def constants(self, slice_values: Mapping[str, Value]) -> tuple[Value, ...]:
        """Compute the parts that are about the slice alone.

        Args:
            slice_values: The values of a slice, by the arguments that stand for them.

        Returns:
            The values of the parts, in their order.
        """
        compiler = _Compiler(self.casts)
        return tuple(compiler._constant(item, slice_values) for item in self.parts)


@dataclass(slots=True)
class _Compiler:
    """Compile expressions. What depends on the column alone is computed once for each value."""

    casts: Casts
    parts: list[Expression] = field(default_factory=list)

    def compiled(self, expression: Expression) -> Run:
        if expression == COLUMN:
            return lambda column, _: column
        if not _depends_on("column", expression):
            return self._without_column(expression)
        operation, *arguments = expression
        runs = [self.compiled(item) for item in arguments if isinstance(item, tuple)]
        apply = self._applied(str(operation))

        def run(column: Value, constants: Sequence[Value]) -> Value:
            try:
                return apply([item(column, constants) for item in runs])
            except (ValueError, OverflowError):  # beyond the years of a date
                return UNKNOWN

        return run if _depends_on("slice", expression) else _once(run)

    def _without_column(self, expression: Expression) -> Run:
        if not _depends_on("slice", expression):
            value = self._constant(expression, {})
            return lambda _, __: value
        number = len(self.parts)
        self.parts.append(expression)
        return lambda _, constants: constants[number]

    def _constant(self, expression: Expression, slice_values: Mapping[str, Value]) -> Value:
        """Return the value of an expression without the column."""
        operation, *arguments = expression
        if operation == "slice":
            return slice_values.get(str(arguments[0]), UNKNOWN)
        if operation in _CONSTANTS:
            return _CONSTANTS[str(operation)](*arguments)
        values = [self._constant(e, slice_values) for e in arguments if isinstance(e, tuple)]
        try:
            return self._applied(str(operation))(values)
        except (ValueError, OverflowError):
            return UNKNOWN

    def _applied(self, operation: str) -> Callable[[Sequence[Value]], Value]:
        """Return what an operation makes of the values of its arguments."""
        builtin, function = _OPERATIONS.get(operation), FUNCTIONS.get(operation)
        if builtin is not None:
            return partial(builtin, self.casts)
        if function is None:
            return lambda _: UNKNOWN
        return partial(_call, self.casts, function)


def _once(run: Run) -> Run:
    """Return what computes each value of the column once."""
    results: dict[Value, Value] = {}

    def run_once(column: Value, constants: Sequence[Value]) -> Value:
        try:
            return results[column]
        except KeyError:
            result = results[column] = run(column, constants)
            return result

    return run_once


def _call(casts: Casts, function: Function, values: Sequence[Value]) -> Value:
    kinds = function.kinds
    cast = [casts.to(kinds[min(n, len(kinds) - 1)], item) for n, item in enumerate(values)]
    if any(item is None for item in cast):
        return None
    if any(isinstance(item, Unknown) for item in cast):
        return UNKNOWN
    result = function.call(casts, cast)
    return frozenset({result}) if isinstance(result, bool) else result


def _depends_on(operation: object, expression: Expression) -> bool:
    """Return whether an operation is anywhere in an expression: the column, or the slice."""
    return expression[0] == operation or any(
        _depends_on(operation, item) for item in expression[1:] if isinstance(item, tuple)
    )


def as_truths(value: Value) -> Truths:
    """Return a value as what a condition may be.

    Args:
        value: Any value.

    Returns:
        A set of truths.
    """
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
def _orders(casts: Casts, lhs: Value, rhs: Value) -> frozenset[int | None]:
    """Return how two values may compare: -1, 0, 1, or None for NULL; empty if not known."""
    if lhs is None or rhs is None:
        return frozenset({None})
    lhs, rhs = _alike(casts, lhs, rhs)
    if isinstance(lhs, Unknown) or isinstance(rhs, Unknown):
        return frozenset()
    if isinstance(lhs, LooseText) or kind_of(lhs) != kind_of(rhs):
        return frozenset()
    if kind_of(lhs) == "truth":
        return frozenset()
    low, high = _ends(lhs)
    other_low, other_high = _ends(rhs)
    result: set[int | None] = set()
    if low < other_high:
        result.add(-1)
    if high > other_low:
        result.add(1)
    if low <= other_high and other_low <= high:
        result.add(0)
    return frozenset(result)


def _ends(value: Value) -> tuple[Value, Value]:
    return (value.low, value.high) if isinstance(value, Span) else (value, value)


def _alike(casts: Casts, lhs: Value, rhs: Value) -> tuple[Value, Value]:
    """Return two values as those of the type in which Spark compares them."""
    kinds = {_kind(lhs), _kind(rhs)}
    if len(kinds) == 1:
        return (UNKNOWN, UNKNOWN) if isinstance(lhs, LooseText) else (lhs, rhs)
    wider = next((item for item in ("moment", "date", "int") if item in kinds), None)
    if wider is None or not kinds <= _COMPARED[wider]:
        return UNKNOWN, UNKNOWN
    return casts.to(wider, lhs), casts.to(wider, rhs)


def _kind(value: Value) -> str:
    return "text" if isinstance(value, LooseText) else kind_of(value)


_COMPARED: Mapping[str, frozenset[str]] = {
    "moment": frozenset({"moment", "date", "text"}),
    "date": frozenset({"date", "text"}),
    "int": frozenset({"int", "text"}),
}


def _compare(matching: frozenset[int]) -> Callable[[Casts, Sequence[Value]], Truths]:
    def compare(casts: Casts, values: Sequence[Value]) -> Truths:
        result = _orders(casts, *values)
        if not result:
            return ANY_TRUTH
        return frozenset(None if item is None else item in matching for item in result)

    return compare


def _same(casts: Casts, values: Sequence[Value]) -> Truths:
    """Compare so that NULL equals NULL and nothing else."""
    lhs, rhs = values
    if lhs is None or rhs is None:
        rhs = rhs if lhs is None else lhs
        if isinstance(rhs, Unknown):
            return frozenset({True, False})
        return TRUE if rhs is None else FALSE
    result = _orders(casts, lhs, rhs)
    return frozenset(item == 0 for item in result) if result else frozenset({True, False})


def _is_in(casts: Casts, values: Sequence[Value]) -> Truths:
    """Compare with each of a list, as values of one type.

    Settings decide which type that is, so values whose texts do not tell are not compared.
    """
    lhs, *options = values
    kinds = {_kind(item) for item in values if item is not None and item is not UNKNOWN}
    if len(kinds) > 1 and not _are_plain(casts, values):
        return ANY_TRUTH
    equal = _compare(frozenset({0}))
    result = [equal(casts, (lhs, rhs)) for rhs in options]
    if "moment" in kinds and len(kinds) > 1:  # as texts they may differ
        result = [item | FALSE if True in item else item for item in result]
    return reduce(lambda lhs, rhs: _ors(casts, (lhs, rhs)), result, FALSE)


def _are_plain(casts: Casts, values: Sequence[Value]) -> bool:
    """Return whether texts beside dates are written as dates are."""
    texts = [item for item in values if _kind(item) == "text"]
    if any(isinstance(item, LooseText | Span) for item in texts):
        return False
    if any(_kind(item) in {"int", "truth"} for item in values):
        return False
    return all(casts.to("text", casts.to("date", item)) == item for item in texts)


# --- logic


def _ands(_: Casts, values: Sequence[Value]) -> Truths:
    lefts, rights = map(as_truths, values)
    return frozenset(_and(lhs, rhs) for lhs in lefts for rhs in rights)


def _ors(casts: Casts, values: Sequence[Value]) -> Truths:
    negated = [_not(casts, (value,)) for value in values]
    return _not(casts, (_ands(casts, negated),))


def _not(_: Casts, values: Sequence[Value]) -> Truths:
    return frozenset(None if truth is None else not truth for truth in as_truths(values[0]))


def _and(lhs: bool | None, rhs: bool | None) -> bool | None:
    if lhs is False or rhs is False:
        return False
    return None if lhs is None or rhs is None else True


def _is_null(_: Casts, values: Sequence[Value]) -> Truths:
    (value,) = values
    if isinstance(value, Unknown):
        return TRUE | FALSE
    if isinstance(value, frozenset):
        return frozenset(item is None for item in value)
    return TRUE if value is None else FALSE


def _is_true(_: Casts, values: Sequence[Value]) -> Truths:
    return frozenset(item is True for item in as_truths(values[0]))


# --- choices


def _coalesce(_: Casts, values: Sequence[Value]) -> Value:
    """Return the first value that is not NULL, where all are of one type."""
    if not _are_of_one_type(values):
        return UNKNOWN
    if all(item is None or isinstance(item, frozenset) for item in values):
        return reduce(
            lambda lhs, rhs: (lhs - NULL) | rhs if None in lhs else lhs, map(as_truths, values)
        )
    return next((item for item in values if item is not None), None)


def _case(_: Casts, values: Sequence[Value]) -> Value:
    """Choose by conditions: condition, value, condition, value, and the value without any."""
    *pairs, default = values
    branches = (*pairs[1::2], default)
    if not _are_of_one_type(branches):
        return UNKNOWN
    result: list[Value] = []
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        truths = as_truths(condition)
        if True in truths:
            result.append(value)
        if truths == TRUE:
            break
    else:
        result.append(default)
    if all(item is None or isinstance(item, frozenset) for item in branches):
        return frozenset[bool | None]().union(*map(as_truths, result))
    return result[0] if all(item == result[0] for item in result) else UNKNOWN


def _null_if(casts: Casts, values: Sequence[Value]) -> Value:
    truths = _compare(frozenset({0}))(casts, values)
    if True not in truths:
        return values[0]
    return None if truths == TRUE else UNKNOWN


def _are_of_one_type(values: Sequence[Value]) -> bool:
    kinds = {_kind(item) for item in values if item is not None}
    return len(kinds) <= 1 and not any(isinstance(item, Unknown | LooseText) for item in values)


def _most(values: Sequence[Value], choose: Callable[[Sequence[Value]], Value]) -> Value:
    results = [item for item in values if item is not None]
    is_single = not any(isinstance(item, Span | frozenset) for item in results)
    if not is_single or not _are_of_one_type(values):
        return UNKNOWN
    return choose(results) if results else None


_OPERATIONS: Mapping[str, Callable[[Casts, Sequence[Value]], Value]] = {
    "eq": _compare(frozenset({0})),
    "ne": _compare(frozenset({-1, 1})),
    "lt": _compare(frozenset({-1})),
    "le": _compare(frozenset({-1, 0})),
    "gt": _compare(frozenset({1})),
    "ge": _compare(frozenset({0, 1})),
    "same": _same,
    "in": _is_in,
    "and": _ands,
    "or": _ors,
    "not": _not,
    "is_null": _is_null,
    "is_true": _is_true,
    "is_false": lambda _, values: frozenset(item is False for item in as_truths(values[0])),
    "coalesce": _coalesce,
    "case": _case,
    "null_if": _null_if,
    "greatest": lambda _, values: _most(values, max),
    "least": lambda _, values: _most(values, min),
}
#: all that an expression may be made of, but for columns, constants and the slice
NAMES = frozenset({*_OPERATIONS, *FUNCTIONS})
