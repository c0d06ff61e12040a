"""DuckDB's SQL as Spark's: a tree whose every node is known to mean the same, or a refusal.

sqlglot writes something for whatever it reads, be it the same or not (``l[-1]`` becomes
``l[-2]``, ``QUALIFY`` with ``*`` adds a column), so nothing passes that is not in the tables of
`penstock.sql.duckdb.functions` and here. Where the meaning hangs on a type that the text does
not tell, the text asks Spark: ``typeof`` is decided before the query runs. The other way round,
a query of Spark's is written for DuckDB where this translation gives it back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from penstock.errors import UnsupportedFeature
from penstock.lazy import exp
from penstock.sql.duckdb import guards, spark_forms
from penstock.sql.duckdb.casts import CASTS
from penstock.sql.duckdb.clauses import CLAUSES
from penstock.sql.duckdb.forms import Columns, nothing_known, written_out
from penstock.sql.duckdb.functions import FUNCTIONS, NAMED, OPERATORS
from penstock.sql.duckdb.guards import called, in_order, placed, refused, unguarded
from penstock.sql.duckdb.lists import OF_LAKES
from penstock.sql.duckdb.results import RESULTS, check_positions
from penstock.sql.duckdb.rules import Rule
from penstock.sql.duckdb.text import named, readable
from penstock.sql.duckdb.times import mark_intervals
from penstock.sql.identifiers import fold
from penstock.sql.text import Unreadable, parse_expression, parse_query

# Databricks' dialect is Spark's for what passes here, and knows QUALIFY, which Spark 4 has.
_SPARK, _DUCKDB = "databricks", "duckdb"

# What means the same in both and has nothing to check.
_SAME: tuple[type[exp.Expr], ...] = (
    exp.Alias, exp.And, exp.Boolean, exp.Column, exp.Cube,
    exp.DataType, exp.DataTypeParam, exp.Dot, exp.Exists, exp.From,
    exp.Group, exp.GroupingSets, exp.Having, exp.HistoricalData, exp.Identifier,
    exp.If, exp.Is, exp.Mul, exp.Neg, exp.Not, exp.Null,
    exp.Or, exp.Order, exp.Paren, exp.Qualify, exp.Rollup, exp.Subquery, exp.TableAlias, exp.Tuple,
    exp.Var, exp.Where, exp.With, exp.IgnoreNulls, exp.RespectNulls, exp.PropertyEQ,
    exp.Placeholder,
)  # fmt: skip

_RULES: Mapping[type[exp.Expr], Rule] = {
    **{kind: lambda node: node for kind in _SAME},
    **OPERATORS,
    **CLAUSES,
    **RESULTS,
    **FUNCTIONS,
    **CASTS,
}


def translate(
    text: str,
    own: Collection[str] = (),
    *,
    asof: bool = False,
    expression: bool = False,
    columns: Columns = nothing_known,
) -> str:
    """Spark's text for a query that a user wrote for DuckDB, its columns named as in DuckDB.

    With ``expression`` it is a condition or a value. ``own`` are macros (``main.f``, folded)
    whose schema has to stay. ``asof`` keeps ASOF JOIN as it is, for who knows Spark's form.
    ``columns`` are those of a table, for ``* REPLACE`` and the like.
    Raises UnsupportedFeature, whose ``data["start"]`` is the place in ``text`` and which names a
    function that is not known, or may be a macro, as ``data["function"]``; Unreadable for what
    cannot be parsed.
    """
    ready = named(text, own)
    parse = parse_expression if expression else parse_query
    try:
        return to_spark(parse(ready.text, _DUCKDB), asof=asof, columns=columns)
    except Unreadable as error:
        raise Unreadable(str(error), ready.back(error.at)) from None
    except UnsupportedFeature as error:
        error.data["start"] = ready.back(int(error.data.get("start", 0)))
        raise


def to_spark(
    tree: exp.Expr, *, asof: bool = False, strict: bool = False, columns: Columns = nothing_known
) -> str:
    """The text for Spark. The tree is changed. ``strict`` refuses by type what else depends on it.

    Raises UnsupportedFeature naming what it is, with its offset as ``data["start"]``.
    """
    tree = written_out(tree, columns)
    mark_intervals(tree)
    volatile = len(list(_volatile(tree)))
    for node in reversed(list(tree.walk(bfs=False))):
        if asof and isinstance(node, exp.Join) and node.args.get("method") == "ASOF":
            continue
        try:
            new = _translated(node, volatile=volatile > 0)
        except UnsupportedFeature as error:
            raise placed(error, node) from None
        if new is not node:
            tree = guards.substitute(tree, node, new)
    tree = guards.resolve_types(tree, strict=strict)
    for query in list(tree.find_all(exp.Query)):
        check_positions(query)
    for key in tree.find_all(exp.Ordered):
        if fold(key.this.name) != "all":
            key.set("this", in_order("ORDER BY", key.this))
    return tree.sql(_SPARK)


# What to write for functions that have no counterpart.
_INSTEAD = {
    "age": "date_diff('day', b, a)",
    "approx_count_distinct": "count(DISTINCT x)",
    "approx_quantile": "quantile_cont(x, 0.5)",
    "current_database": "the name as a text",
    "current_schema": "the name as a text",
    "hash": "md5(x::VARCHAR)",
    "histogram": "GROUP BY x with count(*)",
    "row": "{'a': x, 'b': y}",
    "stats": "FROM table_info(), or FROM ducklake_list_files('lake', 't')",
}


def _translated(node: exp.Expr, *, volatile: bool) -> exp.Expr:
    """The node in Spark's SQL. Raises UnsupportedFeature."""
    before = len(list(_volatile(node))) if volatile else 0
    kept = node.copy() if before else node
    new = _rule(node)(node)
    if before == 0 or len(list(_volatile(new))) <= before:
        return new
    return _once(kept, node.parent)


_VALUE = "penstock_value"


def _once(node: exp.Expr, parent: exp.Expr | None) -> exp.Expr:
    """Translate a node whose rule names an operand several times so that it is computed once:
    ``random()`` would be another number each time.
    """
    operands = [
        child for child in node.iter_expressions() if next(_volatile(child), None) is not None
    ]
    if len(operands) != 1:
        raise refused(f"{called(node)} of several values by chance", "each in an inner SELECT")
    value: exp.Expr = exp.column(_VALUE)
    if guards.is_double(operands[0]):
        value = guards.known_as(guards.DOUBLE, value)
    operand = operands[0].copy()
    operands[0].replace(value)
    node.parent = parent
    inner = _rule(node)(node)
    step = exp.Lambda(this=inner.copy(), expressions=[exp.to_identifier(_VALUE)])
    result = guards.spark("ELEMENT_AT(TRANSFORM(ARRAY(:x), :f), 1)", x=operand, f=step)
    kind = guards.kind_of(inner)
    return result if kind is None else guards.known_as(kind, result)


def _volatile(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Find the calls whose value is another each time; TYPEOF computes none."""
    return (
        call for call in tree.find_all(exp.Rand, exp.Uuid) if call.find_ancestor(exp.Typeof) is None
    )


def _rule(node: exp.Expr) -> Rule:
    if isinstance(node, exp.Anonymous):
        if spark_forms.marker(node) is not None:
            return lambda marker: marker
        name = str(node.name).lower()
        rule = NAMED.get(name) or OF_LAKES.get(name)
    else:
        rule = _RULES.get(type(node))
    if rule is not None:
        return rule
    if not isinstance(node, exp.Func):
        raise refused(f"{node.key.upper()} ({node.sql('duckdb')[:60]})")
    name = node.name if isinstance(node, exp.Anonymous) else called(node)
    error = refused(f"the function {name}", _INSTEAD.get(name.lower(), ""))
    error.data["function"] = name
    raise error


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A query in DuckDB's SQL. ``guarded`` is the same in Spark's, which fails when it is analysed
    where types make them differ; ``None`` where no type does. ``has_forms``: parts of it come back
    in another form (`spark_forms`).
    """

    text: str
    guarded: str | None
    has_forms: bool = False


def in_duckdb(text: str) -> Counterpart | None:
    """A query of Spark's in DuckDB's SQL; ``None`` where that is not known to be the same.

    The proof goes round: sqlglot writes the query for DuckDB, and the strict translation of that
    has to give back the query that one began with.
    """
    try:
        tree, forms = spark_forms.marked(parse_query(text))
        written = tree.sql(_DUCKDB, comments=False)
        guarded = to_spark(parse_query(readable(written, set()), _DUCKDB), strict=True)
        back = parse_query(guarded, _SPARK)
        bare = unguarded(back)
        if bare.sql(_SPARK, comments=False).lower() != tree.sql(_SPARK, comments=False).lower():
            return None
        if forms:
            written = spark_forms.for_duckdb(parse_query(written, _DUCKDB), forms).sql(_DUCKDB)
            guarded = spark_forms.for_spark(back.copy(), forms).sql(_SPARK)
    except (Unreadable, UnsupportedFeature, ValueError):
        return None
    is_plain = bare == back and not forms
    return Counterpart(written, None if is_plain else guarded, bool(forms))


def checked(text: str, macros: set[str]) -> tuple[str, exp.Expr]:
    """A query of DuckDB's as it is to be stored, and its tree, once Penstock can read it as well.

    ``macros`` are names of the lake's own (``main.f``), which it may call. Raises
    UnsupportedFeature naming what is not known, Unreadable for what is not SQL.
    """
    tree = parse_query(readable(text, macros), _DUCKDB)
    to_spark(tree.copy())
    return tree.sql(_DUCKDB, comments=False), tree
