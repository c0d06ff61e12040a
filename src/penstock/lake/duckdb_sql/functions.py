"""DuckDB's functions that Spark has, each with what has to hold for it to mean the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from penstock.lake.duckdb_sql.guards import refused, spark, text_of, unless, whole_number
from penstock.lake.duckdb_sql.operators import NOT_AS_TEXT

Rule = Callable[[exp.Expr], exp.Expr]

_FIELDS = {"year", "month", "day", "hour", "minute", "quarter", "week"}
_TRUNCATIONS = {"year", "quarter", "month", "week"}


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
    parts = [unless("concatenation", NOT_AS_TEXT, one.copy(), one) for one in node.expressions]
    filled = [spark("COALESCE(CAST(:x AS STRING), '')", x=one) for one in parts]
    return exp.func("CONCAT", *filled, dialect="databricks")


def _concat_ws(node: exp.Expr) -> exp.Expr:
    for one in node.expressions:
        if isinstance(one, exp.Array):
            raise refused("concat_ws of a list")
    separator, *rest = node.expressions
    parts = [unless("concatenation", NOT_AS_TEXT, one.copy(), one) for one in rest]
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
    digits = node.args.get("decimals")
    if digits is None:
        return node
    if (whole_number(digits) if digits is not None else 0) is None:
        raise refused("round to a computed number of digits")
    return unless("round", "float|double", node.copy(), node.this)


def _whole(name: str) -> Rule:
    """floor and ceil of DOUBLE are DOUBLE, which Spark's BIGINT cannot hold all of."""

    def rule(node: exp.Expr) -> exp.Expr:
        return spark(
            "IF(TYPEOF(:x) IN ('float', 'double') AND NOT ABS(:x) < 9e15D, "
            f"RAISE_ERROR('{name} of a number that large'), {name}(:x))",
            x=node.this,
        )

    return rule


def _pow(node: exp.Expr) -> exp.Expr:
    return spark("POWER(CAST(:a AS DOUBLE), :b)", a=node.this, b=node.expression)


def _sqrt(node: exp.Expr) -> exp.Expr:
    text = "IF(:x < 0, RAISE_ERROR('square root of a negative number'), SQRT(:x))"
    return spark(text, x=node.this)


def _length(node: exp.Expr) -> exp.Expr:
    return spark("LENGTH(:x)", x=node.this)


def _trim(node: exp.Expr) -> exp.Expr:
    if node.expression is not None:
        raise refused("trim of given characters")
    return node


def _contains_item(node: exp.Expr) -> exp.Expr:
    """NULLs among the items do not make the answer NULL."""
    if not isinstance(node.expression, exp.Literal):
        raise refused("list_contains of a computed value")
    text = "IF(:l IS NULL, NULL, COALESCE(ARRAY_CONTAINS(:l, :v), FALSE))"
    return spark(text, l=node.this, v=node.expression)


def _size(node: exp.Expr) -> exp.Expr:
    if node.expression is not None:
        raise refused("array_length of a dimension")
    return spark("IF(:l IS NULL, NULL, SIZE(:l))", l=node.this)


def _date_part(node: exp.Expr) -> exp.Expr:
    field, moment = node.expressions
    if (text_of(field) or "").lower() not in _FIELDS:
        raise refused(f"date_part of {field.sql('duckdb')}")
    return spark(f"EXTRACT({field.name.upper()} FROM :m)", m=moment)


def _extract(node: exp.Expr) -> exp.Expr:
    field = node.this.name.lower()
    if field not in _FIELDS:
        raise refused(f"extract of {field}")
    return spark(f"EXTRACT({field.upper()} FROM :m)", m=node.expression)


def _field(name: str) -> Rule:
    return lambda node: spark(f"EXTRACT({name} FROM :m)", m=node.this)


def _date_trunc(node: exp.Expr) -> exp.Expr:
    """A TIMESTAMP, of a DATE as well."""
    unit = (node.text("unit") or "").lower()
    if unit == "day":
        text = "CAST(CAST(:m AS DATE) AS TIMESTAMP_NTZ)"
    elif unit in _TRUNCATIONS:
        text = f"CAST(TRUNC(CAST(:m AS DATE), '{unit.upper()}') AS TIMESTAMP_NTZ)"
    else:
        raise refused(f"date_trunc to {unit}")
    return unless("date_trunc", "timestamp|string", spark(text, m=node.this), node.this)


def _date_diff(node: exp.Expr) -> exp.Expr:
    """Counts the midnights between; Spark counts full days."""
    if node.text("unit").lower() != "day":
        raise refused(f"date_diff in {node.text('unit').lower() or 'this unit'}")
    text = "DATE_DIFF(CAST(:b AS DATE), CAST(:a AS DATE))"
    return unless("date_diff", "timestamp", spark(text, a=node.expression, b=node.this), node.this)


def _count_star(_: exp.Expr) -> exp.Expr:
    return exp.Count(this=exp.Star())


def _span(node: exp.Expr) -> exp.Expr:
    """An interval: only a sum or a difference takes it."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if not isinstance(parent, exp.Add | exp.Sub):
        raise refused("an interval by itself")
    return node


def _transform(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="TRANSFORM", expressions=[one.copy() for one in node.expressions])


def _array(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="ARRAY", expressions=[one.copy() for one in node.expressions])


def _struct_extract(node: exp.Expr) -> exp.Expr:
    value, key = node.this, node.expression
    if text_of(key) is None:
        raise refused("struct_extract by position")
    return spark(f"(:s).{exp.to_identifier(key.name, quoted=True).sql('databricks')}", s=value)


def _regexp_like(node: exp.Expr) -> exp.Expr:
    pattern = _pattern(node.expression)
    if node.args.get("flag"):
        raise refused("regexp_matches with options")
    return spark("(:x RLIKE :p)", x=node.this, p=exp.Literal.string(pattern))


def _full_match(node: exp.Expr) -> exp.Expr:
    value, pattern = node.this, node.expression
    whole = exp.Literal.string(rf"\A(?:{_pattern(pattern)})\z")
    return spark("(:x RLIKE :p)", x=value, p=whole)


def _regexp_extract(node: exp.Expr) -> exp.Expr:
    pattern, group = exp.Literal.string(_pattern(node.expression)), node.args.get("group")
    if node.args.get("parameters") or (group is not None and whole_number(group) is None):
        raise refused("regexp_extract with options")
    text = f"REGEXP_EXTRACT(:x, :p, {whole_number(group) or 0})"
    return spark(text, x=node.this, p=pattern)


def _pattern(node: exp.Expr) -> str:
    """What RE2 and Java read alike: no classes by name, no flags, no lookarounds."""
    text = text_of(node)
    if text is None or any(mark in text for mark in ("(?", "[[", "\\p", "\\P", "\\C", "\\Q", "&&")):
        raise refused("a regular expression that is computed or of special form")
    return text


def _pad(node: exp.Expr) -> exp.Expr:
    if not text_of(node.args.get("fill_pattern")) or (whole_number(node.expression) or -1) < 0:
        raise refused("padding of this kind")
    return node


def _named(*names: str) -> dict[type[exp.Expr], Rule]:
    """Classes of sqlglot; one that this version of it has not is no loss."""
    found = (getattr(exp, name, None) for name in names)
    return {kind: _same for kind in found if kind is not None}


FUNCTIONS: Mapping[type[exp.Expr], Rule] = {
    **_named(
        *("Abs", "Sum", "Min", "Max", "Count", "Upper", "Lower", "Coalesce", "Nullif", "Greatest"),
        *("Least", "RowNumber", "Rank", "DenseRank", "Ntile", "PercentRank", "CumeDist", "Lag"),
        *("Lead", "FirstValue", "LastValue", "Replace", "StrPosition", "Contains", "StartsWith"),
        *("EndsWith", "Repeat", "LogicalAnd", "LogicalOr", "Exp", "Stddev", "StddevSamp"),
        *("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LastDay", "Unnest"),
        *("StddevPop", "Variance", "VariancePop", "CurrentDate", "Struct"),
        *("Transform", "ArrayFilter", "Explode", "SplitPart", "CountIf"),
    ),
    exp.ArrayContains: _contains_item,
    exp.ArraySize: _size,
    exp.Array: _array,
    exp.Avg: _avg,
    exp.Ceil: _whole("CEIL"),
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.DateDiff: _date_diff,
    exp.Day: _field("DAY"),
    exp.Extract: _extract,
    exp.Floor: _whole("FLOOR"),
    exp.Hour: _field("HOUR"),
    exp.Left: _ends,
    exp.Length: _length,
    exp.Minute: _field("MINUTE"),
    exp.Month: _field("MONTH"),
    exp.Pad: _pad,
    exp.Pow: _pow,
    exp.Quarter: _field("QUARTER"),
    exp.Right: _ends,
    exp.Round: _round,
    exp.RegexpExtract: _regexp_extract,
    exp.RegexpFullMatch: _full_match,
    exp.RegexpLike: _regexp_like,
    exp.Sign: lambda node: spark("CAST(SIGN(:x) AS INT)", x=node.this),
    exp.DayOfWeek: lambda node: spark("(EXTRACT(DOW FROM :m) - 1)", m=node.this),
    exp.DayOfWeekIso: _field("DOW_ISO"),
    exp.IsNan: lambda node: spark("IF(:x IS NULL, NULL, ISNAN(:x))", x=node.this),
    exp.IsInf: lambda node: spark("(ABS(:x) = CAST('Infinity' AS DOUBLE))", x=node.this),
    exp.StructExtract: _struct_extract,
    exp.Week: _field("WEEK"),
    exp.Sqrt: _sqrt,
    exp.Substring: _substring,
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _date_trunc,
    exp.Trim: _trim,
    exp.Year: _field("YEAR"),
}

NAMED: Mapping[str, Rule] = {
    "count_star": _count_star,
    "date_part": _date_part,
    "list_value": _array,
    "__interval": _span,
    "list_apply": _transform,
    "apply": _transform,
}
