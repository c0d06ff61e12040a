"""Libraries of macros: what they may hold, which a script means, what is wrong and where.

Tests ``model/macros/macro_libraries.py`` (CREATE MACRO).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.project.loader import Loaded, load_models

F = "-- macros\nCREATE MACRO f(x) AS x + 1"
G = "-- macros\n\nCREATE MACRO F(x) AS x + 2"
MODEL = "-- materialize ducklake://main/t\n"


def scan(root: Path, **files: str) -> Loaded:
    """The project of these files, whose names have ``__`` for a slash."""
    return cached(root, None, **files)


def cached(root: Path, cache: dict[str, bytes] | None, **files: str) -> Loaded:
    """The same, with files that were read before."""
    (root / "models").mkdir(exist_ok=True)
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return load_models(root, lakes=["main"], cache=cache)


def query(root: Path, **files: str) -> str:
    loaded = scan(root, **files)
    assert [str(finding) for finding in loaded.diagnostics] == []
    (model,) = loaded.models
    return model.query.source.text[model.query.start :].strip()


def wrong(root: Path, **files: str) -> str:
    """The one finding, its path below the project."""
    (finding,) = scan(root, **files).diagnostics
    return str(finding).replace(f"{root}/", "")


def test_found_by_name_and_no_model(tmp_path: Path) -> None:
    loaded = scan(tmp_path, models__lib__f=F, models__t=f"{MODEL}SELECT f(a) AS a FROM b")
    (model,) = loaded.models
    assert model.query.source.text.endswith("SELECT ((a) + 1) AS a FROM b")
    assert (model.query.libraries, loaded.diagnostics) == (("models/lib/f",), ())
    assert model.query.text == "SELECT f(a) AS a FROM b"


def test_a_clash_names_both_places_and_use_decides(tmp_path: Path) -> None:
    files = {"macros__f": F, "macros__g": G}
    said = wrong(tmp_path, **files, models__t=f"{MODEL}SELECT f(1) AS a")
    assert said == (
        "models/t.sql:2:8: error: f is a macro of two libraries: macros/f.sql:2 and macros/g.sql:3"
        "\n  → name one alone in the header: -- use macros/f"
    )
    text = f"{MODEL}-- use macros/g\nSELECT f(1) AS a"
    assert query(tmp_path, **files, models__t=text) == "SELECT (1 + 2) AS a"


def test_use_before_model(tmp_path: Path) -> None:
    text = "-- use macros/g\nMODEL (name main.t, kind FULL);\nSELECT f(1) AS a"
    assert query(tmp_path, macros__f=F, macros__g=G, models__t=text) == "SELECT (1 + 2) AS a"


def test_a_library_means_its_own_macros_then_those_it_uses(tmp_path: Path) -> None:
    own = "-- macros\nCREATE MACRO f(x) AS x * 9; CREATE MACRO h(x) AS f(x)"
    using = "-- macros\n-- use macros/g\nCREATE MACRO k(x) AS f(x)"
    text = f"{MODEL}SELECT h(1) AS a, k(1) AS b"
    files = {"macros__f": F, "macros__g": G, "macros__own": own, "macros__using": using}
    assert query(tmp_path, **files, models__t=text) == "SELECT (((1) * 9)) AS a, (((1) + 2)) AS b"


def test_an_unknown_library(tmp_path: Path) -> None:
    said = wrong(tmp_path, macros__money=F, models__t=f"{MODEL}-- use macros/mony\nSELECT 1 AS a")
    assert said == (
        "models/t.sql:2:4: error: macro library macros/mony does not exist\n"
        "  → did you mean `-- use macros/money`?"
    )


def test_a_cycle_says_its_chain(tmp_path: Path) -> None:
    one, two = (f"-- macros\nCREATE MACRO {a}(x) AS {b}(x) + 1" for a, b in ("fg", "gf"))
    said = wrong(tmp_path, macros__a=one, macros__b=two, models__t=f"{MODEL}SELECT g(1) AS a")
    chain = "g (macros/b.sql:2) → f (macros/a.sql:2) → g (macros/b.sql:2)"
    assert f"the macro g (macros/b.sql:2) calls itself: {chain}" in said


def test_a_clash_inside_says_in_which_macro(tmp_path: Path) -> None:
    inner = "-- macros\nCREATE MACRO h(x) AS f(x)"
    files = {"macros__f": F, "macros__g": G, "macros__h": inner}
    said = wrong(tmp_path, **files, models__t=f"{MODEL}SELECT h(1) AS a")
    assert "models/t.sql:2:8: error: f is a macro of two libraries" in said
    assert ", in h (macros/h.sql:2)" in said


@pytest.mark.parametrize(
    ("library", "place", "message"),
    [
        ("CREATE MACRO f(x) AS x;\n SELECT 1", "3:2", "`SELECT` is not a macro"),
        ("CREATE TABLE t (a INT)", "2:1", "`CREATE` is not a macro"),
        ("materialize", "2:4", "a library of macros makes no table"),
        ("CREATE MACRO f(x) AS x +", "2:24", "the macro cannot be read near `+`"),
        ("CREATE MACRO f(x) AS 'x", "2:22", "`'` is opened here and never closed"),
        ("CREATE MACRO f(x) AS SELECT x", "2:22", "a scalar macro is one expression"),
        ("CREATE MACRO f(x) AS TABLE x", "2:28", "a table macro is a query"),
        ("CREATE MACRO f(x) AS @this", "2:22", "a macro's definition has no @ macros"),
        ("CREATE MACRO f(x, y := x) AS x", "2:24", "the default of y reads columns or a query"),
        ("CREATE MACRO f(x := 1, y) AS x", "2:24", "y needs a default, as those before it"),
        ("CREATE MACRO f(x, x) AS x", "2:19", "two parameters are named 'x'"),
        ("CREATE MACRO s.f(x) AS x", "2:14", "the macro has a plain name"),
        ("CREATE MACRO f(x) AS x;\nCREATE MACRO F(y) AS y", "3:14", "the macro F is made twice"),
    ],
)
def test_what_a_library_cannot_hold(tmp_path: Path, library: str, place: str, message: str) -> None:
    if library == "materialize":
        library = f"{MODEL}CREATE MACRO f(x) AS x"
    assert wrong(tmp_path, macros__lib=f"-- macros\n{library}").startswith(
        f"macros/lib.sql:{place}: error: {message}"
    )


def test_errors_in_a_definition_say_both_places(tmp_path: Path) -> None:
    library = "-- macros\nCREATE MACRO f(x) AS TABLE\n  SELECT * FROM nope.main.t"
    said = wrong(tmp_path, macros__lib=library, models__t=f"{MODEL}SELECT *\nFROM f(1)")
    assert said.startswith("models/t.sql:3:6 (in the macro f, macros/lib.sql:2): error: lake")


def test_a_change_is_seen_through_the_cache(tmp_path: Path) -> None:
    cache: dict[str, bytes] = {}
    files = {"macros__f": F, "models__t": f"{MODEL}SELECT f(1) AS a"}
    first = [cached(tmp_path, cache, **files).models[0].definition_hash for _ in range(2)]
    changed = cached(tmp_path, cache, macros__f=F.replace("+ 1", "+ 3")).models[0]
    assert first[0] == first[1] != changed.definition_hash
    assert "(1 + 3)" in changed.query.source.text
    clashing = cached(tmp_path, cache, macros__g=G)
    assert [finding.rule for finding in clashing.diagnostics] == ["macro"]


def test_in_custom_tests_with_their_own_use(tmp_path: Path) -> None:
    test = "-- use macros/g\nSELECT * FROM t WHERE f(a) > 3"
    model = f"{MODEL}-- data_test checks/few\nSELECT 1 AS a"
    loaded = scan(tmp_path, macros__f=F, macros__g=G, checks__few=test, models__t=model)
    (script,) = loaded.models[0].test_scripts
    assert "((a) + 2) > 3" in script.query.source.text


def test_a_duckdb_library_in_a_script_of_spark(tmp_path: Path) -> None:
    library = (
        "-- macros\n-- dialect duckdb\nCREATE MACRO f(l) AS list_transform(l, lambda x: x + 1)"
    )
    text = f"{MODEL}SELECT f(array(1)) AS a"
    assert query(tmp_path, macros__f=library, models__t=text) == (
        "SELECT (TRANSFORM((array(1)), x -> x + 1)) AS a"
    )
    other = f"{MODEL}-- dialect duckdb\nSELECT f([1]) AS a"
    assert "of the dialect spark" in wrong(tmp_path, macros__f=F, models__t=other)


def test_a_file_of_macros_without_the_header(tmp_path: Path) -> None:
    said = wrong(tmp_path, macros__f="CREATE MACRO f(x) AS x", models__t=f"{MODEL}SELECT 1 AS a")
    assert said.startswith("macros/f.sql:1:1: warning: the file is not a library of macros")
