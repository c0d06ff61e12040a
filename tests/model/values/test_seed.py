"""The kind SEED: settings of its file, and the query that it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import Diagnostic
from penstock.model.definition.model import Model
from penstock.model.project.loader import load_models
from penstock.model.values.seed import CsvSettings


def load(
    root: Path, kind: str, rest: str = "", after: str = ""
) -> tuple[list[Model], list[Diagnostic]]:
    path = root / "models" / "seeds" / "codes.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"MODEL (\n  name codes,\n  kind {kind}{rest}\n);\n{after}")
    loaded = load_models(root, lakes=["main"])
    return list(loaded.models), list(loaded.diagnostics)


@pytest.mark.parametrize(
    ("kind", "path", "options"),
    [
        ("SEED (path 'codes.csv')", "models/seeds/codes.csv", {}),
        ("SEED (path '../../data/x.csv')", "data/x.csv", {}),
        ("SEED (path '$root/data/it''s.csv', batch_size 10)", "data/it's.csv", {}),
        (
            "seed (path 'x.csv', csv_settings (delimiter = '\\t', quotechar = '''', "
            "na_values = ('-')))",
            "models/seeds/x.csv",
            {"delimiter": "\t", "quotechar": "'", "na_values": ["-"]},
        ),
        (
            "SEED (path 'x.csv', csv_settings (escapechar = '\\', na_values = (a = ('-', 'x')), "
            "keep_default_na = false, encoding = 'latin-1', doublequote = false))",
            "models/seeds/x.csv",
            {
                "escapechar": "\\",
                "na_values": {"a": ["-", "x"]},
                "keep_default_na": False,
                "encoding": "latin-1",
                "doublequote": False,
            },
        ),
    ],
)
def test_the_file_and_its_settings(
    tmp_path: Path, kind: str, path: str, options: dict[str, object]
) -> None:
    (model,), _ = load(tmp_path, kind)
    (source,) = model.query.files
    assert (model.strategy.name, source.function) == ("replace", "read_seed")
    assert source.path.evaluate(None) == path  # type: ignore[arg-type] # a literal asks for nothing
    assert {name: value.evaluate(None) for name, value in source.options} == options  # type: ignore[arg-type] # literals
    assert CsvSettings(**options)  # type: ignore[arg-type] # of the names of its fields


def test_declared_columns_are_those_of_the_file_in_order(tmp_path: Path) -> None:
    (model,), _ = load(tmp_path, "SEED (path 'x.csv')", ",\n  columns (id INT, name TEXT)")
    (source,) = model.query.files
    assert dict(source.options)["columns"].evaluate(None) == ["id", "name"]  # type: ignore[arg-type] # literals
    assert [column.name for column in model.columns] == ["id", "name"]


def test_what_makes_what_is_there_stale(tmp_path: Path) -> None:
    hashes = {
        load(tmp_path, kind)[0][0].definition_hash
        for kind in (
            "SEED (path 'x.csv')",
            "SEED (path 'y.csv')",
            "SEED (path 'x.csv', csv_settings (delimiter = ';'))",
        )
    }
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("kind", "rest", "after", "message"),
    [
        ("SEED", "", "", "the kind SEED needs `path`"),
        (
            "SEED (path 'x.csv', csv_settings (delim = ';'))",
            "",
            "",
            "`delim` is not a setting of",
        ),
        ("SEED (path 'x.csv', csv_settings (delimiter = ';;'))", "", "", "is not one character"),
        ("SEED (path 'x.csv', csv_settings (lineterminator = 'x'))", "", "", "does not end lines"),
        ("SEED (path 'x.csv', csv_settings (encoding = 'utf-99'))", "", "", "is not an encoding"),
        ("SEED (path 'x.csv', csv_settings (encoding = hex))", "", "", "is not an encoding"),
        ("SEED (path 'x.csv', csv_settings (delimiter = '\\n'))", "", "", "is not one character"),
        (
            "SEED (path 'x.csv', csv_settings (delimiter = ';', quotechar = ';'))",
            "",
            "",
            "delimiter and quotechar are both `;`",
        ),
        (
            "SEED (path 'x.csv', csv_settings (doublequote = maybe))",
            "",
            "",
            "neither true nor false",
        ),
        ("SEED (path 'x.csv')", ", partitioned_by a", "", "`partitioned_by` cannot be given"),
        ("SEED (path 'x.csv')", "", "SELECT 1", "`SELECT` follows the model"),
    ],
)
def test_what_is_refused(tmp_path: Path, kind: str, rest: str, after: str, message: str) -> None:
    models, findings = load(tmp_path, kind, rest, after)
    assert models == []
    (error,) = [finding for finding in findings if finding.severity == "error"]
    assert message in error.message
    assert error.location.line is not None
    assert error.hint


def test_its_function_is_for_no_other_query(tmp_path: Path) -> None:
    _, (finding,) = load(tmp_path, "FULL", after="SELECT a FROM read_seed('codes.csv')")
    assert finding.message.startswith("read_seed is what a model of the kind SEED makes")
    assert (finding.location.line, finding.location.column) == (5, 15)


def test_it_ends_without_a_semicolon_and_says_its_grain(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "s.sql"
    path.write_text("MODEL (name s, kind SEED (path 's.csv'), grain id, references (a))\n")
    loaded = load_models(tmp_path, lakes=["main"])
    assert loaded.diagnostics == ()
    assert loaded.models[0].about.grains == (("id",),)
    path.write_text("MODEL (name s, kind FULL)\n")
    assert "MODEL (...) has no query" in load_models(tmp_path, lakes=["main"]).errors[0].message
