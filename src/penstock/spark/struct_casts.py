"""Fields of structs by their names: casts (Spark's goes by position), differences, removal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import SchemaMismatch
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import fold, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def cast_columns(df: DataFrame, types: Mapping[str, str]) -> list[SparkColumn]:
    """Return the columns of ``df`` that are keys of ``types``, cast, under those names.

    Structs match by the names of their fields, letter case aside. Raises SchemaMismatch for a
    struct whose fields are others.
    """
    names = {fold(name): name for name in df.columns}
    wanted = _structs(df, types)
    columns: list[SparkColumn] = []
    for name, kind in types.items():
        source = names[fold(name)]
        if name in wanted:
            value = cast_by_name(
                fn.col(quoted(source)), df.schema[source].dataType, wanted[name], name
            )
        else:
            value = expr(f"CAST({quoted(source)} AS {kind})")
        columns.append(value.alias(name))
    return columns


def reordered(df: DataFrame, types: Mapping[str, str]) -> list[str]:
    """Return the columns whose structs CAST would take by position, fields in another order.

    Raises SchemaMismatch for a struct whose fields are others.
    """
    names = {fold(name): name for name in df.columns}
    return [
        name
        for name, kind in _structs(df, types).items()
        if not _same_names(df.schema[names[fold(name)]].dataType, kind, name)
    ]


def fields_apart(df: DataFrame, types: Mapping[str, DataType]) -> tuple[list[str], list[str]]:
    """Return the paths (``addr.zip``) of fields that only ``df`` has, and of those it lacks.

    ``types`` are those of a table; columns that only one of them has are not looked into.
    """
    table_types = {fold(name): (name, kind) for name, kind in types.items()}
    added: list[str] = []
    missing: list[str] = []
    for field in df.schema.fields:
        name, kind = table_types.get(fold(field.name), (field.name, None))
        if kind is not None:
            added += other_fields(field.dataType, kind, field.name)
            missing += other_fields(kind, field.dataType, name)
    return added, missing


def other_fields(kind: Any, other: Any, path: str) -> list[str]:
    """Return the paths of fields of structs inside ``kind`` that ``other`` lacks."""
    if kind.typeName() != other.typeName():
        return []
    if kind.typeName() == "array":
        return other_fields(kind.elementType, other.elementType, f"{path}.element")
    if kind.typeName() == "map":
        return other_fields(kind.valueType, other.valueType, f"{path}.value")
    if kind.typeName() != "struct":
        return []
    known = {fold(field.name): field.dataType for field in other.fields}
    names: list[str] = []
    for field in kind.fields:
        inside = f"{path}.{field.name}"
        if fold(field.name) in known:
            names += other_fields(field.dataType, known[fold(field.name)], inside)
        else:
            names.append(inside)
    return names


def without(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return ``df`` without columns, and without fields of structs, by their paths."""
    columns = set(df.columns)
    df = df.drop(*(name for name in names if name in columns))
    for path in names:
        column, _, inside = path.partition(".")
        if path not in columns and column in columns:
            kind = df.schema[column].dataType
            value = _without(fn.col(quoted(column)), kind, inside.split("."))
            df = df.withColumn(column, value)
    return df


def _without(value: SparkColumn, kind: Any, path: Sequence[str]) -> SparkColumn:
    name, *inner_path = path
    if kind.typeName() == "array":
        return fn.transform(value, lambda item: _without(item, kind.elementType, inner_path))
    if kind.typeName() == "map":
        return fn.transform_values(
            value, lambda _, item: _without(item, kind.valueType, inner_path)
        )
    if not inner_path:
        return value.dropFields(quoted(name))
    field = value.getField(name)
    return value.withField(quoted(name), _without(field, kind[name].dataType, inner_path))


def _structs(df: DataFrame, types: Mapping[str, str]) -> dict[str, DataType]:
    """Return the types, which Spark parses, of the columns that have structs."""
    kinds = {fold(name): kind for name, kind in df.dtypes}
    nested = {name: kind for name, kind in types.items() if "struct<" in kinds[fold(name)]}
    if not nested:
        return {}
    casts = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in nested.items()]
    return {field.name: field.dataType for field in df.limit(0).selectExpr(*casts).schema.fields}


def cast_by_name(value: SparkColumn, kind: Any, to: Any, path: str) -> SparkColumn:
    """Return ``value``, of the type ``kind``, as ``to``, its structs by the names of their fields.

    Raises SchemaMismatch, naming ``path``, for a struct whose fields are others.
    """
    if _same_names(kind, to, path):
        return value if kind == to else value.cast(to)
    rebuild = {"struct": _struct, "array": _array, "map": _map}[to.typeName()]
    return rebuild(value, kind, to, path).cast(to)


def _same_names(kind: Any, to: Any, path: str) -> bool:
    """Return whether structs have the same fields in one order; other kinds of types are alike."""
    if kind.typeName() != to.typeName():
        return True
    if kind.typeName() == "array":
        return _same_names(kind.elementType, to.elementType, f"{path}[]")
    if kind.typeName() == "map":
        pairs = ((kind.keyType, to.keyType, "key"), (kind.valueType, to.valueType, "value"))
        return all(_same_names(old, new, f"{path}.{part}") for old, new, part in pairs)
    if kind.typeName() != "struct":
        return True
    old, new = ([fold(field.name) for field in struct.fields] for struct in (kind, to))
    if sorted(old) != sorted(new):
        raise SchemaMismatch(
            f"column {path} is cast to {to.simpleString()} and is {kind.simpleString()}",
            hint="give its fields the same names: they match by name",
            data={"column": path, "type": kind.simpleString()},
        )
    types = {fold(field.name): field.dataType for field in kind.fields}
    inner = [_same_names(types[fold(f.name)], f.dataType, f"{path}.{f.name}") for f in to.fields]
    return old == new and all(inner)


def _struct(value: SparkColumn, kind: Any, to: Any, path: str) -> SparkColumn:
    fields = {fold(field.name): field for field in kind.fields}
    items = []
    for field in to.fields:
        old = fields[fold(field.name)]
        inner = value.getField(old.name)
        item = cast_by_name(inner, old.dataType, field.dataType, f"{path}.{field.name}")
        items.append(item.alias(field.name))
    return fn.when(value.isNotNull(), fn.struct(*items))


def _array(value: SparkColumn, kind: Any, to: Any, path: str) -> SparkColumn:
    old, new = kind.elementType, to.elementType
    return fn.transform(value, lambda item: cast_by_name(item, old, new, f"{path}[]"))


def _map(value: SparkColumn, kind: Any, to: Any, path: str) -> SparkColumn:
    def entry(pair: SparkColumn) -> SparkColumn:
        key = cast_by_name(pair["key"], kind.keyType, to.keyType, f"{path}.key")
        item = cast_by_name(pair["value"], kind.valueType, to.valueType, f"{path}.value")
        return fn.struct(key.alias("key"), item.alias("value"))

    return fn.map_from_entries(fn.transform(fn.map_entries(value), entry))
