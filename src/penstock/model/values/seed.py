"""SEED: the rows of a CSV file of the project, as a query of them.

The settings are those of SQLMesh, which hands them to pandas' reader; their names, defaults and the
texts that stand for NULL are pandas'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from penstock.sql.dialect import SPARK
from penstock.sql.literals import plain_text_literal, text_literal

FUNCTION = "read_seed"
ROOT = "$root/"
#: texts that are NULL unless ``keep_default_na`` is false
NA = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)


@dataclass(frozen=True, slots=True)
class Seed:
    """``query`` is that of the kind, which has none of its own."""

    query: str


@dataclass(frozen=True, slots=True)
class CsvSettings:
    """The form of a seed's file. ``na_values`` are of all columns, or of columns by name;
    ``columns`` are names in the order of the file, in place of its header's.
    """

    delimiter: str = ","
    quotechar: str = '"'
    doublequote: bool = True
    escapechar: str | None = None
    skipinitialspace: bool = False
    lineterminator: str | None = None
    encoding: str = "utf-8"
    na_values: Sequence[str] | Mapping[str, Sequence[str]] = ()
    keep_default_na: bool = True
    columns: Sequence[str] = ()

    def nulls(self, column: str) -> frozenset[str]:
        """The texts that stand for NULL in a column."""
        own = self.na_values
        more = own.get(column, ()) if isinstance(own, Mapping) else own
        return frozenset((*(NA if self.keep_default_na else ()), *more))


SETTINGS = tuple(each.name for each in fields(CsvSettings) if each.name != "columns")


def seed_path(written: str, script: Path, root: Path) -> str:
    """The file's path as queries have it, below the project: that written is relative to the
    script, or with ``$root/`` to the project.
    """
    below = written.startswith(ROOT)
    path = root / written.removeprefix(ROOT) if below else script.parent / written
    path = path.resolve()
    return (
        path.relative_to(root.resolve()).as_posix()
        if (path.is_relative_to(root.resolve()))
        else str(path)
    )


def seed_query(
    path: str, settings: Mapping[str, object], columns: Sequence[str], dialect: str
) -> str:
    """The query of all rows of a seed; ``settings`` are those that are given."""
    given = {**settings, **({"columns": list(columns)} if columns else {})}
    options = "".join(f", {name} = {_literal(value, dialect)}" for name, value in given.items())
    return f"SELECT * FROM {FUNCTION}({_literal(path, dialect)}{options})"


def _literal(value: object, dialect: str) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, Mapping):
        pairs = (f"{_literal(k, dialect)}: {_literal(v, dialect)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(item, dialect) for item in value)}]"
    return (text_literal if dialect == SPARK else plain_text_literal)(str(value))
