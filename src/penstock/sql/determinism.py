"""Tell what the rows of a query follow from: single rows, or functions whose value may differ.

Name the functions whose value may differ although their arguments do not.

Some have another value at each call, others at each run: of the clock, the user, or the file that
is being read. Both dialects' names.

Tell whether a query computes each row from one row of its one table and nothing else.

Then the query over some of the table's rows makes just the rows that these give, and a model may
read what changed in place of all.
Doubt is a no: what is not known to be row by row is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from penstock.lazy import exp
from penstock.sql.identifiers import fold
from penstock.sql.tables import Analysis
from penstock.sql.tokens import NAME, NOT_CALLED, WORD, Token
from penstock.sql.trust import FUNCTIONS

_EACH_CALL = """
    gen_random_uuid monotonically_increasing_id nextval rand randn random randstr shuffle
    spark_partition_id uniform uuid uuidv4 uuidv7
"""
_EACH_RUN = """
    curdate current_date current_localtime current_localtimestamp current_time current_timestamp
    current_user get_current_time get_current_timestamp getenv localtime localtimestamp now
    session_user today transaction_timestamp txid_current unix_timestamp user
"""
_OF_FILES_AND_JAVA = """
    input_file_block_length input_file_block_start input_file_name java_method reflect try_reflect
"""
EACH_CALL = frozenset(_EACH_CALL.split())
#: what differs from run to run for the same row
VOLATILE = EACH_CALL | frozenset(_EACH_RUN.split())
#: what tells a query more than rows: which file they are in, or whatever Java answers
OPAQUE = frozenset(_OF_FILES_AND_JAVA.split())
#: those that may be written without brackets
CALLED_WITHOUT_BRACKETS = frozenset(
    {
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
        *("current_user", "session_user"),
    }
)
_SAMPLES = frozenset({"TABLESAMPLE", "SAMPLE"})


def volatile_calls(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the names of the volatile and opaque functions that a text calls, and of samples."""
    for token, after in pairwise((*tokens, *tokens[-1:])):
        name = fold(token.value)
        if token.kind == WORD:
            is_volatile = name in CALLED_WITHOUT_BRACKETS or token.upper in _SAMPLES
        else:
            is_volatile = False
        if token.kind in {WORD, NAME} and after.text == "(":
            is_volatile = is_volatile or name in VOLATILE | OPAQUE
        if is_volatile:
            yield token


# Spark 4.3's aggregates: each was asked for in a WHERE, which refuses them.
_AGGREGATE_NAMES = """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set collect_union corr count count_if
    count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis
    last last_value listagg max max_by mean measure median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness
    some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg
    theta_union_agg try_avg try_sum tuple_intersection_agg_double tuple_intersection_agg_integer
    tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
    tuple_union_agg_integer var_pop var_samp variance vector_avg vector_sum
"""
AGGREGATES = frozenset(_AGGREGATE_NAMES.split())
# Parts of a SELECT that look at several rows, or at others than its table's: classes of the tree.
_CLAUSES: Mapping[str, str] = {
    "SetOperation": "a set operation puts several queries together",
    "Join": "a join looks at several tables",
    "Lateral": "LATERAL looks at other rows",
    "Group": "GROUP BY looks at several rows",
    "Having": "HAVING looks at several rows",
    "Qualify": "QUALIFY looks at several rows",
    "Distinct": "DISTINCT looks at several rows",
    "Window": "a window looks at several rows",
    "AggFunc": "an aggregate looks at several rows",
    "Limit": "LIMIT chooses among rows",
    "Offset": "OFFSET chooses among rows",
    "Fetch": "FETCH chooses among rows",
    "TableSample": "TABLESAMPLE chooses rows by chance",
    "Pivot": "PIVOT looks at several rows",
    "Exists": "a subquery in a condition reads a table of its own",
    "Values": "VALUES has rows of its own",
}


def why_not(analysis: Analysis) -> str | None:
    """Return why the query is not known to be row by row over one table; ``None`` where it is."""
    return next(_reasons(analysis), None)


def _reasons(analysis: Analysis) -> Iterator[str]:
    yield from _of_words(analysis)
    for node in analysis.tree.walk():
        for kind in type(node).__mro__:
            if kind.__name__ in _CLAUSES:
                yield _CLAUSES[kind.__name__]
        if isinstance(node, exp.With) and node.args.get("recursive"):
            yield "a recursive CTE looks at several rows"
        if isinstance(node, exp.Query) and not _is_source(node):
            yield "a subquery in an expression reads a table of its own"
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            yield "a subquery in a condition reads a table of its own"
    if len(analysis.tables) != 1 or analysis.files:
        yield f"it reads {len(analysis.tables) + len(analysis.files)} tables, and not just one"


def _is_source(query: exp.Expr) -> bool:
    """Return whether a query is the whole, or is read as a table."""
    above: exp.Expr | None = query.parent
    while isinstance(above, exp.Subquery | exp.Paren):
        above = above.parent
    return above is None or isinstance(above, exp.From | exp.CTE)


def _of_words(analysis: Analysis) -> Iterator[str]:
    """By the words of the text, so that no call escapes by where it stands."""
    words = [token for token in analysis.tokens if token.kind in {WORD, NAME} or token.text == "("]
    for token in words:
        if token.kind == WORD and fold(token.text) in CALLED_WITHOUT_BRACKETS:
            yield f"{token.text} differs from run to run"
    for token, after in pairwise(analysis.tokens):
        if after.text != "(" or token.kind not in {WORD, NAME}:
            continue
        name = fold(token.value)
        if name in VOLATILE:
            yield f"{token.text}() differs from run to run"
        elif name in AGGREGATES:
            yield f"{token.text}() looks at several rows"
        elif name not in FUNCTIONS | NOT_CALLED:
            yield f"{token.text}() is not known to look at one row alone"
