"""SQLMesh's ``@`` macros: what becomes of a text, and what is wrong with it at which place.

Tests ``model/macros/at_scope.py`` (where a macro stands) and ``model/script/at_text.py`` (arguments
and parts of names).
"""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from penstock.model.macros.at_macros import expand
from penstock.model.macros.at_scope import AtMacros, Call
from penstock.model.project.loader import load_models
from penstock.model.script.at_text import MacroError
from tests.model.project.test_loader import LAKES, project


def twice(call: Call) -> str:
    return f"2 * {call.plain[0]}{call.named.get('more', '')}"


MACROS = AtMacros({"this_model": "`t`", "stage": "'evaluating'"}, {"twice": twice})


def expanded(text: str, dialect: str = "spark") -> str:
    made = expand(text, 0, dialect, MACROS)
    return text if made is None else made.text


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("SELECT 'c@d', 1 -- @e", "SELECT 'c@d', 1 -- @e"),
        ("FROM @this_model", "FROM `t`"),
        ("@DEF(area, 5 * 2); SELECT @area", "; SELECT 5 * 2"),
        ("@DEF(plus, x -> x + t.x + 1); SELECT @plus(y)", "; SELECT y + t.x + 1"),
        ("@DEF(f, (a, b) -> a - b);@DEF(g, x -> @f(x, 1));@g(2)", ";;2 - 1"),
        ("SELECT @EACH([a, b], x -> max(x) AS max_@x)", "SELECT max(a) AS max_a, max(b) AS max_b"),
        ("SELECT @EACH([a, b], x -> @{x}_id)", "SELECT a_id, b_id"),
        ("SELECT @EACH([(a, 1), (b, 2)], (n, v) -> v AS n)", "SELECT 1 AS a, 2 AS b"),
        ("@DEF(l, ['x', 'y']); @EACH(@l, v -> c = v)", "; c = 'x', c = 'y'"),
        ("SELECT a, @EACH([], x -> x), b", "SELECT a,  b"),
        ("SELECT a, @IF(1 > 2, b)", "SELECT a"),
        ("SELECT @IF(@stage = 'evaluating', a, b)", "SELECT a"),
        ("SELECT @IF(FALSE, a, b), c", "SELECT b, c"),
        ("WHERE @AND([a = 1, b = 2]) OR @OR([c])", "WHERE (a = 1) AND (b = 2) OR (c)"),
        ("@REDUCE([a, b, c], (x, y) -> x + y)", "a + b + c"),
        ("@EACH(@FILTER([1, 2, 3], x -> x > 1), x -> x)", "2, 3"),
        ("SELECT @EVAL(2 * 3)", "SELECT 6"),
        ("SELECT @SQL('a + b')", "SELECT a + b"),
        ("@DEF(n, x); SELECT @'is @{n}!'", "; SELECT 'is x!'"),
        ("SELECT @twice(@EVAL(1 + 1), more := ' + 3')", "SELECT 2 * 2 + 3"),
    ],
)
def test_what_is_made(text: str, made: str) -> None:
    result = expanded(text).replace("' + 3'", " + 3")
    assert result == made


def tree(query: str) -> exp.Expr:
    """A query as SQLMesh's rendering and ours can be compared: without quotes of names and without
    brackets around conditions that need none.
    """

    def bare(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Identifier):
            node.set("quoted", False)
        inside = node.this if isinstance(node, exp.Paren) else node
        return node if isinstance(inside, exp.Connector) else inside

    return sqlglot.parse_one(query.lstrip(";"), dialect="spark").transform(bare)


@pytest.mark.parametrize(
    ("text", "sqlmesh"),  # which SQLMesh 0.236.4 renders of the text
    [
        (
            "@EACH(['v', 'c'], k -> count_if(t = @k) AS n_@{k})",
            "count_if(t = 'v') AS n_v, count_if(t = 'c') AS n_c",
        ),
        ("@EACH(['v', 'c'], k -> 1 AS n_@k)", "1 AS n_v, 1 AS n_c"),
        ("@EACH(['v', 'c'], k -> t = k AS k)", "t = 'v' AS v, t = 'c' AS c"),
        ("@EACH(['v', 'c'], k -> t.@{k} AS @k)", "t.v AS v, t.c AS c"),
        ("@EACH(['v', 'c'], k -> 1 AS `n_@{k}`)", "1 AS n_v, 1 AS n_c"),
        ("@EACH(['v', 'c'], k -> @'x @{k} @k' AS c_@k)", "'x v v' AS c_v, 'x c c' AS c_c"),
        ("@EACH(['v', 'c'], k -> @SQL('sum(@k)') AS s)", "sum(v) AS s, sum(c) AS s"),
        ("@EACH([(a, 'A'), (b, 'B')], (c, n) -> c AS n)", "a AS A, b AS B"),
        ("@EACH([t.a, t.b], x -> x AS n_@{x})", "t.a AS n_a, t.b AS n_b"),
        ("@EACH([a, b], x -> X + @X AS c_@X)", "a + a AS c_a, b + b AS c_b"),
        ("@EACH(a, b, x -> x + 1)", "a + 1, b + 1"),
        ("@EACH(@EACH([a, b], x -> x + 1), y -> y * 2)", "a + 1 * 2, b + 1 * 2"),
        ("@REDUCE(@EACH([a, b], x -> x = 1), (x, y) -> x AND y)", "a = 1 AND b = 1"),
        ("@REDUCE(@FILTER([1, 2, 3], x -> x > 1), (x, y) -> x + y)", "2 + 3"),
        ("@FILTER([a, b, c], x -> x <> b)", "a, c"),
        ("@AND(@EACH([a, b], x -> x = 1))", "a = 1 AND b = 1"),
        ("@OR(@EACH([a, b], x -> x = 1), c > 2)", "a = 1 OR b = 1 OR c > 2"),
        ("@AND(a, b OR c, NULL)", "a AND (b OR c)"),
        ("@AND(a, @OR(b, c, NULL), NULL)", "a AND (b OR c)"),
        ("@AND(NULL, a > 1), @OR(NULL), @AND(NULL), @AND()", "a > 1, TRUE, TRUE, TRUE"),
        ("@AND(@IF(FALSE, a > 1), b > 2), @AND(@EACH([], x -> x), b)", "b > 2, b"),
        ("@IF('a' IN ('a', 'b'), 1, 2), @IF('c' NOT IN ('a', 'b'), 1, 2)", "1, 1"),
        ("@EACH(['a', 'b'], x -> @IF(@x IN ('a'), 1 AS c_@x, 2 AS d_@x))", "1 AS c_a, 2 AS d_b"),
        ("@EACH([a, b, c], x -> @IF(@x IN (a, b), 1, 2))", "1, 1, 2"),
        ("@IF('abc' LIKE 'a%', 1, 2), @IF(LOWER('A') = 'a', 1, 2)", "1, 1"),
        ("@IF(NOT 'a' = 'b' AND TRUE, 1, 2), @IF(NULL IS NULL, 1, 2), @IF(NULL, 1, 2)", "1, 1, 2"),
        ("@IF(TRUE, @EACH([a, b], x -> x))", "a, b"),
    ],
)
def test_it_is_what_sqlmesh_renders(text: str, sqlmesh: str) -> None:
    assert tree(expanded(f"SELECT {text} FROM t")) == tree(f"SELECT {sqlmesh} FROM t")


@pytest.mark.parametrize(
    ("defined", "text", "sqlmesh"),
    [
        ("kinds, ['v', 'c']", "@EACH(@kinds, k -> 1 AS @{k}s) FROM t", "1 AS vs, 1 AS cs FROM t"),
        (
            "k, 'v'",
            "1 AS @{k}s, @{k} AS b, @k AS c FROM x_@k.y",
            "1 AS vs, v AS b, 'v' AS c FROM x_v.y",
        ),
        ("k, view", "a_@{k}_b, n_@K FROM @{k}_x", "a_view_b, n_view FROM view_x"),
        ("k, 5", "1 AS s_@k, a_@{k}_c FROM t", "1 AS s_5, a_5_c FROM t"),
        ("s, 'sch'", "1 FROM @s.a, @{s}.b, x.@s", "1 FROM sch.a, sch.b, x.sch"),
        ("k, 'b c'", "@{k} AS x, n_@{k}, 1 AS @k FROM t", "`b c` AS x, `n_b c`, 1 AS `b c` FROM t"),
    ],
)
def test_names_are_made_of_texts_as_sqlmesh_does(defined: str, text: str, sqlmesh: str) -> None:
    made = expanded(f"@DEF({defined}); SELECT {text}")
    assert tree(made) == tree(f"SELECT {sqlmesh}")


def test_a_sign_never_makes_a_comment() -> None:
    assert expanded("@DEF(n, -1); SELECT 2 -@n, @EACH([-3], x -> -x)") == "; SELECT 2 - -1, - -3"


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("SELECT @this_modl", 7, "macro @this_modl does not exist"),
        ("SELECT a, @f(x)", 10, "macro @f does not exist"),
        ("SELECT @'day @{start_ds}'", 7, "@{start_ds} is a value of the run"),
        ("SELECT @start_day", 7, "macro @start_day does not exist"),
        ("SELECT @EACH(a)", 7, "@EACH has 1 arguments"),
        ("SELECT @EACH([a], b)", 7, "`b` is not a function"),
        ("SELECT @IF(a > b, 1)", 7, "`a > b` is not known to be true or false"),
        ("SELECT @IF(1 +, 1)", 7, "cannot be read"),
        ("SELECT @SQL(a)", 7, "`a` is not a text"),
        ("@DEF(f, (a, b) -> a); SELECT @f(1)", 29, "1 values are given for a, b"),
        ("SELECT @twice(1", 7, "the bracket of @twice( is never closed"),
        ("SELECT n_@start_ds", 9, "a value of the run never becomes a part of a name"),
        ("SELECT @EACH([a + 1], x -> 1 AS n_@x)", 7, "`a + 1` cannot be a part of a name"),
        ("SELECT @STAR(t)", 7, "@STAR is a macro of SQLMesh that Penstock lacks"),
    ],
)
def test_what_is_wrong(text: str, at: int, message: str) -> None:
    with pytest.raises(MacroError) as caught:
        expanded(text)
    assert message in str(caught.value)
    assert (caught.value.at, bool(caught.value.hint)) == (at, True)


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    query = "SELECT @EACH([a, b], x -> x AS x_@n),\n  $no AS c\n"
    text = f"MODEL (name t, kind FULL);\n@DEF(n, 5);\n{query}"
    (found,) = load_models(project(tmp_path, models__t=text), lakes=LAKES).errors
    assert (found.location.line, found.location.column) == (4, 3)


def test_variables_of_a_model(tmp_path: Path) -> None:
    text = (
        "MODEL (name s.t, dialect duckdb);\n"
        "SELECT @model_kind_name AS k, @gateway AS g, @runtime_stage AS r FROM u"
    )
    (model,) = load_models(project(tmp_path, models__t=text), lakes=LAKES).models
    assert "SELECT 'VIEW' AS k, 'main' AS g, 'evaluating' AS r FROM" in model.query.source.text
    assert model.query.text == text.split("\n")[1]


GROWTH = """
from penstock import macro

@macro
def growth(column, by="iso"):
    return f"{column} / lag({column}) OVER (PARTITION BY {by} ORDER BY year) - 1"

@macro()
def listed(*names):
    return [f"sum({name})" for name in names]

@macro
def broken():
    return 1 / 0

def not_one():
    raise AssertionError
"""


def python_macros(root: Path, query: str) -> Path:
    (root / "macros").mkdir()
    (root / "macros" / "own.py").write_text(GROWTH)
    return project(root, models__t=f"MODEL (name t, kind FULL);\n{query}")


def test_macros_in_python(tmp_path: Path) -> None:
    root = python_macros(tmp_path, "SELECT @growth(gdp, by := a) AS g, @listed(x, y) FROM u")
    cache: dict[str, bytes] = {}
    (model,) = load_models(root, lakes=LAKES, cache=cache).models
    assert model.query.source.text.endswith(
        "SELECT gdp / lag(gdp) OVER (PARTITION BY a ORDER BY year) - 1 AS g, sum(x), sum(y) FROM u"
    )
    assert cache == {}  # another file says what it means


@pytest.mark.parametrize(
    ("query", "place", "message"),
    [
        ("SELECT @broken() AS a", (2, 8), "@broken failed at own.py:14: ZeroDivisionError"),
        ("SELECT @growth() AS a", (2, 8), "@growth failed at own.py: TypeError"),
        ("SELECT @not_one() AS a", (2, 8), "macro @not_one does not exist"),
    ],
)
def test_wrong_macros_in_python(
    tmp_path: Path, query: str, place: tuple[int, int], message: str
) -> None:
    (found,) = load_models(python_macros(tmp_path, query), lakes=LAKES).errors
    assert message in found.message
    assert (found.location.line, found.location.column) == place


def test_files_that_cannot_be_read_and_two_of_one_name(tmp_path: Path) -> None:
    root = python_macros(tmp_path, "SELECT 1 AS a")
    (root / "macros" / "other.py").write_text("def x(:")
    (root / "macros" / "second.py").write_text("@macro\ndef growth(): ...")
    found = load_models(root, lakes=LAKES).errors
    assert [(Path(f.location.path).name, f.location.line) for f in found] == [
        ("other.py", 1),
        ("second.py", 2),
    ]


def expand_call(text: str, dialect: str = "spark", macros: AtMacros | None = None) -> str:
    made = expand(text, 0, dialect, macros or AtMacros())
    return text if made is None else made.text


def parse_select(query: str, dialect: str) -> exp.Expr:
    """A query without quotes of names."""
    found = sqlglot.parse_one(query, dialect=dialect)
    for name in found.find_all(exp.Identifier):
        name.set("quoted", False)
    return found


KEY = "_sqlmesh_surrogate_key_null_"
CASE = "CASE WHEN a IS NULL AND b IS NULL THEN NULL ELSE COALESCE(a, 0) {} COALESCE(b, 0) END"


@pytest.mark.parametrize(
    ("text", "sqlmesh"),
    [
        ("@SAFE_ADD(a, b)", CASE.format("+")),
        ("@SAFE_SUB(a, b)", CASE.format("-")),
        ("@SAFE_ADD(@EACH([a, b], x -> x))", CASE.format("+")),
        (
            "@SAFE_ADD(a + 1, c)",
            "CASE WHEN (a + 1) IS NULL AND c IS NULL THEN NULL "
            "ELSE COALESCE(a + 1, 0) + COALESCE(c, 0) END",
        ),
        (
            "@SAFE_DIV(a, b), @SAFE_DIV(a + 1, b - 2)",
            "a / NULLIF(b, 0), (a + 1) / NULLIF(b - 2, 0)",
        ),
        (
            "@GENERATE_SURROGATE_KEY(a, b)",
            f"MD5(CONCAT(COALESCE(CAST(a AS STRING), '{KEY}'), '|', "
            f"COALESCE(CAST(b AS STRING), '{KEY}')))",
        ),
        (
            "@PIVOT(status, ['x', 'y'])",
            "SUM(CASE WHEN status = 'x' THEN 1 ELSE 0 END) AS `x`, "
            "SUM(CASE WHEN status = 'y' THEN 1 ELSE 0 END) AS `y`",
        ),
        (
            "@PIVOT(a, ['v'], then_value := tv, suffix := '_sfx', quote := FALSE)",
            "SUM(CASE WHEN a = 'v' THEN tv ELSE 0 END) AS v_sfx",
        ),
        (
            "@HAVERSINE_DISTANCE(a, b, c, d, 'km')",
            "7922 * ASIN(SQRT((POWER(SIN(RADIANS((c - a) / 2)), 2)) + (COS(RADIANS(a)) * "
            "COS(RADIANS(c)) * POWER(SIN(RADIANS((d - b) / 2)), 2)))) * 1.60934",
        ),
        ("@VAR('x', 5)", "5"),
    ],
)
def test_functions_are_what_sqlmesh_renders(text: str, sqlmesh: str) -> None:
    made = parse_select(f"SELECT {expand_call(text)} FROM t", "spark")
    assert made == parse_select(f"SELECT {sqlmesh} FROM t", "spark")


@pytest.mark.parametrize(
    ("text", "sqlmesh"),
    [
        (
            "SELECT @GENERATE_SURROGATE_KEY(a, b), "
            "@GENERATE_SURROGATE_KEY(a, hash_function := 'SHA256')",
            f"SELECT MD5(CONCAT(COALESCE(CAST(a AS TEXT), '{KEY}'), '|', COALESCE(CAST(b AS TEXT), "
            f"'{KEY}'))), SHA256(CONCAT(COALESCE(CAST(a AS TEXT), '{KEY}')))",
        ),
        (
            "@DEDUPLICATE(t, [a, b::date], ['c DESC', 'd ASC'])",
            "SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a, CAST(b AS DATE) "
            "ORDER BY c DESC, d ASC) = 1",
        ),
    ],
)
def test_it_is_what_sqlmesh_renders_for_duckdb(text: str, sqlmesh: str) -> None:
    assert parse_select(expand_call(text, "duckdb"), "duckdb") == parse_select(sqlmesh, "duckdb")


def test_what_spark_has_in_other_words() -> None:
    assert expand_call("@DEDUPLICATE(s.t, [a], ['c DESC'])") == (
        "SELECT * EXCEPT (_w) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY c DESC) "
        "AS _w FROM s.t) AS _t WHERE _w = 1"
    )
    assert expand_call("@GENERATE_SURROGATE_KEY(a, hash_function := 'SHA256')").startswith(
        "SHA2(CON"
    )


def test_a_macro_of_the_project_stands_before_it() -> None:
    def own(call: Call) -> str:
        return f"mine({', '.join(call.plain)})"

    assert expand_call("@SAFE_ADD(a, b)", macros=AtMacros({}, {"safe_add": own})) == "mine(a, b)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@SAFE_DIV(a)", "@SAFE_DIV has 1 arguments"),
        ("@DEDUPLICATE(t, [a], [c])", "`c` is not a text"),
        ("@VAR('x')", "macro @x does not exist"),
        ("@HAVERSINE_DISTANCE(a, b, c, d, 'm')", "`m` is not a unit of @HAVERSINE_DISTANCE"),
    ],
)
def test_a_wrong_call_of_a_function(text: str, message: str) -> None:
    with pytest.raises(MacroError, match=message):
        expand_call(text)
