"""DuckDB's functions that Spark has, each with what has to hold for it to mean the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.aggregates import AGGREGATES
from penstock.sql.duckdb.guards import (
    DOUBLE,
    alike,
    by_type,
    called,
    in_order,
    is_condition,
    is_double,
    known_as,
    of_same_fields,
    refused,
    spark,
    text_of,
    unless,
    whole_number,
)
from penstock.sql.duckdb.json import JSON, NAMED_JSON
from penstock.sql.duckdb.lists import LISTS, MAPS, NAMED_LISTS, NAMED_MAPS
from penstock.sql.duckdb.operators import NOT_AS_TEXT
from penstock.sql.duckdb.patterns import NAMED_PATTERNS, PATTERNS
from penstock.sql.duckdb.spans import span
from penstock.sql.duckdb.times import DATE_PART, NAMED_TIMES, NAMED_ZONES, TIMES, ZONES
from penstock.sql.duckdb.words import NAMED_WORDS, WORDS

Rule = Callable[[exp.Expr], exp.Expr]


def _same(node: exp.Expr) -> exp.Expr:
    return node


def _avg(node: exp.Expr) -> exp.Expr:
    """Of decimals as well, DuckDB's average is a DOUBLE."""
    return spark("AVG(CAST(:x AS DOUBLE))", x=node.this) if not _is_distinct(node) else _no(node)


def _is_distinct(node: exp.Expr) -> bool:
    return isinstance(node.this, exp.Distinct)


def _no(node: exp.Expr) -> exp.Expr:
    raise refused(f"{node.sql('duckdb')[:60]}")


def _concat(node: exp.Expr) -> exp.Expr:
    """NULLs are left out."""
    parts = [
        unless("concatenation", NOT_AS_TEXT, expression.copy(), expression)
        for expression in node.expressions
    ]
    filled = [spark("COALESCE(CAST(:x AS STRING), '')", x=part) for part in parts]
    return exp.func("CONCAT", *filled, dialect="databricks")


def _concat_ws(node: exp.Expr) -> exp.Expr:
    for expression in node.expressions:
        if isinstance(expression, exp.Array):
            raise refused("concat_ws of a list")
    separator, *rest = node.expressions
    parts = [unless("concatenation", NOT_AS_TEXT, value.copy(), value) for value in rest]
    return exp.Anonymous(this="CONCAT_WS", expressions=[separator.copy(), *parts])


def _substring(node: exp.Expr) -> exp.Expr:
    """Positions below 1 and negative lengths differ."""
    start, length = node.args.get("start"), node.args.get("length")
    if (whole_number(start) or 0) < 1 or (length is not None and (whole_number(length) or -1) < 0):
        raise refused("substring with these positions")
    return node


def _ends(node: exp.Expr) -> exp.Expr:
    if (whole_number(node.expression) or -1) < 0:
        raise refused(f"{node.key} with this length")
    return node


def _round(node: exp.Expr) -> exp.Expr:
    digits, value = node.args.get("decimals"), node.this
    if digits is None:
        return node
    places = whole_number(digits)
    if places is None:
        raise refused("round to a computed number of digits")
    if is_double(value) and 0 < places < 16:
        return _rounded(value, places)
    advice = f"round(x::DOUBLE, {places})" if places > 0 else ""
    if not 0 < places < 16:
        return unless("round", "float|double", node.copy(), value, advice=advice)
    plain = unless("round", "float", node.copy(), value, advice=advice)
    doubles = _rounded(spark("CAST(:x AS DOUBLE)", x=value), places)
    kind = f"TYPEOF(ROUND(:o0, {places}))"
    return by_type("round", "double", doubles, kind, plain, value, advice=advice)


def _rounded(value: exp.Expr, places: int) -> exp.Expr:
    """A DOUBLE as DuckDB rounds it: Spark rounds the digits that are printed."""
    scale = f"1E{places}D"
    text = f"IF(ABS(:x * {scale}) = CAST('Infinity' AS DOUBLE), :x, ROUND(:x * {scale}) / {scale})"
    return spark(text, x=value)


def _whole(name: str) -> Rule:
    """floor and ceil of DOUBLE are DOUBLE, which Spark's BIGINT cannot hold all of."""

    def rule(node: exp.Expr) -> exp.Expr:
        return spark(
            "IF(TYPEOF(:x) IN ('float', 'double') AND NOT ABS(:x) < 9e15D, "
            f"RAISE_ERROR('{name} of a number that large'), {name}(:x))",
            x=node.this,
        )

    return rule


def _trunc(node: exp.Expr) -> exp.Expr:
    """Towards zero."""
    if node.args.get("decimals") is not None:
        raise refused("trunc to a number of digits")
    text = (
        "IF(TYPEOF(:x) IN ('float', 'double') AND NOT ABS(:x) < 9e15D, "
        "RAISE_ERROR('trunc of a number that large'), IF(:x < 0, CEIL(:x), FLOOR(:x)))"
    )
    return spark(text, x=node.this)


def _finite(name: str) -> Rule:
    """Of an angle; DuckDB fails where Spark has NaN."""
    text = (
        f"IF(ABS(CAST(:x AS DOUBLE)) = CAST('Infinity' AS DOUBLE), "
        f"RAISE_ERROR('{name} of infinity'), {name}(CAST(:x AS DOUBLE)))"
    )
    return lambda node: known_as(DOUBLE, spark(text, x=node.this))


def _within_one(name: str) -> Rule:
    text = (
        f"IF(ABS(CAST(:x AS DOUBLE)) > 1, RAISE_ERROR('{name} of a number beyond 1'), "
        f"{name}(CAST(:x AS DOUBLE)))"
    )
    return lambda node: known_as(DOUBLE, spark(text, x=node.this))


def _of_double(text: str) -> Rule:
    return lambda node: known_as(DOUBLE, spark(text, x=node.this))


def _pow(node: exp.Expr) -> exp.Expr:
    return spark("POWER(CAST(:a AS DOUBLE), :b)", a=node.this, b=node.expression)


def _sqrt(node: exp.Expr) -> exp.Expr:
    text = "IF(:x < 0, RAISE_ERROR('square root of a negative number'), SQRT(:x))"
    return spark(text, x=node.this)


_SPACES = (
    " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)
# Letters that DuckDB keeps one letter in capitals where Java writes two, and those that only one
# of their versions of Unicode knows (measured letter by letter: DuckDB 1.5.5, Java 17).
_NOT_RAISED = (
    "[\u0149\u019b\u01f0\u0264\u0390\u03b0\u0587\u1c8a\u1e96-\u1e9a\u1f50-\u1f56\u1f80-\u1faf\u1fb2-\u1fb7"
    "\u1fbc\u1fc2-\u1fc7\u1fcc\u1fd2-\u1fd7\u1fe2-\u1fe7\u1ff2-\u1ff7\u1ffc\ua7cb-\ua7dc\ufb00-\ufb17"
    "\U00010d50-\U00010d85\U00016ea0-\U00016ecc]"
)
_NOT_LOWERED = "[\u0130\u1c89\ua7cb-\ua7dc\U00010d50-\U00010d85\U00016ea0-\U00016ecc]"


def _upper(node: exp.Expr) -> exp.Expr:
    odd = exp.Literal.string(_NOT_RAISED)
    text = (
        "IF(:x RLIKE :odd, RAISE_ERROR('upper of a letter that differs'), "
        "UPPER(TRANSLATE(:x, '\u00df', '\u1e9e')))"
    )
    return spark(text, x=node.this, odd=odd)


def _lower(node: exp.Expr) -> exp.Expr:
    """The last sigma of a word is like any other."""
    odd = exp.Literal.string(_NOT_LOWERED)
    text = (
        "IF(:x RLIKE :odd, RAISE_ERROR('lower of a letter that differs'), "
        "LOWER(TRANSLATE(:x, '\u03a3', '\u03c3')))"
    )
    return spark(text, x=node.this, odd=odd)


def _trim(node: exp.Expr) -> exp.Expr:
    characters = node.expression
    if characters is not None and not (text_of(characters) or "").isascii():
        raise refused("trim of these characters")
    if characters is not None and not text_of(characters):
        raise refused("trim of computed characters")
    if characters is None:  # all spaces of Unicode, not only the one of ASCII
        node.set("expression", exp.Literal.string(_SPACES))
    return node


def _split(node: exp.Expr) -> exp.Expr:
    """Spark's separator is a pattern."""
    separator = text_of(node.expression)
    if not separator:
        raise refused("string_split with a computed or empty separator")
    pattern = "".join(c if c.isalnum() or ord(c) > 127 else f"\\{c}" for c in separator)
    return spark("SPLIT(:x, :p)", x=node.this, p=exp.Literal.string(pattern))


def _starts(name: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        value, part = node.expressions
        return spark(f"{name}(:x, :p)", x=value, p=part)

    return rule


def _logarithm(name: str) -> Rule:
    """DuckDB fails where Spark has NULL."""
    text = f"IF(:x <= 0, RAISE_ERROR('logarithm of a number that is not positive'), {name}(:x))"
    return lambda node: spark(text, x=node.this)


def _log(node: exp.Expr) -> exp.Expr:
    if node.expression is None:
        return _logarithm("LOG10")(node)
    base = {2: "LOG2", 10: "LOG10"}.get(whole_number(node.this) or 0)
    if base is None:
        raise refused("log of this base")
    text = f"IF(:x <= 0, RAISE_ERROR('logarithm of a number that is not positive'), {base}(:x))"
    return spark(text, x=node.expression)


def _sha(node: exp.Expr) -> exp.Expr:
    if whole_number(node.args.get("length")) not in {None, 256}:
        raise refused("sha of this length")
    return spark("SHA2(:x, 256)", x=node.this)


def _count(node: exp.Expr) -> exp.Expr:
    """``count()`` is how DuckDB prints ``count(*)`` with a window."""
    return exp.Count(this=exp.Star()) if node.this is None else node


def _count_star(_: exp.Expr) -> exp.Expr:
    return exp.Count(this=exp.Star())


def _span(node: exp.Expr) -> exp.Expr:
    """An interval: only a sum or a difference takes it."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.WindowSpec):
        text, amount = span(node) or ("", None)
        if amount is not None or not text.startswith("INTERVAL '"):
            raise refused("a frame of this interval", "RANGE BETWEEN INTERVAL 7 DAY PRECEDING")
        return spark(text)
    known = (exp.Add, exp.DateAdd, exp.DateBin, exp.GenerateSeries, exp.Sub)
    if not isinstance(parent, known):
        raise refused("an interval on its own", "it in a sum: ts + INTERVAL 1 DAY")
    return node


def _split_part(node: exp.Expr) -> exp.Expr:
    if whole_number(node.args.get("part_index")) == 0:
        raise refused("split_part at position 0")
    return node


def _explode(node: exp.Expr) -> exp.Expr:
    if node.expressions or isinstance(node.this, exp.Struct | exp.Null):
        raise refused("unnest of this form")
    if isinstance(node.parent, exp.Func | exp.Binary | exp.Unary | exp.Predicate | exp.Case):
        advice = "SELECT x + 1 FROM (SELECT unnest(l) AS x) for SELECT unnest(l) + 1"
        raise refused("unnest inside of an expression", advice)
    return node


def _sum(node: exp.Expr) -> exp.Expr:
    """Of conditions it counts those that are true."""
    if is_condition(node.this):
        return spark("SUM(CAST(:x AS INT))", x=node.this)
    return _aggregate(node)


def _aggregate(node: exp.Expr) -> exp.Expr:
    """Of the value alone, in no order."""
    if isinstance(node.this, exp.Order) or node.args.get("count"):
        raise refused(f"{called(node)} of this form")
    return node


def _extreme(node: exp.Expr) -> exp.Expr:
    node = _aggregate(node)
    node.set("this", in_order(called(node), node.this))
    return node


def _greatest(node: exp.Expr) -> exp.Expr:
    for value in (node.this, *node.expressions):
        value.replace(in_order(called(node), value))
    return node


def _coalesce(node: exp.Expr) -> exp.Expr:
    return alike("coalesce", node.copy(), node.this, *node.expressions)


def _case(node: exp.Expr) -> exp.Expr:
    values = [branch.args["true"] for branch in node.args["ifs"]]
    values += [node.args["default"]] if node.args.get("default") is not None else []
    case = alike("CASE", node.copy(), *values)
    if node.this is None:
        return case
    conditions = [branch.this for branch in node.args["ifs"]]
    return of_same_fields("CASE", case, node.this, *conditions)


def _nullif(node: exp.Expr) -> exp.Expr:
    return of_same_fields("nullif", node.copy(), node.this, node.expression)


def _transform(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(
        this="TRANSFORM", expressions=[expression.copy() for expression in node.expressions]
    )


def _struct_extract(node: exp.Expr) -> exp.Expr:
    value, key = node.this, node.expression
    if text_of(key) is None:
        raise refused("struct_extract by position")
    return spark(f"(:s).{exp.to_identifier(key.name, quoted=True).sql('databricks')}", s=value)


def _pad(node: exp.Expr) -> exp.Expr:
    if not text_of(node.args.get("fill_pattern")) or (whole_number(node.expression) or -1) < 0:
        raise refused("padding of this kind")
    return node


def _named(*names: str) -> dict[type[exp.Expr], Rule]:
    """Classes of sqlglot; one that this version of it has not is no loss."""
    kinds = (getattr(exp, name, None) for name in names)
    return {kind: _same for kind in kinds if kind is not None}


_ANGLES: Mapping[type[exp.Expr], Rule] = {
    exp.Acos: _within_one("ACOS"),
    exp.Asin: _within_one("ASIN"),
    exp.Atan: _of_double("ATAN(CAST(:x AS DOUBLE))"),
    exp.Atan2: lambda node: known_as(
        DOUBLE,
        spark("ATAN2(CAST(:y AS DOUBLE), CAST(:x AS DOUBLE))", y=node.this, x=node.expression),
    ),
    exp.Cbrt: _of_double("CBRT(CAST(:x AS DOUBLE))"),
    exp.Cos: _finite("COS"),
    exp.Degrees: _of_double("DEGREES(CAST(:x AS DOUBLE))"),
    exp.Radians: _of_double("RADIANS(CAST(:x AS DOUBLE))"),
    exp.Sin: _finite("SIN"),
    exp.Tan: _finite("TAN"),
}

FUNCTIONS: Mapping[type[exp.Expr], Rule] = {
    **AGGREGATES,
    **_ANGLES,
    **JSON,
    **LISTS,
    **MAPS,
    **PATTERNS,
    **TIMES,
    **WORDS,
    **ZONES,
    **_named(
        *(
            "Abs",
            "RowNumber",
            "Rank",
            "DenseRank",
            "Ntile",
            "PercentRank",
            "CumeDist",
            "Lag",
        ),
        *("Lead", "FirstValue", "LastValue", "Replace", "StrPosition", "Contains", "StartsWith"),
        *("EndsWith", "Repeat", "Exp"),
        *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LastDay"),
        *("CurrentDate", "Struct", "Transform", "ArrayFilter", "CountIf"),
        *("NthValue", "Grouping", "MD5", "Pi", "CurrentTimestamp", "Rand", "Uuid"),
    ),
    **dict.fromkeys(
        (
            *(exp.AnyValue, exp.LogicalAnd, exp.LogicalOr, exp.Stddev),
            *(exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
        ),
        _aggregate,
    ),
    exp.Avg: _avg,
    exp.Case: _case,
    exp.Ceil: _whole("CEIL"),
    exp.Coalesce: _coalesce,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.Count: _count,
    exp.Explode: _explode,
    exp.Floor: _whole("FLOOR"),
    exp.Left: _ends,
    exp.Ln: _logarithm("LN"),
    exp.Log: _log,
    exp.Lower: _lower,
    exp.Nullif: _nullif,
    exp.Pad: _pad,
    exp.Pow: _pow,
    exp.Right: _ends,
    exp.Round: _round,
    exp.SHA2: _sha,
    exp.Sign: lambda node: spark("CAST(SIGN(:x) AS INT)", x=node.this),
    exp.Greatest: _greatest,
    exp.Least: _greatest,
    exp.Max: _extreme,
    exp.Min: _extreme,
    exp.IsNan: lambda node: spark("IF(:x IS NULL, NULL, ISNAN(:x))", x=node.this),
    exp.IsInf: lambda node: spark("(ABS(:x) = CAST('Infinity' AS DOUBLE))", x=node.this),
    exp.StructExtract: _struct_extract,
    exp.Split: _split,
    exp.SplitPart: _split_part,
    exp.Sqrt: _sqrt,
    exp.Substring: _substring,
    exp.Sum: _sum,
    exp.Trim: _trim,
    exp.Trunc: _trunc,
    exp.Upper: _upper,
}

NAMED: Mapping[str, Rule] = {
    "count_star": _count_star,
    "date_part": DATE_PART,
    **NAMED_JSON,
    **NAMED_LISTS,
    **NAMED_MAPS,
    **NAMED_PATTERNS,
    "prefix": _starts("STARTSWITH"),
    "suffix": _starts("ENDSWITH"),
    **NAMED_TIMES,
    **NAMED_WORDS,
    **NAMED_ZONES,
    "__interval": _span,
    "get_current_timestamp": lambda _: exp.CurrentTimestamp(),
    "list_apply": _transform,
    "now": lambda _: exp.CurrentTimestamp(),
    "apply": _transform,
}
