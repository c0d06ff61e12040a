"""Macros with their overloads: creating, dropping and listing them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, select

from penstock.errors import CommitConflict
from penstock.lake.catalog.commit_context import CommitContext
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.faults import Record, check_begin
from penstock.lake.catalog.definitions import tables
from penstock.lake.catalog.reads import is_named, named, visible
from penstock.lake.format.changes import NewMacro
from penstock.sql.macros import Macro, MacroForm, Parameter

_NO_TYPE = "unknown"  # of a parameter without a type, and of a missing default
_NO_DEFAULT = "NULL"


def create(context: CommitContext, new: NewMacro) -> None:
    """Create a macro. Raises CommitConflict when its schema no longer exists."""
    schema = tables.find_schema(context.schemas, new.schema_name)
    macro_id = context.ids.catalog()
    row = {
        "schema_id": schema.id,
        "macro_id": macro_id,
        "macro_name": new.name,
        "begin_snapshot": context.snapshot_id,
    }
    context.insert(t.macro, [row])
    context.insert(
        t.macro_impl,
        [
            {
                "macro_id": macro_id,
                "impl_id": number,
                "dialect": form.dialect,
                "sql": form.sql,
                "type": form.kind,
            }
            for number, form in enumerate(new.forms)
        ],
    )
    for number, form in enumerate(new.forms):
        context.insert(t.macro_parameters, _parameters(macro_id, number, form))
    context.tokens.named(f"created_{new.forms[0].kind}_macro", schema.name, new.name)


def _parameters(macro_id: int, form_number: int, form: MacroForm) -> list[dict[str, Any]]:
    return [
        {"macro_id": macro_id, "impl_id": form_number, "column_id": number} | _parameter(parameter)
        for number, parameter in enumerate(form.parameters)
    ]


def _parameter(parameter: Parameter) -> dict[str, str]:
    return {
        "parameter_name": parameter.name,
        "parameter_type": parameter.type or _NO_TYPE,
        "default_value": _NO_DEFAULT if parameter.default is None else parameter.default,
        "default_value_type": _NO_TYPE
        if parameter.default is None
        else parameter.default_type or "varchar",
    }


def drop(context: CommitContext, macro_id: int) -> None:
    """End a macro with all its forms. Raises CommitConflict when it no longer exists."""
    if context.end(t.macro, t.macro.c.macro_id == macro_id) != 1:
        raise CommitConflict(f"macro {macro_id} no longer exists", hint="run it again")
    c = t.macro_impl.c
    kind = (
        context.connection.execute(select(c.type).where(c.macro_id == macro_id)).scalars().first()
    )
    context.tokens.of(f"dropped_{kind or 'scalar'}_macro", macro_id)


def load_macros(
    connection: Connection, snapshot_id: int, names: Collection[str] | None = None
) -> list[Macro]:
    """The macros at a snapshot, by schema and name; only those in ``names`` unless it is None."""
    t = metadata.of(connection)
    m, s = t.macro.c, t.schema.c
    query = (
        select(m.macro_id, m.macro_name, m.begin_snapshot, s.schema_name)
        .join_from(t.macro, t.schema, m.schema_id == s.schema_id)
        .where(visible(t.macro, snapshot_id), visible(t.schema, snapshot_id))
        .where(*named(m.macro_name, names))
        .order_by(s.schema_name, m.macro_name)
    )
    rows = [row for row in connection.execute(query) if is_named(row.macro_name, names)]
    check_begin(rows, "macro", "macro_id")
    forms = _forms(connection, [row.macro_id for row in rows])
    return [
        Macro(
            row.macro_id,
            row.schema_name,
            row.macro_name,
            forms.get(row.macro_id, ()),
            row.begin_snapshot,
        )
        for row in rows
    ]


def _forms(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[MacroForm, ...]]:
    if not ids:
        return {}
    t = metadata.of(connection)
    p, i = t.macro_parameters.c, t.macro_impl.c
    parameters: dict[tuple[int, int], list[Parameter]] = defaultdict(list)
    query = select(t.macro_parameters).where(p.macro_id.in_(ids))
    for row in connection.execute(query.order_by(p.macro_id, p.impl_id, p.column_id)):
        parameters[row.macro_id, row.impl_id].append(_read_parameter(row))
    forms: dict[int, tuple[MacroForm, ...]] = {}
    query = select(t.macro_impl).where(i.macro_id.in_(ids))
    for row in connection.execute(query.order_by(i.macro_id, i.impl_id)):
        form = MacroForm(
            kind=row.type.lower(),
            dialect=(row.dialect or "duckdb").lower(),
            sql=row.sql,
            parameters=tuple(parameters[row.macro_id, row.impl_id]),
        )
        forms[row.macro_id] = (*forms.get(row.macro_id, ()), form)
    return forms


def _read_parameter(row: Record) -> Parameter:
    """A default of NULL with an unknown type means that there is no default (measured)."""
    has_default = row.default_value_type not in {_NO_TYPE, None} or (
        row.default_value not in {_NO_DEFAULT, None}
    )
    return Parameter(
        name=row.parameter_name,
        type=None if row.parameter_type == _NO_TYPE else row.parameter_type,
        default=row.default_value if has_default else None,
        default_type=row.default_value_type if has_default else None,
    )
