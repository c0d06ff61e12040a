"""Queries and models as the tests of lineage write them, and what comes out, in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.model.definition.build_model import ScriptFile, build_model
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.headers.annotation import declare, parse
from penstock.model.lineage.models import Cache, ProjectLineage, Schemas, project_lineage
from penstock.model.lineage.relation import Relation, table
from penstock.model.lineage.script import QueryLineage, query_lineage
from penstock.model.lineage.values import VALUE, Input, OutputColumn
from penstock.model.query.query import ScriptKind, read_query
from penstock.model.script.sources import TableSource
from penstock.model.values.asset import Names

NAMES = Names(("main",))
#: what the lake has, unless a test says otherwise
TABLES = {
    "main.t": ("id", "a", "b", "c"),
    "main.u": ("id", "d", "e"),
    "main.v": ("id", "xs", "s"),
}


def lineage(
    sql: str,
    dialect: str = "spark",
    tables: Mapping[str, Sequence[str]] = TABLES,
    *,
    of_view: bool = False,
    manual: bool = False,
) -> QueryLineage:
    query, findings = read_query(
        sql,
        Path("model.sql"),
        names=NAMES,
        dialect=dialect,
        kind=ScriptKind(manual=manual),
        translates=not of_view,
    )
    assert query is not None, findings

    def relation(source: TableSource) -> Relation:
        name = str(source.table)
        return table(name, tables.get(name), f"the columns of {name} are not known")

    return query_lineage(query, relation)


def short(inputs: Sequence[Input]) -> str:
    """``t.a u.b:filter``: the schema and the usual kind are left out."""
    return " ".join(
        f"{str(item).removeprefix('main.')}{'' if item.kind == VALUE else f':{item.kind}'}"
        for item in inputs
    )


def columns(found: QueryLineage | Sequence[OutputColumn]) -> dict[str, str]:
    """Inputs by column; ``?`` and the reasons where they are not all known."""
    of = found.columns if isinstance(found, QueryLineage) else found
    return {
        column.name: " ".join(
            [short(column.inputs), *(f"? {why}" for why in column.unknown)]
        ).strip()
        for column in of
    }


def models(scripts: Mapping[str, str]) -> list[Model]:
    """The models of these scripts, each named as the table that it makes, in order."""
    made: list[Model] = []
    for name, text in scripts.items():
        script = f"-- materialize ducklake://main/{name}\n{text}"
        if text.startswith("-- materialize"):
            script = text
        path = Path(f"{name}.sql")
        annotations, findings = parse(script, path)
        declaration, findings = declare(script, path, annotations, NAMES, findings)
        assert declaration is not None, findings
        model, findings = build_model(ScriptFile(name, script, declaration), NAMES, findings)
        assert model is not None, findings
        made.append(model)
    by_name = {model.name: model for model in made}
    return [by_name[name] for name in Graph.of(made).order()]


def project(
    scripts: Mapping[str, str], schemas: Schemas | None = None, cache: Cache | None = None
) -> ProjectLineage:
    return project_lineage(models(scripts), schemas or Schemas(TABLES), cache)
