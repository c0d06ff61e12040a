"""Macros in Python: what SQLMesh's and a project's own get, and what their results become.

The renderings of SQLMesh's are those of SQLMesh 0.236.4 on the same file and query.

Tests ``model/macros/macro_arguments.py`` (arguments and results) and
``model/macros/macro_arguments.py`` (what the evaluator answers).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sqlglot

from penstock.model.macros.at_macros import expand
from penstock.model.macros.at_scope import AtMacros
from penstock.model.macros.python_macros import PythonMacros
from penstock.model.script.at_text import MacroError

OF_SQLMESH = """
import typing as t
from sqlglot import exp
from sqlmesh import macro, SQL, ExecutionContext
from sqlmesh.core.macros import MacroEvaluator, RuntimeStage
from sqlmesh.utils.errors import SQLMeshError

@macro()
def cents(evaluator, column, scale='100'):
    return f"{column} / {scale}"

@macro()
def tot(evaluator, *cols):
    return " + ".join(str(c) for c in cols)

@macro()
def add_one(evaluator: MacroEvaluator, column: exp.Column, n: int = 1):
    return column + n

@macro()
def kinds(_: MacroEvaluator, table: exp.Table, flag: bool = False):
    return exp.select("*" if flag else "a").from_(table).subquery()

@macro()
def one(context):
    return 1

@macro()
def half(evaluator):
    return 0.5

@macro()
def yes(evaluator):
    return evaluator.runtime_stage in {stage.value for stage in RuntimeStage}

@macro()
def nothing(evaluator):
    return None

@macro()
def several(evaluator, cols: t.List[exp.Column]):
    return [exp.func("sum", c).as_(f"sum_{c.name}") for c in cols] + [None, "count(*)"]

@macro("renamed")
def fn(evaluator, x):
    return f"{x} * 2"

@macro()
def parsed(evaluator, x):
    return evaluator.parse_one(f"coalesce({x}, 0)") + 1

@macro()
def sqlof(evaluator, a: SQL, b: t.List[SQL]):
    return f"{a} + {' + '.join(b)}"

@macro()
def pair(evaluator, x: tuple[str, int], y: t.Literal['a', 'b'] = 'a'):
    return f"'{x[0]}{x[1] + 1}{y}'"

@macro()
def most(evaluator, x: str):
    return f"max({x})"

@macro()
def evald(evaluator, x):
    return evaluator.eval_expression(x)

@macro()
def queries(evaluator):
    return evaluator.engine_adapter.fetchone("SELECT 1")

@macro()
def by_day(evaluator, column: exp.Column):
    start, end = (evaluator.parse_one(f"@{name}_date") for name in ("start", "end"))
    return column.between(start, end)

@macro()
def since(evaluator):
    return evaluator.locals["start_ds"]
"""


def rendered(tmp_path: Path, file: str, query: str, dialect: str = "spark") -> str:
    (tmp_path / "macros").mkdir()
    (tmp_path / "macros" / "own.py").write_text(file)
    macros = AtMacros({"runtime_stage": "'evaluating'"}, PythonMacros.of(tmp_path).functions)
    made = expand(query, 0, dialect, macros)
    assert made is not None
    return made.text


@pytest.mark.parametrize(
    ("query", "sqlmesh"),
    [
        (
            "@cents(id, 10) AS c, @tot(id, id * 10) AS t",
            "`id` / 10 AS `c`, `id` + `id` * 10 AS `t`",
        ),
        ("@cents(id), @cents(id, scale := 1000)", "`id` / 100, `id` / 1000"),
        ("@add_one(id), @add_one(t.id, 5)", "`id` + 1, `t`.`id` + 5"),
        ("@add_one(n := 2, column := id)", "`id` + 2"),
        ("* FROM @kinds(s.src) AS x", "* FROM (SELECT `a` FROM `s`.`src`) AS `x`"),
        ("* FROM @kinds(s.src, flag := TRUE) AS x", "* FROM (SELECT * FROM `s`.`src`) AS `x`"),
        ("@one() AS a, @half() AS b, @yes() AS c, @nothing()", "1 AS `a`, 0.5 AS `b`, TRUE AS `c`"),
        ("@several([a, b])", "SUM(`a`) AS `sum_a`, SUM(`b`) AS `sum_b`, COUNT(*)"),
        ("@renamed(a)", "`a` * 2"),
        ("@parsed(a)", "COALESCE(`a`, 0) + 1"),
        ("@sqlof(a + 1, [b, c * 2])", "`a` + 1 + `b` + `c` * 2"),
        ("@pair(('a', 1)), @pair(('b', 2), 'b')", "'a2a', 'b3b'"),
        ("@most(a), @most(t.a), @most('x'), @most(a + 1)", "MAX(a), MAX(t.a), MAX(x), MAX(a + 1)"),
        ("@most(`b`)", "MAX(b)"),
        ("@evald(1 + 2), @evald('a' = 'a')", "3, TRUE"),
        ("@tot(@EACH([a, b], x -> x * 2))", "`a` * 2 + `b` * 2"),
        ("@IF(@yes(), a, b)", "`a`"),
        ("@tot(date_add(d, 1), m['k'])", "DATE_ADD(`d`, 1) + `m`['k']"),
    ],
)
def test_macros_of_sqlmesh(tmp_path: Path, query: str, sqlmesh: str) -> None:
    def tree(text: str) -> sqlglot.exp.Expr:
        found = sqlglot.parse_one(f"SELECT {text}", dialect="spark")
        for name in found.find_all(sqlglot.exp.Identifier):
            name.set("quoted", False)
        return found

    assert tree(rendered(tmp_path, OF_SQLMESH, query)) == tree(sqlmesh)


def test_a_name_in_quotes_stays_one_in_both_dialects(tmp_path: Path) -> None:
    made = rendered(tmp_path, OF_SQLMESH, '@cents(`a b`), @tot("a b", x::int)')
    assert made == "`a b` / 100, `a b` + x::int"
    (tmp_path / "d").mkdir()
    assert rendered(tmp_path / "d", OF_SQLMESH, '@cents("a b")', "duckdb") == '"a b" / 100'


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("@queries()", "evaluator.engine_adapter does not exist", "a macro cannot query tables"),
        ("@since()", "start_ds is a value of the run", 'evaluator.parse_one("@start_ds")'),
        ("@add_one()", "missing a required argument: 'column'", "fix @add_one in own.py"),
    ],
)
def test_what_the_evaluator_lacks_is_named(
    tmp_path: Path, query: str, message: str, hint: str
) -> None:
    with pytest.raises(MacroError, match=message) as caught:
        rendered(tmp_path, OF_SQLMESH, query)
    assert hint in caught.value.hint


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_times_of_the_run_are_expressions(tmp_path: Path, dialect: str) -> None:
    made = rendered(tmp_path, OF_SQLMESH, "@by_day(t.d)", dialect)
    assert made == "t.d BETWEEN $penstock_at_start_date AND $penstock_at_end_date"


def test_the_stand_in_for_sqlmesh_is_seen_by_macros_alone(tmp_path: Path) -> None:
    before = {name: module for name, module in sys.modules.items() if "sqlmesh" in name}
    assert rendered(tmp_path, OF_SQLMESH, "@one()") == "1"
    assert {name: module for name, module in sys.modules.items() if "sqlmesh" in name} == before
    (tmp_path / "d").mkdir()
    file = "from sqlmesh import macro, Nothing\n@macro()\ndef f(evaluator): ...\n"
    with pytest.raises(MacroError, match=r"sqlmesh.Nothing|cannot import name 'Nothing'"):
        rendered(tmp_path / "d", file, "@f()")


def test_files_of_macros_import_each_other(tmp_path: Path) -> None:
    (tmp_path / "macros" / "lib").mkdir(parents=True)
    (tmp_path / "macros" / "lib" / "more.py").write_text("from ..names import A\nB = A + 'b'\n")
    (tmp_path / "macros" / "names.py").write_text("A = 'a'\n")
    (tmp_path / "macros" / "own.py").write_text(
        "from macros.names import A\nfrom .lib import more\nfrom penstock import macro\n"
        "@macro\ndef names(): return [A, more.B]\n"
    )
    made = expand("@names()", 0, "spark", AtMacros({}, PythonMacros.of(tmp_path).functions))
    assert made is not None
    assert made.text == "a, ab"


OWN = """
from penstock import macro

@macro
def texts(column: str, of="1", *rest):
    return " ".join([column, of, *rest])

@macro("other")
def typed(n: int, on: bool, names: list[str], share: float = 0.5):
    return f"{n + 1} {on} {names} {share}"

@macro
def evaluated(evaluator, column):
    return column.name

@macro
def wrong():
    return object()
"""


@pytest.mark.parametrize(
    ("query", "made"),
    [
        ("@texts('a', b + 1, t.c)", "'a' b + 1 t.c"),
        ("@other(-5, TRUE, [a, 'b'], share := 2)", "-4 True ['a', \"'b'\"] 2.0"),
        ("@evaluated(t.a)", "a"),
    ],
)
def test_macros_of_the_project_get_texts_or_values_of_their_types(
    tmp_path: Path, query: str, made: str
) -> None:
    assert rendered(tmp_path, OWN, query) == made


def test_a_result_that_is_no_sql_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MacroError, match="it returned object, and a macro returns SQL, a value"):
        rendered(tmp_path, OWN, "@wrong()")
