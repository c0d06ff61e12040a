"""Views and macros, the SQL that a catalog holds: creating, renaming, dropping and listing them."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Subquery, select

from penstock.errors import CommitConflict
from penstock.lakes.catalog.commit_context import CommitContext
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.faults import Record, check_begin
from penstock.lakes.catalog.definitions import tables, tags
from penstock.lakes.catalog.reads import is_named, named, visible
from penstock.lakes.format.changes import NewMacro, NewView
from penstock.lakes.format.objects import COMMENT, View
from penstock.sql.macros import Macro, MacroForm, Parameter


def create_view(context: CommitContext, new: NewView) -> None:
    """Create a view. Raises CommitConflict when its schema no longer exists."""
    schema = tables.find_schema(context.schemas, new.schema_name)
    view_id = context.ids.catalog()
    row = {
        "view_id": view_id,
        "view_uuid": str(uuid.uuid4()),
        "begin_snapshot": context.snapshot_id,
        "schema_id": schema.id,
        "view_name": new.name,
        "dialect": new.dialect,
        "sql": new.sql,
        "column_aliases": ",".join(_quoted(alias) for alias in new.aliases),
    }
    context.insert(t.view, [row])
    if new.comment is not None:
        tags.write(context, view_id, {COMMENT: new.comment}, fresh=True)
    context.tokens.named("created_view", schema.name, new.name)


def rename_view(context: CommitContext, view_id: int, new_name: str) -> None:
    """Rename a view; the token is that of a creation, as in the real extension."""
    c = t.view.c
    query = t.view.select().where(c.view_id == view_id, c.end_snapshot.is_(None))
    old = context.connection.execute(query).first()
    if old is None or context.end(t.view, c.view_id == view_id) != 1:
        raise _gone(view_id)
    renamed = {"begin_snapshot": context.snapshot_id, "end_snapshot": None, "view_name": new_name}
    context.insert(t.view, [dict(old._mapping) | renamed])
    schema = next(entry for entry in context.schemas.values() if entry.id == old.schema_id)
    context.tokens.named("created_view", schema.name, new_name)


def drop_view(context: CommitContext, view_id: int) -> None:
    """End a view and its tags. Raises CommitConflict when it no longer exists."""
    if context.end(t.view, t.view.c.view_id == view_id) != 1:
        raise _gone(view_id)
    context.end(t.tag, t.tag.c.object_id == view_id)
    context.tokens.of("dropped_view", view_id)


def comment_view(context: CommitContext, view_id: int, changes: tags.Tags) -> None:
    tags.write(context, view_id, changes)
    context.tokens.of("altered_view", view_id)


def _gone(view_id: int) -> CommitConflict:
    return CommitConflict(f"view {view_id} no longer exists", hint="run it again")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def load_views(
    connection: Connection, snapshot_id: int, names: Collection[str] | None = None
) -> list[View]:
    """The views at a snapshot, by schema and name; only those in ``names`` unless it is None."""
    t = metadata.of(connection)
    v, s = t.view.c, t.schema.c
    query = (
        select(
            v.view_id, v.view_name, v.dialect, v.sql, v.column_aliases, v.begin_snapshot,
            s.schema_name,
        )
        .join_from(t.view, t.schema, v.schema_id == s.schema_id)
        .where(visible(t.view, snapshot_id), visible(t.schema, snapshot_id))
        .where(*named(v.view_name, names))
        .order_by(s.schema_name, v.view_name)
    )  # fmt: skip
    rows = [row for row in connection.execute(query) if is_named(row.view_name, names)]
    check_begin(rows, "view", "view_id")
    ids = [row.view_id for row in rows]
    view_tags = tags.load_tags(connection, snapshot_id, ids)
    columns = _view_column_tags(connection, snapshot_id, ids)
    return [
        _view(row, view_tags.get(row.view_id, {}), columns.get(row.view_id, {})) for row in rows
    ]


def view_names(connection: Connection, snapshot_id: int) -> list[str]:
    """``main.v`` of every view at a snapshot."""
    t = metadata.of(connection)
    query = (
        select(t.schema.c.schema_name, t.view.c.view_name)
        .join_from(t.view, t.schema, t.view.c.schema_id == t.schema.c.schema_id)
        .where(visible(t.view, snapshot_id), visible(t.schema, snapshot_id))
    )
    return [f"{schema}.{name}" for schema, name in connection.execute(query)]


def _view(
    row: Record, tags: Mapping[str, str], column_tags: Mapping[str, Mapping[str, str]]
) -> View:
    return View(
        id=row.view_id,
        schema_name=row.schema_name,
        name=row.view_name,
        dialect=(row.dialect or "duckdb").lower(),
        sql=row.sql,
        aliases=_aliases(row.column_aliases),
        begin_snapshot=row.begin_snapshot,
        tags=tags,
        column_tags=column_tags,
    )


def _view_column_tags(
    connection: Connection, snapshot_id: int, ids: Collection[int]
) -> dict[int, dict[str, dict[str, str]]]:
    """Column tags by view and the view's column name. Only format 1.1 has them."""
    t = metadata.of(connection)
    c = t.view_column_tag.c
    if not ids or isinstance(t.view_column_tag, Subquery):  # the empty one of other versions
        return {}
    query = select(c.view_id, c.column_name, c.key, c.value, c.begin_snapshot).where(
        c.view_id.in_(list(ids)), visible(t.view_column_tag, snapshot_id)
    )
    rows = connection.execute(query).all()
    check_begin(rows, "view_column_tag", "view_id")
    by_view: dict[int, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row.value is not None:
            by_view[row.view_id][row.column_name][row.key] = row.value
    return {view: dict(of) for view, of in by_view.items()}


def _aliases(text: str | None) -> tuple[str, ...]:
    """``"a","b"`` as DuckDB writes them, quotes inside doubled."""
    return tuple(name.replace('""', '"') for name in _QUOTED.findall(text or ""))


_NO_TYPE = "unknown"  # of a parameter without a type, and of a missing default
_NO_DEFAULT = "NULL"


def create_macro(context: CommitContext, new: NewMacro) -> None:
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


def drop_macro(context: CommitContext, macro_id: int) -> None:
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
