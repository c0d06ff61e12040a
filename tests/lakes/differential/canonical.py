"""One text for one row, the same from DuckDB's Arrow values and from Spark's.

Spark makes a row a JSON array of texts in the query itself, so that rows of any tables fit into one
DataFrame and one job. DuckDB's rows come as Arrow. Nothing passes through a type that rounds:
times count from the epoch, floats are their bits in hexadecimal, decimals keep their scale.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

# A leaf is text, a struct or list a list of its values, a map a sorted list of pairs.
Value = str | list[Any] | None

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def of_arrow(table: pa.Table) -> list[str]:
    """The text of each row, sorted."""
    columns = [[arrow_value(scalar) for scalar in column] for column in table.columns]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    return sorted(json.dumps(row) for row in rows)


def arrow_value(scalar: pa.Scalar) -> Value:
    if not scalar.is_valid:
        return None
    for test, convert in _ARROW:
        if test(scalar.type):
            return convert(scalar)
    raise TypeError(f"no text for Arrow's {scalar.type}")


def _float(value: float) -> str:
    return "nan" if value != value else value.hex()  # noqa: PLR0124 - what NaN is


def _decimal(value: Decimal) -> str:
    return format(value, "f")


_INFINITE = (1 << 63) - 1


def _moment(scalar: pa.Scalar) -> str:
    """Microseconds; infinite ones are the last count of whatever unit, also where they are read."""
    if abs(scalar.value) == _INFINITE:
        return str(scalar.value)
    nanoseconds = scalar.value * (1_000_000_000 // _PER_SECOND[scalar.type.unit])
    micros, rest = divmod(nanoseconds, 1000)
    return f"{micros}.{rest:03}" if rest else str(micros)


def _time(scalar: pa.Scalar) -> str:
    """As DuckDB writes it; 24:00:00 is one."""
    per_second = _PER_SECOND[scalar.type.unit]
    seconds, rest = divmod(scalar.value, per_second)
    fraction = f".{rest:0{len(str(per_second)) - 1}}".rstrip("0") if rest else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def _interval(scalar: pa.Scalar) -> list[Any]:
    months, days, nanoseconds = scalar.as_py()
    return [str(months), str(days), str(nanoseconds // 1000)]


def json_text(text: str) -> str:
    """One text for JSON that means the same; numbers with a fraction as they are written."""
    return json.dumps(json.loads(text, parse_float=str), sort_keys=True)


_Arrow = tuple[Callable[[pa.DataType], bool], Callable[[Any], Value]]
_ARROW: tuple[_Arrow, ...] = (
    (pa.types.is_boolean, lambda s: "true" if s.as_py() else "false"),
    (pa.types.is_integer, lambda s: str(s.as_py())),
    (pa.types.is_floating, lambda s: _float(s.as_py())),
    (pa.types.is_decimal, lambda s: _decimal(s.as_py())),
    (pa.types.is_string, lambda s: s.as_py()),
    (pa.types.is_large_string, lambda s: s.as_py()),
    (pa.types.is_binary, lambda s: s.as_py().hex().upper()),
    (pa.types.is_large_binary, lambda s: s.as_py().hex().upper()),
    (pa.types.is_date, lambda s: str(s.value)),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_time, _time),
    (pa.types.is_interval, _interval),
    (pa.types.is_struct, lambda s: [arrow_value(value) for value in s.values()]),
    (
        pa.types.is_map,
        lambda s: _map([arrow_value(e["key"]), arrow_value(e["value"])] for e in s.values),
    ),
    (
        lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind),
        lambda s: [arrow_value(item) for item in s.values],
    ),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda s: arrow_value(s.value)),
    (pa.types.is_null, lambda _: None),
)


def _map(pairs: Any) -> list[Any]:
    return sorted(pairs, key=json.dumps)


def arrow_type(kind: pa.DataType) -> str:
    """The type that Spark should have, in Spark's own short text; field names included."""
    for test, name in _ARROW_TYPES:
        if test(kind):
            return name(kind)
    return _TYPES.get(str(kind), str(kind))


def _struct_type(kind: pa.StructType) -> str:
    fields = ",".join(f"{field.name}:{arrow_type(field.type)}" for field in kind)
    return f"struct<{fields}>"


_ArrowType = tuple[Callable[[pa.DataType], bool], Callable[[Any], str]]
_ARROW_TYPES: tuple[_ArrowType, ...] = (
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda k: arrow_type(k.storage_type)),
    (pa.types.is_struct, _struct_type),
    (pa.types.is_map, lambda k: f"map<{arrow_type(k.key_type)},{arrow_type(k.item_type)}>"),
    (pa.types.is_list, lambda k: f"array<{arrow_type(k.value_type)}>"),
    (pa.types.is_time, lambda _: "string"),
    (pa.types.is_timestamp, lambda k: "timestamp_ntz" if k.tz is None else "timestamp"),
    (pa.types.is_decimal, lambda k: f"decimal({k.precision},{k.scale})"),
)
_TYPES: Mapping[str, str] = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float": "float",
    "double": "double",
    "date32[day]": "date",
    "string": "string",
    "binary": "binary",
    "month_day_nano_interval": "struct<months:int,days:int,micros:bigint>",
}


def in_spark(df: DataFrame) -> Column:
    """A column with the row as a JSON array of texts; `of_spark` reads it."""
    from pyspark.sql import functions as fn

    fields = df.schema.fields
    quoted = ["`" + field.name.replace("`", "``") + "`" for field in fields]
    texts = [
        _text(fn.col(name), field.dataType).alias(f"c{at}")
        for at, (name, field) in enumerate(zip(quoted, fields, strict=True))
    ]
    return fn.to_json(fn.struct(*texts), {"ignoreNullFields": "false"})


def of_spark(text: str, kinds: list[DataType]) -> str:
    """The row that `in_spark` wrote, as `of_arrow` has it."""
    values = json.loads(text).values()
    return json.dumps([spark_value(v, kind) for v, kind in zip(values, kinds, strict=True)])


def _text(value: Column, kind: DataType) -> Column:
    nested = _SPARK_NESTED.get(kind.typeName())
    if nested is not None:
        return nested(value, kind)
    leaf = _SPARK_LEAVES.get(kind.typeName())
    return value.cast("string") if leaf is None else leaf(value)


def _struct_text(value: Column, kind: Any) -> Column:
    from pyspark.sql import functions as fn

    fields = [
        _text(value.getField(field.name), field.dataType).alias(f"f{at}")
        for at, field in enumerate(kind.fields)
    ]
    return fn.when(value.isNotNull(), fn.struct(*fields))


def _array_text(value: Column, kind: Any) -> Column:
    from pyspark.sql import functions as fn

    return fn.transform(value, lambda item: _text(item, kind.elementType))


def _map_text(value: Column, kind: Any) -> Column:
    from pyspark.sql import functions as fn

    return fn.transform(
        fn.map_entries(value),
        lambda entry: fn.struct(
            _text(entry["key"], kind.keyType).alias("k"),
            _text(entry["value"], kind.valueType).alias("v"),
        ),
    )


def _leaf(name: str) -> Callable[[Column], Column]:
    def text(value: Column) -> Column:
        from pyspark.sql import functions as fn

        return getattr(fn, name)(value).cast("string")  # type: ignore[no-any-return] # by name

    return text


_SPARK_NESTED: Mapping[str, Callable[[Column, Any], Column]] = {
    "struct": _struct_text,
    "array": _array_text,
    "map": _map_text,
}
_SPARK_LEAVES: Mapping[str, Callable[[Column], Column]] = {
    "float": lambda value: value.cast("double").cast("string"),
    "binary": _leaf("hex"),
    "date": _leaf("unix_date"),
    "timestamp": _leaf("unix_micros"),
    # The session's zone is UTC.
    "timestamp_ntz": lambda value: _leaf("unix_micros")(value.cast("timestamp")),
    "variant": _leaf("to_json"),
}


def spark_value(value: Any, kind: DataType) -> Value:
    if value is None:
        return None
    convert = _FROM_SPARK.get(kind.typeName())
    return str(value) if convert is None else convert(value, kind)


_FROM_SPARK: Mapping[str, Callable[[Any, Any], Value]] = {
    "struct": lambda value, kind: [
        spark_value(v, field.dataType) for v, field in zip(value.values(), kind.fields, strict=True)
    ],
    "array": lambda value, kind: [spark_value(item, kind.elementType) for item in value],
    "map": lambda value, kind: _map(
        [spark_value(e["k"], kind.keyType), spark_value(e["v"], kind.valueType)] for e in value
    ),
    "float": lambda value, _: _float(float(value)),
    "double": lambda value, _: _float(float(value)),
    "variant": lambda value, _: json_text(value),
    "decimal": lambda value, _: _decimal(Decimal(value)),
}


def fits(arrow: pa.DataType, spark: DataType) -> bool:
    """Whether Spark's type is the one that stands for DuckDB's. A variant comes as text."""
    name = spark.simpleString()
    return name == arrow_type(arrow) or (name == "variant" and pa.types.is_string(arrow))
