"""Writing macros with their overloads: creating and dropping."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from penstock.errors import CommitConflict
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.definitions import tables
from penstock.lake.catalog.work import Work
from penstock.lake.format.changes import NewMacro
from penstock.sql.macros import MacroForm, Parameter

_NONE = "unknown"  # the type of a parameter without one, and of a default that is not there
_NO_DEFAULT = "NULL"


def create(work: Work, new: NewMacro) -> None:
    """Raises CommitConflict when its schema is gone."""
    schema = tables.find_schema(work.schemas, new.schema_name)
    macro_id = work.ids.catalog()
    row = {
        "schema_id": schema.id,
        "macro_id": macro_id,
        "macro_name": new.name,
        "begin_snapshot": work.snapshot_id,
    }
    work.insert(t.macro, [row])
    work.insert(
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
        work.insert(t.macro_parameters, _parameters(macro_id, number, form))
    work.tokens.named(f"created_{new.forms[0].kind}_macro", schema.name, new.name)


def _parameters(macro_id: int, form_number: int, form: MacroForm) -> list[dict[str, Any]]:
    return [
        {"macro_id": macro_id, "impl_id": form_number, "column_id": number} | _parameter(one)
        for number, one in enumerate(form.parameters)
    ]


def _parameter(one: Parameter) -> dict[str, str]:
    return {
        "parameter_name": one.name,
        "parameter_type": one.type or _NONE,
        "default_value": _NO_DEFAULT if one.default is None else one.default,
        "default_value_type": _NONE if one.default is None else one.default_type or "varchar",
    }


def drop(work: Work, macro_id: int) -> None:
    """End a macro with all its forms. Raises CommitConflict when it is not there any more."""
    if work.end(t.macro, t.macro.c.macro_id == macro_id) != 1:
        raise CommitConflict(f"macro {macro_id} is not there any more", hint="run it again")
    c = t.macro_impl.c
    kind = work.connection.execute(select(c.type).where(c.macro_id == macro_id)).scalars().first()
    work.tokens.of(f"dropped_{kind or 'scalar'}_macro", macro_id)
