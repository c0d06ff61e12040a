"""SQLMesh's ``@`` macros: what becomes of a text, and what is wrong with it at which place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from penstock.model.at_macros import AtMacros, MacroError, expand
from penstock.model.loader import load_models, scan_models
from tests.model.test_loader import LAKES, project


def twice(plain: Sequence[str], named: Mapping[str, str]) -> str:
    return f"2 * {plain[0]}{named.get('more', '')}"


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
    (found,) = scan_models(project(tmp_path, models__t=text), lakes=LAKES).errors
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
    (found,) = scan_models(python_macros(tmp_path, query), lakes=LAKES).errors
    assert message in found.message
    assert (found.location.line, found.location.column) == place


def test_files_that_cannot_be_read_and_two_of_one_name(tmp_path: Path) -> None:
    root = python_macros(tmp_path, "SELECT 1 AS a")
    (root / "macros" / "other.py").write_text("def x(:")
    (root / "macros" / "second.py").write_text("@macro\ndef growth(): ...")
    found = scan_models(root, lakes=LAKES).errors
    assert [(Path(f.location.path).name, f.location.line) for f in found] == [
        ("other.py", 1),
        ("second.py", 2),
    ]
