"""Compile an expression's text for Arrow columns: first the fence, then the kernels of operators
and functions, by sqlglot's classes.

The fence says which expressions sqlglot certainly parses as Spark does, and which session settings
Arrow's results agree with. sqlglot parses more than Spark does, and some of it differently. So only
words, numbers, strings without escapes and some operators are accepted, with brackets wherever the
two may bind operators differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.lakes.arrow_expressions import functions, nodes
from penstock.lakes.arrow_expressions.nodes import Compile, Node, NotSupportedByArrow, Rows
from penstock.lakes.format.naming import fold
from penstock.lazy import exp, pa
from penstock.sql.text import SqlExpression, as_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_CHARACTERS = 20_000
_TOKEN = re.compile(
    r"""[ \t\r\n]+
    | (?P<string>'[^'\\\x00]*')
    | (?P<quoted>`[^`]+`)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | [0-9]+ (\.[0-9]+ | [LlSsYy])? (?![A-Za-z0-9_.])
    | <=> | <> | <= | >= | == | != | [=<>+*%(),]
    | -(?!-)
    """,
    re.VERBOSE,
)

_STRINGS, _NAMES = frozenset({"string", "quoted"}), frozenset({"quoted", "word"})
# Functions and operators that sqlglot and Spark parse alike; Spark refuses others of sqlglot's.
_WORDS = frozenset(
    {
        *("AND", "OR", "NOT", "IS", "NULL", "TRUE", "FALSE", "IN", "BETWEEN", "LIKE"),
        *("CASE", "WHEN", "THEN", "ELSE", "END", "IF", "COALESCE", "NVL", "IFNULL"),
        *("PMOD", "CAST", "AS"),
        *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "DATE"),
        *("TIMESTAMP", "TIMESTAMP_NTZ"),
    }
)
_CALLED = frozenset({"IN", "IF", "COALESCE", "NVL", "IFNULL", "PMOD", "CAST", "DECIMAL"})

_ATOMS: tuple[type, ...] = (
    *(exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Anonymous),
    *(exp.Coalesce, exp.Case, exp.If, exp.Cast, exp.TryCast),
)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_PREDICATES = (exp.In, exp.Between, exp.Is, exp.Like)
_TERMS = (*_ATOMS, exp.Neg, *_ARITHMETIC)

# What may be an operand of these operators without brackets.
_OPERANDS: tuple[tuple[tuple[type, ...], tuple[type, ...]], ...] = (
    ((exp.Neg,), (*_ATOMS, exp.Neg)),
    (_ARITHMETIC, _TERMS),
    (_COMPARISONS, _TERMS),
    (_PREDICATES, _TERMS),
    ((exp.Not, exp.And, exp.Or), (*_TERMS, *_COMPARISONS, *_PREDICATES, exp.Not, exp.And, exp.Or)),
)
# Other arguments of a node (a column's table, an IN's query) change its meaning.
_UNDERSTOOD = frozenset(
    {"this", "expression", "expressions", "low", "high", "true", "false", "ifs", "default", "to"}
)
_MARKS: Mapping[type, frozenset[str]] = {
    exp.Literal: frozenset({"is_string"}),
    exp.Like: frozenset({"negate"}),
    exp.Identifier: frozenset({"quoted"}),
    exp.DataType: frozenset({"nested"}),
    exp.Coalesce: frozenset({"is_nvl", "is_null"}),
}


@dataclass(frozen=True, slots=True)
class _Words:
    """Counts in a text: words that may be columns, that must be, and brackets outside of calls."""

    certain: int = 0
    possible: int = 0
    brackets: int = 0


def parsed(written: SqlExpression, columns: Collection[str]) -> exp.Expr:
    """The tree of an expression over columns of these names, folded. Raises NotSupportedByArrow."""
    words, tree = _words(written.text, columns), written.tree
    if tree is None:
        raise NotSupportedByArrow("a text that sqlglot does not read")
    nodes: list[Any] = list(tree.walk())
    # If sqlglot takes a word for more than a column (``a ISNULL``), the count is smaller.
    count = sum(isinstance(node, exp.Column) for node in nodes)
    if not words.certain <= count <= words.possible:
        raise NotSupportedByArrow("a word of another dialect")
    # Where sqlglot adds brackets, it may bind operators differently.
    if sum(isinstance(node, exp.Paren) for node in nodes) != words.brackets:
        raise NotSupportedByArrow("brackets that are not in the text")
    for node in nodes:
        _check(node)
    return tree


def _words(text: str, columns: Collection[str]) -> _Words:
    counts, before = _Words(), ""
    for kind, token in _tokens(text):
        if kind in _NAMES:
            is_column = kind == "quoted" or fold(token) in columns
            is_word = kind == "word" and token.upper() in _WORDS
            if not is_column and not is_word:
                raise NotSupportedByArrow(token)
            counts = replace(
                counts,
                certain=counts.certain + (not is_word),
                possible=counts.possible + is_column,
            )
        if token == "(" and before.upper() not in _CALLED:
            counts = replace(counts, brackets=counts.brackets + 1)
        before = token
    return counts


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """The tokens of the text without spaces, as kind and token."""
    if len(text) > _MOST_CHARACTERS:
        raise NotSupportedByArrow("a long text")
    at, after = 0, ""
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotSupportedByArrow(f"{text[at]!r}")
        at = match.end()
        if match[0].isspace():
            continue
        kind = match.lastgroup or ""
        # A setting decides whether 'a''b' is one string or two; `a``b` was not tested.
        if kind in _STRINGS and kind == after:
            raise NotSupportedByArrow("strings that touch")
        yield kind, match[0]
        after = kind


def _check(node: Any) -> None:
    args: Mapping[str, Any] = node.args
    marks = _MARKS.get(type(node), frozenset())
    if any(value and key not in _UNDERSTOOD | marks for key, value in args.items()):
        raise NotSupportedByArrow(f"{type(node).__name__} with more than is known")
    for kinds, operands in _OPERANDS:
        if isinstance(node, kinds):
            beside = [args.get(key) for key in ("this", "expression", "low", "high")]
            if any(part is not None and not isinstance(part, operands) for part in beside):
                raise NotSupportedByArrow("operators that want brackets")


# Each of these settings changes the meaning of some expression, or makes it an error.
_WANTED: Mapping[str, frozenset[str]] = {
    "spark.sql.ansi.enabled": frozenset({"true"}),
    "spark.sql.ansi.enforceReservedKeywords": frozenset({"false"}),
    "spark.sql.caseSensitive": frozenset({"false"}),
    "spark.sql.legacy.literal.pickMinimumPrecision": frozenset({"true"}),
    # Spark's own pmod takes precedence over a function of the user's with this name.
    "spark.sql.functionResolution.sessionOrder": frozenset({"second", "last"}),
}


def knows_settings(spark: SparkSession) -> bool:
    return all(str(spark.conf.get(key)).lower() in known for key, known in _WANTED.items())


def would_know_settings(conf: Mapping[str, str]) -> bool:
    """The same for a session that would be started with ``conf``."""
    return all(conf[key].lower() in known for key, known in _WANTED.items() if key in conf)


__all__ = ["Expression", "condition", "expression", "plain"]


@dataclass(frozen=True, slots=True)
class Expression:
    """``columns`` are the names, as written, of the columns that it uses."""

    node: Node

    @property
    def kind(self) -> pa.DataType:
        return self.node.kind

    @property
    def columns(self) -> frozenset[str]:
        return self.node.columns

    def cast(self, kind: pa.DataType) -> Expression:
        """The expression cast to the type of a column. Raises NotSupportedByArrow where the cast
        may lose something.
        """
        mine = self.kind
        exact = (
            mine == kind
            or pa.types.is_null(mine)
            or (mine in nodes.INTEGERS and nodes.is_number(kind))
            or (nodes.is_decimal(mine) and nodes.is_decimal(kind))
        )
        if not exact:
            raise NotSupportedByArrow(f"{mine} for a column of {kind}")
        wide = nodes.as_decimal(mine) if nodes.is_decimal(kind) and mine in nodes.INTEGERS else mine
        try:
            return Expression(self.node.cast(wide).cast(kind))
        except pa.ArrowException as error:  # of a constant
            raise NotSupportedByArrow(str(error)) from error

    def array(self, rows: Rows) -> pa.ChunkedArray:
        """The expression's value for each row. Raises NotSupportedByArrow."""
        try:
            value = self.node.run(rows)
        except (pa.ArrowException, OverflowError) as error:
            raise NotSupportedByArrow(str(error)) from error
        if isinstance(value, pa.Scalar):
            value = pa.repeat(value, rows.num_rows)
        return value if isinstance(value, pa.ChunkedArray) else pa.chunked_array([value])

    def matches(self, rows: Rows, places: pa.Array) -> pa.Array:
        """Return those of ``places``, one for each row, whose rows satisfy this condition."""
        matching = self.array(rows).combine_chunks()
        return places.filter(matching)  # which leaves out NULL, too


@dataclass(frozen=True, slots=True)
class _Compiler:
    """``names`` are those of ``columns``, folded."""

    columns: Mapping[str, pa.DataType]
    names: Mapping[str, str]
    in_utc: bool

    def __call__(self, tree: exp.Expr) -> Node:
        if not isinstance(tree, exp.Column):
            compute = FUNCTIONS.get(type(tree))
            if compute is None:
                raise NotSupportedByArrow(type(tree).__name__)
            return compute(tree, self)
        name = self.names.get(fold(tree.name))
        if name is None or not name.isascii():
            raise NotSupportedByArrow(f"column {tree.name}")
        return nodes.column(name, self.columns[name])


def expression(
    written: str | SqlExpression, columns: Mapping[str, pa.DataType], *, in_utc: bool = False
) -> Expression:
    """Compile Spark's SQL over columns of these names and types. Raises NotSupportedByArrow.

    ``in_utc`` says that times without a zone are in UTC.
    """
    names: dict[str, str] = {}
    for name in columns:
        if names.setdefault(fold(name), name) != name:
            raise NotSupportedByArrow("names that differ in case alone")
    try:
        node = _Compiler(columns, names, in_utc)(parsed(as_expression(written), names))
    except (pa.ArrowException, OverflowError, RecursionError) as error:
        raise NotSupportedByArrow(str(error)) from error
    return Expression(node)


def condition(
    written: str | SqlExpression, columns: Mapping[str, pa.DataType], *, in_utc: bool = False
) -> Expression:
    """As `expression`, for an expression that is true, false or NULL."""
    compiled = expression(written, columns, in_utc=in_utc)
    if compiled.kind != pa.bool_():
        raise NotSupportedByArrow(f"{compiled.kind} as a condition")
    return compiled


def plain(value: object) -> Expression:
    """A Python value as an expression, with the type that Spark gives it."""
    if value is None:
        return Expression(nodes.null())
    if isinstance(value, bool):
        return Expression(nodes.constant(pa.bool_(), value))
    if type(value) is int:
        text = str(abs(value))
        literal = nodes.integer_or_decimal(text, negative=value < 0)
        return Expression(nodes.constant(literal.kind, literal.value))
    raise NotSupportedByArrow(f"a {type(value).__name__}")


FUNCTIONS: Mapping[type, Callable[[Any, Compile], Node]] = {
    exp.Paren: functions.paren,
    exp.Literal: functions.literal,
    exp.Null: functions.null,
    exp.Boolean: functions.boolean,
    exp.And: functions.and_,
    exp.Or: functions.or_,
    exp.Not: functions.not_,
    exp.Is: functions.is_,
    exp.EQ: functions.compared("equal"),
    exp.NEQ: functions.compared("not_equal"),
    exp.LT: functions.compared("less"),
    exp.LTE: functions.compared("less_equal"),
    exp.GT: functions.compared("greater"),
    exp.GTE: functions.compared("greater_equal"),
    exp.NullSafeEQ: functions.same,
    exp.In: functions.in_,
    exp.Between: functions.between,
    exp.Like: functions.like,
    exp.Add: functions.summed("add_checked"),
    exp.Sub: functions.summed("subtract_checked"),
    exp.Mul: functions.arithmetic("multiply_checked", nodes.product_of),
    exp.Mod: functions.remainder,
    exp.Anonymous: functions.named,
    exp.Neg: functions.negative,
    exp.Coalesce: functions.coalesce,
    exp.If: functions.if_,
    exp.Case: functions.case,
    exp.Cast: functions.cast,
    exp.TryCast: functions.cast,
}
