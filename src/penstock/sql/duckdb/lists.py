"""DuckDB's functions of lists and maps, and rows made of lists: ``range`` and ``unnest``."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lazy import exp
from penstock.sql.duckdb.guards import is_text, refused, spark, text_of, unless, whole_number
from penstock.sql.duckdb.rules import Row, Rule, is_absent, is_constant_text
from penstock.sql.duckdb.times import span
from penstock.sql.identifiers import MAINTENANCE, NAMES, PREFIX, fold


def contains(items: exp.Expr, value: exp.Expr) -> exp.Expr:
    """NULLs among the items do not make the answer NULL; to look for NULL does."""
    if isinstance(value, exp.Null):
        raise refused("list_contains of NULL")
    text = "IF(:l IS NULL OR :v IS NULL, NULL, COALESCE(ARRAY_CONTAINS(:l, :v), FALSE))"
    return spark(text, l=items, v=value)


def _length(node: exp.Expr) -> str:
    """Of a text or of a list: only by way of JSON is there one expression for both."""
    if text_of(node.this) is not None:
        return "LENGTH(:x)"
    return (
        "IF(TYPEOF(:x) LIKE 'array%', "
        "JSON_ARRAY_LENGTH(GET_JSON_OBJECT(TO_JSON(NAMED_STRUCT('v', :x)), '$.v')), "
        "LENGTH(CAST(:x AS STRING)))"
    )


def _called_as(name: str) -> Rule:
    """The same arguments of another function."""
    return lambda node: exp.Anonymous(this=name, expressions=[x.copy() for x in node.expressions])


_array = _called_as("ARRAY")


def _concatenation(node: exp.Expr) -> exp.Expr:
    """A NULL is no items."""
    lists = [spark("COALESCE(:l, ARRAY())", l=items) for items in (node.this, *node.expressions)]
    return exp.func("CONCAT", *lists, dialect="databricks")


def _sorted(node: exp.Expr) -> str:
    """NULLs come last, whatever the order is, unless something else is said."""
    first, up = node.args.get("nulls_first"), node.args.get("asc")
    if (first is not None and first.this) or not (up is None or isinstance(up, exp.Boolean)):
        raise refused("list_sort of this form")
    return "ARRAY_SORT(:l)" if up is None or up.this else "SORT_ARRAY(:l, FALSE)"


def _overlap(node: exp.Expr) -> exp.Expr:
    """NULLs are like nothing."""
    a, b = node.this, node.expression
    if isinstance(a, exp.Null) or isinstance(b, exp.Null):
        return spark("CAST(NULL AS BOOLEAN)")
    text = (
        "IF(:a IS NULL OR :b IS NULL, NULL, ARRAYS_OVERLAP(FILTER(:a, e -> e IS NOT NULL), "
        "FILTER(:b, e -> e IS NOT NULL)))"
    )
    return unless("list_has_any", _FLOATS, spark(text, a=a, b=b), a, b)


# Around these the order of a list does not matter, as DuckDB's own differs from run to run.
_ORDERLESS = (
    *(exp.ArrayContains, exp.ArrayMax, exp.ArrayMin, exp.ArraySize, exp.ArraySort, exp.Length),
)
_ORDERLESS_NAMES = ("list_avg", "list_has_all", "list_reverse_sort", "list_sum", "list_unique")


def is_orderless(node: exp.Expr) -> bool:
    """Return whether it stands where the order of its items does not matter."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Filter):
        node, parent = parent, parent.parent
    if isinstance(parent, exp.ArraySort) and any(
        isinstance(parent.args.get(key), exp.Expr) and not isinstance(parent.args[key], exp.Boolean)
        for key in ("asc", "nulls_first")
    ):
        return False
    is_named = isinstance(parent, exp.Anonymous) and parent.name.lower() in _ORDERLESS_NAMES
    return is_named or (isinstance(parent, _ORDERLESS) and parent.this is node)


def _aggregate(node: exp.Expr) -> exp.Expr:
    items, *names = node.expressions
    name = text_of(names[0]) if len(names) == 1 else None
    row = _AGGREGATES.get(name or "")
    if row is None:
        raise refused("list_aggregate of this kind", "list_sum, list_avg, list_min or list_max")
    return row(exp.Anonymous(this=name, expressions=[items.copy()]))


def sliced(node: exp.Expr, part: exp.Expr) -> exp.Expr:
    """``l[a:b]`` of a list or text: from 1, both included, negative bounds from the end."""
    if part.args.get("step"):
        raise refused("a slice with a step")
    items = node.this
    size, slice_ = ("LENGTH", "SUBSTRING") if is_text(items) else ("SIZE", "SLICE")
    first = _bound(node, part.this, size, "1")
    last = _bound(node, part.expression, size, f"{size}(:l)")
    first = f"GREATEST({first}, 1)" if first == "0" or not first.isdigit() else first
    length = f"GREATEST({last} - {first} + 1, 0)"
    text = spark(f"IF(:l IS NULL, NULL, {slice_}(:l, {first}, {length}))", l=items)
    advice = "substring(text, start, length), or (text::VARCHAR)[a:b]"
    return text if is_text(items) else unless("a slice", "string", text, items, advice=advice)


def _bound(node: exp.Expr, bound: exp.Expr | None, size: str, missing: str) -> str:
    if bound is None:
        return missing
    number = whole_number(bound)
    if number is None:
        raise refused(f"the slice {node.sql('duckdb')}")
    return str(number) if number >= 0 else f"({size}(:l) - {-number - 1})"


def item_at(items: exp.Expr, position: int) -> exp.Expr:
    """``l[position]``, counted from 1, negative from the end; NULL beyond the end."""
    if is_text(items):
        raise refused(
            "an item of a text", f"substring(text, {position}, 1)" if position > 0 else ""
        )
    return spark(f"TRY_ELEMENT_AT(:l, {position})", l=items)


def _list_slice(node: exp.Expr) -> exp.Expr:
    if len(node.expressions) != 3:
        raise refused("list_slice of this form")
    items, start, end = node.expressions
    part = exp.Slice(this=start, expression=end)
    return sliced(exp.Bracket(this=items, expressions=[part]), part)


def _map(node: exp.Expr) -> exp.Expr:
    """``MAP {'k': 1}``."""
    parts: list[exp.Expr] = []
    pairs = node.this.expressions if isinstance(node.this, exp.Struct) else [None]
    for pair in pairs:
        if not isinstance(pair, exp.PropertyEQ):
            raise refused("MAP of this form", "MAP {'key': value}")
        key = pair.this
        name = exp.Literal.string(key.name) if isinstance(key, exp.Identifier) else key.copy()
        parts += [name, pair.expression.copy()]
    return exp.Anonymous(this="MAP", expressions=parts)


def _map_of_lists(node: exp.Expr) -> exp.Expr:
    keys, values = node.args.get("keys"), node.args.get("values")
    if keys is None and values is None:
        return exp.Anonymous(this="MAP")
    if keys is None or values is None:
        raise refused("MAP of this form", "MAP {'key': value}, or MAP(keys, values)")
    return spark("MAP_FROM_ARRAYS(:k, :v)", k=keys, v=values)


_SERIES = (
    "CASE WHEN {a} {compared} {last} THEN SEQUENCE({a}, {last}, {step}L) WHEN {a} IS NOT NULL "
    "AND {last} IS NOT NULL THEN CAST(ARRAY() AS ARRAY<BIGINT>) END"
)
_A, _B = "CAST(:a AS TIMESTAMP_NTZ)", "CAST(:b AS TIMESTAMP_NTZ)"


def _series_items(node: exp.Expr) -> exp.Expr:
    start, end, step = (node.args.get(key) for key in ("start", "end", "step"))
    name, is_exclusive = _series_name(node), bool(node.args.get("is_end_exclusive"))
    if start is None or end is None:
        raise refused(f"{name} of this form")
    interval = None if step is None else span(step)
    if interval is not None:
        text, kinds = _moments(name, interval, is_exclusive=is_exclusive), "timestamp|string"
    else:
        size = 1 if step is None else whole_number(step)
        if not size:
            raise refused(f"{name} with this step")
        short = (1 if size > 0 else -1) if is_exclusive else 0
        text = _SERIES.format(
            a="CAST(:a AS BIGINT)",
            compared="<=" if size > 0 else ">=",
            last=f"(CAST(:b AS BIGINT) - {short})",
            step=size,
        )
        kinds = "float|double|decimal%|string|date|timestamp%"
    return unless(name, kinds, spark(text, a=start, b=end), start, end)


def _moments(name: str, interval: tuple[str, exp.Expr | None], *, is_exclusive: bool) -> str:
    """By months DuckDB continues from the day that the month before had, Spark from the first."""
    step, amount = interval
    if amount is not None or "'-" in step or "'0'" in step:
        raise refused(f"{name} with this step")
    text = f"IF({_A} <= {_B}, SEQUENCE({_A}, {_B}, {step}), CAST(ARRAY() AS ARRAY<TIMESTAMP_NTZ>))"
    if is_exclusive:
        text = f"FILTER({text}, e -> e < {_B})"
    if "MONTH" in step or "YEAR" in step:
        text = f"IF(DAY({_A}) > 28, RAISE_ERROR('a series by months from that day'), {text})"
    return f"IF(:a IS NULL OR :b IS NULL, NULL, {text})"


def _series_name(node: exp.Expr) -> str:
    return "range" if node.args.get("is_end_exclusive") else "generate_series"


def _table(node: exp.Expr) -> exp.Expr:
    """A table, a file, or a function that stands for a table."""
    source = node.this
    if isinstance(source, exp.Identifier):
        # DuckDB takes a name for a file when there is no such table.
        is_file = node.name.lower().endswith((".parquet", ".csv", ".json"))
        return _file(node, node.name) if is_file and not node.args.get("db") else node
    if isinstance(source, exp.ReadParquet) and len(source.expressions) == 1:
        path = text_of(source.expressions[0])
        if path is not None:
            return _file(node, path)
    if isinstance(source, exp.Anonymous) and fold(source.name) in _OF_LAKES:
        return node
    if isinstance(source, exp.GenerateSeries):
        return _rows(_series_items(source), _series_name(source), node)
    raise refused(f"the table function {source.name or source.key}")


_OF_LAKES = NAMES | MAINTENANCE | {f"{PREFIX}{name}" for name in MAINTENANCE}


def _of_lake(node: exp.Expr) -> exp.Expr:
    """A function of the lake, which is called as in Spark's dialect, where a table stands."""
    if not isinstance(node.parent, exp.Table):
        raise refused(f"{fold(node.name)} as a value", f"FROM {fold(node.name)}(...)")
    return node


def _named_argument(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.Anonymous) or fold(node.parent.name) not in _OF_LAKES:
        raise refused(f"the argument {node.this.name} by its name")
    return node


def _file(node: exp.Expr, path: str) -> exp.Expr:
    """Parquet holds its types; ``**`` and directories ``key=value`` Spark reads otherwise."""
    if not path.lower().endswith(".parquet") or "**" in path or "=" in path:
        raise refused(f"the file {path}")
    name = path.rsplit("/", 1)[-1].removesuffix(".parquet")
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    parquet, file = exp.to_identifier("parquet"), exp.to_identifier(path, quoted=True)
    return exp.Table(this=file, db=parquet, alias=alias.copy())


def _unnest(node: exp.Expr) -> exp.Expr:
    """In a SELECT it is EXPLODE, which sqlglot writes; as a table its column is ``unnest``."""
    if not isinstance(node.parent, exp.From | exp.Join):
        return node
    if len(node.expressions) != 1 or node.args.get("offset"):
        raise refused("unnest of this form")
    return _rows(node.expressions[0], "unnest", node)


def _rows(items: exp.Expr, name: str, node: exp.Expr) -> exp.Expr:
    """A row for each item, in one column called ``name`` if nothing else is said.

    sqlglot writes what is joined like that as LATERAL VIEW.
    """
    join, alias = node.parent, node.args.get("alias")
    if isinstance(join, exp.Join) and (join.args.get("side") or join.args.get("on")):
        raise refused(f"a join with {name} that has a side or a condition")
    columns = [] if alias is None else alias.args.get("columns") or []
    if len(columns) > 1:
        raise refused(f"{name} as a table of several columns")
    table = exp.to_identifier(name) if alias is None or alias.this is None else alias.this.copy()
    shown = [column.copy() for column in columns] or [exp.to_identifier(name)]
    return exp.Unnest(expressions=[items.copy()], alias=exp.TableAlias(this=table, columns=shown))


def _explosion(node: exp.Expr) -> exp.Expr:
    if node.expressions or isinstance(node.this, exp.Struct | exp.Null):
        raise refused("unnest of this form")
    if isinstance(node.parent, exp.Func | exp.Binary | exp.Unary | exp.Predicate | exp.Case):
        advice = "SELECT x + 1 FROM (SELECT unnest(l) AS x) for SELECT unnest(l) + 1"
        raise refused("unnest inside of an expression", advice)
    return node


def _written_list(node: exp.Expr) -> exp.Expr:
    (only,) = node.expressions if len(node.expressions) == 1 else (None,)
    if isinstance(only, exp.Query):
        raise refused("a list of a subquery's rows")
    return _comprehended(only) if isinstance(only, exp.Comprehension) else _array(node)


def _comprehended(node: exp.Expr) -> exp.Expr:
    """``[y + 1 FOR y IN l IF y > 1]``."""
    name, items, condition = node.expression, node.args["iterator"], node.args.get("condition")
    if node.args.get("position") is not None or not isinstance(name, exp.Identifier):
        raise refused("a list comprehension of this form")
    for function, body in (("FILTER", condition), ("TRANSFORM", node.this)):
        if body is not None:
            step = exp.Lambda(this=body.copy(), expressions=[name.copy()])
            items = exp.Anonymous(this=function, expressions=[items.copy(), step])
    result: exp.Expr = items
    return result


_ITEMS = "FILTER(:l, e -> e IS NOT NULL)"
_NOT_AS_ITEMS = (
    "array<float>|array<double>|array<binary>|array<timestamp>|array<struct%|array<array%|"
    "array<map%|array<boolean>"
)
_NOT_WHOLE = "array<float>|array<double>|array<decimal%|array<string>|array<struct%|array<boolean>"
_NOT_NUMBERS = "array<string>|array<boolean>|array<date>|array<timestamp%|array<float>"
_FLOATS = "array<float>|array<double>|array<struct%|array<array%"
_NO_LENGTH = "binary|int|bigint|double|struct%|map%|timestamp%|date|array<binary>|array<variant>"
_NESTED = "array<struct%|array<array%|array<map%"  # in which NULLs have another place

_SUM = Row(
    "list_sum(l)",
    None,
    f"IF(SIZE({_ITEMS}) > 0, AGGREGATE({_ITEMS}, CAST(0 AS DECIMAL(38, 0)), "
    "(s, e) -> CAST(s + CAST(e AS DECIMAL(38, 0)) AS DECIMAL(38, 0))), NULL)",
    _NOT_WHOLE,
)
_AVG = Row(
    "list_avg(l)",
    None,
    f"IF(SIZE({_ITEMS}) > 0, AGGREGATE({_ITEMS}, CAST(0 AS DOUBLE), "
    f"(s, e) -> s + CAST(e AS DOUBLE), s -> s / SIZE({_ITEMS})), NULL)",
    _NOT_NUMBERS,
)
_MAX = Row("list_max(l)", exp.ArrayMax, "ARRAY_MAX(:l)", _NESTED)
_MIN = Row("list_min(l)", exp.ArrayMin, "ARRAY_MIN(:l)", _NESTED)
_COUNT = Row("count(l)", None, f"IF(:l IS NULL, NULL, CAST(SIZE({_ITEMS}) AS BIGINT))")
_AGGREGATES: Mapping[str, Row] = {
    "sum": _SUM, "avg": _AVG, "mean": _AVG, "max": _MAX, "min": _MIN, "count": _COUNT,
}  # fmt: skip

LISTS = (
    *(_SUM, _AVG, _MAX, _MIN),
    Row("flatten(l)", exp.Flatten, "FLATTEN(FILTER(:l, e -> e IS NOT NULL))"),
    Row("length(x)", exp.Length, _length, _NO_LENGTH),
    Row("list_aggregate|list_aggr|array_aggregate(l, ...)", None, _aggregate),
    Row("list_append(l, v)", exp.ArrayAppend, "CONCAT(COALESCE(:l, ARRAY()), ARRAY(:v))"),
    Row("list_apply|apply", None, _called_as("TRANSFORM")),
    Row("list_concat", exp.ArrayConcat, _concatenation),
    Row("list_contains", exp.ArrayContains, lambda node: contains(node.this, node.expression)),
    Row(  # without NULLs
        "list_distinct(l)",
        exp.ArrayDistinct,
        f"ARRAY_DISTINCT({_ITEMS})",
        forms={"": is_orderless},
        otherwise="the order of list_distinct; write list_sort(list_distinct(l))",
    ),
    *(
        Row(
            "list_has_all(a, b)",
            node,
            "IF(:a IS NULL OR :b IS NULL, NULL, "
            "SIZE(ARRAY_EXCEPT(FILTER(:b, e -> e IS NOT NULL), :a)) = 0)",
            _FLOATS,
            checked="ab",
        )
        for node in (exp.ArrayContainsAll, None)
    ),
    Row("list_has_any", exp.ArrayOverlaps, _overlap),
    Row("list_position(l, v)", None, "CAST(NULLIF(ARRAY_POSITION(:l, :v), 0) AS INT)"),
    # sqlglot has the arguments in DuckDB's order or turned round.
    Row("list_prepend(l, v)", exp.ArrayPrepend, "CONCAT(ARRAY(:v), COALESCE(:l, ARRAY()))"),
    Row("list_reverse(l)", None, "REVERSE(:l)"),
    Row("list_slice", None, _list_slice),
    Row("list_sort(l)", exp.ArraySort, _sorted, _NESTED),
    Row("list_unique(l)", None, f"IF(:l IS NULL, NULL, SIZE(ARRAY_DISTINCT({_ITEMS})))"),
    Row("list_value", None, _array),
    Row(
        "array_length(l)",
        exp.ArraySize,
        "IF(:l IS NULL, NULL, SIZE(:l))",
        forms={"expression": is_absent},
        otherwise="array_length of a dimension",
    ),
    Row(  # NULLs are left out
        "array_to_string(l, s)",
        exp.ArrayToString,
        f"CASE WHEN SIZE({_ITEMS}) > 0 THEN ARRAY_JOIN(TRANSFORM(:l, e -> CAST(e AS STRING)), :s) "
        "WHEN SIZE(:l) = 0 THEN '' END",
        _NOT_AS_ITEMS,
        forms={"expression": is_constant_text, "null": is_absent},
    ),
    Row("cardinality(m)", None, "IF(:m IS NULL, NULL, SIZE(MAP_KEYS(:m)))"),
    Row("map", exp.Map, _map_of_lists),
    Row("map_contains(m, k)", None, "MAP_CONTAINS_KEY(:m, :k)"),
    Row("map_entries(m)", None, "MAP_ENTRIES(:m)"),
    Row(
        "map_extract(m, k)",
        None,
        "IF(MAP_CONTAINS_KEY(:m, :k), ARRAY(TRY_ELEMENT_AT(:m, :k)), SLICE(MAP_VALUES(:m), 1, 0))",
    ),
    Row("map_extract_value(m, k)", None, "TRY_ELEMENT_AT(:m, :k)"),
    Row("map_from_entries(m)", exp.MapFromEntries, "MAP_FROM_ENTRIES(:m)"),
    Row("map_keys(m)", exp.MapKeys, "MAP_KEYS(:m)"),
    Row("map_values(m)", None, "MAP_VALUES(:m)"),
    Row("to_map", exp.ToMap, _map),
    Row("array", exp.Array, _written_list),
    Row("", exp.Comprehension),  # for `_written_list`, which is around it
    Row(  # a list of BIGINT; of moments, of TIMESTAMP; as a table it is for `_table`
        "generate_series|range",
        exp.GenerateSeries,
        lambda node: node if isinstance(node.parent, exp.Table) else _series_items(node),
    ),
    Row("", exp.Kwarg, _named_argument),
    Row("read_parquet", exp.ReadParquet),  # for `_table`
    Row("", exp.Table, _table),
    Row("unnest", exp.Unnest, _unnest),
    Row("unnest", exp.Explode, _explosion),
)
OF_LAKES: Mapping[str, Rule] = dict.fromkeys(_OF_LAKES, _of_lake)
