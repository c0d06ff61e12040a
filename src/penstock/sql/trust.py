"""SQL that a catalog holds (views, macros, sort keys): code of whoever could write the catalog.

Its reader has not read it, so it may only compute: call functions of an allow-list
(`FUNCTIONS`) and the lake's own, and read tables of the lake. It may not run programs
(``TRANSFORM ... USING``), call into Java or read files. `docs/security.md` says who is trusted with
what.

Calls are found in the words of the text rather than in a tree, so that nothing escapes by where it
stands. Spark must see the same words: comments and hints are blanked, and what one lexer may read
otherwise than another is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.sql.identifiers import fold
from penstock.sql.tables import FORMATS, analyse
from penstock.sql.text import Unreadable, blank
from penstock.sql.tokens import (
    ARGUMENT,
    COMMENT,
    MARKER,
    NAME,
    NOT_CALLED,
    SPACE,
    SYMBOL,
    UNCLOSED,
    WORD,
    Token,
    scan,
)

Own = Callable[[str | None, str], bool]  # whether (schema, name) is a function of the lake

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_STATEMENTS = frozenset({"insert", "map", "reduce"})  # where a query may be: Hive's forms


# What Spark skips between words, and the symbols that it has.
_MADE_OF = {SPACE: frozenset(" \t\r\n"), SYMBOL: frozenset("-+*/%~&|^=<>!(){}[],.:?@;$")}
_TWO_COMMENTS = re.compile(r"/\*|\\(?:\n|\Z)")


def harmless_query(text: str, what: str, own: Own) -> str:
    """A query of the catalog as Spark may have it: without comments, its places as they were.

    Raises UnsupportedFeature, which says of ``what`` that it does more than compute.
    """
    clean = _harmless(text, what, own)
    _refuse_files(clean, what)
    return clean


def harmless_expression(text: str, what: str, own: Own = lambda _, __: False) -> str:
    """`harmless_query` of an expression."""
    clean = _harmless(text, what, own)
    _refuse_files(f"SELECT {clean}", what)
    return clean


def _refuse_files(text: str, what: str) -> None:
    """Tables are looked up in the lake, but for what Spark would take for files."""
    try:
        analysis = analyse(text)
    except (Unreadable, QueryFailed, UnsupportedFeature):
        raise _refusal(what, "holds something other than a query that is understood") from None
    if analysis.files:
        raise _refusal(what, f"reads the file {analysis.files[0]}")


def _harmless(text: str, what: str, own: Own) -> str:
    parts: list[str] = []
    tokens: list[Token] = []
    for token in _tokens(text, what):
        parts.append(blank(token.text) if token.kind == COMMENT else token.text)
        if token.kind not in {COMMENT, SPACE}:
            tokens.append(token)
    for at in range(len(tokens)):
        _refuse_word(tokens, at, what)
        _refuse_call(tokens, at, what, own)
    return "".join(parts)


def _tokens(text: str, what: str) -> Iterator[Token]:
    if _CONTROL.search(text):
        raise _refusal(what, "holds control characters")
    for token in scan(text):
        problem = _problem(token)
        if problem is not None:
            raise _refusal(what, problem)
        yield token


def _problem(token: Token) -> str | None:
    """Return why Spark may read other words there."""
    written = token.text
    if token.kind == UNCLOSED or not set(written) <= _MADE_OF.get(token.kind, set(written)):
        return f"holds {written!r}, which is not understood"
    if token.kind == COMMENT and _TWO_COMMENTS.search(written, 2):
        return "holds a comment that may be read in two ways"
    if token.kind == NAME and written[0] == '"' and "\\" in written:
        return "holds a name that may be read in two ways"
    return None


def _refuse_word(tokens: Sequence[Token], at: int, what: str) -> None:
    token, before, after = tokens[at], _text(tokens, at - 1), _text(tokens, at + 1)
    if token.text in {";", "$", "|>"} or token.kind == ARGUMENT or (token.text + after) == "|>":
        raise _refusal(what, f"holds {'|>' if token.text == '|' else token.text}")
    if token.kind == WORD and before != ".":
        # Spark compares keywords in capitals, which a long s has as well.
        word = token.text.upper().lower()
        if word == "using" and after != "(":
            raise _refusal(what, "runs a program (USING)")
        if word in _STATEMENTS and after not in {"(", ".", ",", ")", ""}:
            raise _refusal(what, f"holds {token.text.upper()}")
    if token.kind in {NAME, WORD} and after == ".":
        following = tokens[at + 2].kind if at + 2 < len(tokens) else ""
        if following == NAME and (_said(token) in FORMATS or "." in _said(token)):
            raise _refusal(what, f"may read a file: {token.text}.{_text(tokens, at + 2)}")


def _refuse_call(tokens: Sequence[Token], at: int, what: str, own: Own) -> None:
    """Refuse a call of a function that is not allowed."""
    name = tokens[at]
    if name.kind == SYMBOL or _text(tokens, at + 1) != "(":
        return
    before = tokens[at - 1] if at else None
    qualified = before is not None and before.text == "."
    schema = _said(tokens[at - 2]) if qualified and at > 1 else None
    if name.kind in {NAME, WORD} and own(schema, _said(name)):
        return
    if not qualified:
        if name.kind == WORD and _said(name) in NOT_CALLED | FUNCTIONS:
            return
        if name.kind == NAME and _said(name) in FUNCTIONS:
            return
        if name.kind != MARKER and _names_columns(tokens, at):
            return
    raise _refusal(what, f"calls {name.text}")


def _said(token: Token) -> str:
    return fold(token.value if token.kind == NAME else token.text)


def _names_columns(tokens: Sequence[Token], at: int) -> bool:
    """Return whether it is an alias with columns: ``AS t(a)``, ``(...) t(a)``, ``WITH t(a)``."""
    before = tokens[at - 1] if at else None
    if before is None:
        return False
    if before.text == ")" or _said(before) in {"as", "with", "recursive"}:
        return True
    depth = 0
    for i in range(at + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth == 0:
            following = [_said(token) for token in tokens[i + 1 : i + 5]]
            query = following[:3] == ["as", "(", "select"]
            return query and following[3:] not in ([","], [")"], [])
    return False


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) else ""


def _refusal(what: str, does: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{what} {does}, which SQL of a catalog may not",
        hint="a view, macro or sort key computes from tables of the lake; write a query or a model "
        "of your own for more (docs/security.md)",
        data={"refused": what},
    )


_NAMES = """
    abs acos acosh add_months aes_decrypt aes_encrypt aggregate and any any_value
    approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine approx_top_k_estimate array array_agg array_append array_compact
    array_contains array_distinct array_except array_insert array_intersect array_join array_max
    array_min array_position array_prepend array_remove array_repeat array_size array_sort
    array_union arrays_overlap arrays_zip ascii asin asinh assert_true atan atan2 atanh avg base64
    between bigint bin binary bit_and bit_count bit_get bit_length bit_or bit_xor bitmap_and_agg
    bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg
    bool_and bool_or boolean bround btrim byte cardinality case cast cbrt ceil ceiling char
    char_length character_length chr coalesce collate collation collations collect_list collect_set
    collect_union concat concat_ws contains conv convert_timezone corr cos cosh cot count count_if
    count_min_sketch counter_diff covar_pop covar_samp crc32 csc cume_dist curdate current_catalog
    current_database current_date current_path current_schema current_time current_timestamp
    current_timezone current_user date date_add date_diff date_format date_from_unix_date date_part
    date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear dec
    decimal decode degrees dense_rank div double e element_at elt encode endswith equal_null every
    exists exp explode explode_outer expm1 extract factorial filter find_in_set first first_value
    flatten float floor forall format_number format_string from_base32 from_csv from_json
    from_unixtime from_utc_timestamp get get_json_object getbit greatest grouping grouping_id hash
    hex histogram_numeric hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg hmac hour hypot
    if ifnull ilike in initcap inline inline_outer instr int integer interval is_valid_utf8
    is_valid_variant is_variant_null isnan isnotnull isnull jaro_winkler_similarity
    json_array_length json_object_keys json_tuple kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
    kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
    kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
    kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float kurtosis lag
    last last_day last_value lcase lead least left len length levenshtein like listagg ln localtime
    localtimestamp locate log log10 log1p log2 long lower lpad ltrim luhn_check make_date
    make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter
    map_from_arrays map_from_entries map_keys map_values map_zip_with mask max max_by md5 mean
    measure median min min_by minute mod mode monotonically_increasing_id month monthname
    months_between named_struct nanvl negative next_day not now nth_value ntile nullif nullifzero
    numeric nvl nvl2 octet_length or overlay parse_json parse_url percent_rank percentile
    percentile_approx percentile_cont percentile_disc pi pmod posexplode posexplode_outer position
    positive pow power printf quarter quote radians raise_error rand randn random randstr range rank
    real reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike round row_number rpad rtrim
    schema_of_csv schema_of_json schema_of_variant schema_of_variant_agg sec second sentences
    sequence session_user session_window sha sha1 sha2 shiftleft shiftright shiftrightunsigned short
    shuffle sign signum sin sinh size skewness slice smallint some sort_array soundex space
    spark_partition_id split split_part sql_keywords sqrt st_asbinary st_geogfromwkb st_geomfromwkb
    st_setsrid st_srid stack startswith std stddev stddev_pop stddev_samp str_to_map string
    string_agg struct substr substring substring_index sum tan tanh theta_difference
    theta_intersection theta_intersection_agg theta_sketch_agg theta_sketch_estimate theta_union
    theta_union_agg time time_bucket time_diff time_from_micros time_from_millis time_from_seconds
    time_to_micros time_to_millis time_to_seconds time_trunc timestamp timestamp_ltz
    timestamp_micros timestamp_millis timestamp_nanos timestamp_ntz timestamp_seconds timestampadd
    timestampdiff tinyint to_base32 to_binary to_char to_csv to_date to_json to_number to_time
    to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar
    to_variant_object to_xml transform transform_keys transform_values translate trim trunc try_add
    try_aes_decrypt try_avg try_cast try_divide try_element_at try_make_interval try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url
    try_subtract try_sum try_to_binary try_to_date try_to_number try_to_time try_to_timestamp
    try_url_decode try_validate_utf8 try_variant_array_append try_variant_get try_variant_insert
    try_variant_set tuple_difference_double tuple_difference_integer tuple_difference_theta_double
    tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
    tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
    tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
    tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
    tuple_union_theta_double tuple_union_theta_integer typeof ucase unbase64 unhex uniform unix_date
    unix_micros unix_millis unix_nanos unix_seconds unix_timestamp upper url_decode url_encode user
    uuid validate_utf8 var_pop var_samp varchar variance variant_array_append variant_delete
    variant_explode variant_explode_outer variant_get variant_insert variant_set variant_strip_nulls
    vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
    vector_normalize vector_sum version weekday weekofyear when width_bucket window window_time
    xxhash64 year zeroifnull zip_with
"""

FUNCTIONS = frozenset(_NAMES.split())
