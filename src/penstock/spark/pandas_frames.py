"""Frames of pandas from Arrow tables, and back, without a change of values or types.

NumPy has no NULL: Arrow turns a BIGINT column with one into doubles, which are
inexact above 2**53, and forgets the precision of decimals. So the columns of these types have
pandas' own nullable types, or Arrow's:

| column | in pandas |
|---|---|
| integers, BOOLEAN | ``Int64`` and the like, ``boolean`` |
| FLOAT and DOUBLE with a NaN | ``Float32``, ``Float64``, which tell NaN from NULL |
| DECIMAL, lists, structs, maps | ``pandas.ArrowDtype`` |
| others | as Arrow converts them |
"""

from __future__ import annotations

from typing import Any

from penstock.lazy import pa, pc

_WIDEST = 38


def to_pandas(table: pa.Table) -> Any:
    """Return the rows as a frame of pandas that `from_pandas` returns with the same types."""
    from pandas import DataFrame

    columns = {position: _column(table.column(position)) for position in range(table.num_columns)}
    frame = DataFrame(columns, copy=False) if columns else table.to_pandas()
    frame.columns = table.column_names
    return frame


def from_pandas(frame: Any) -> pa.Table:
    """Return a frame as an Arrow table without its index.

    Decimals that are Python objects have the scale of the values, and room for larger ones: the
    precision of these rows is no type for the next. Raises ArrowException, TypeError and ValueError
    for columns that Arrow has no type for.
    """
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for position, dtype in enumerate(frame.dtypes):
        field = table.schema.field(position)
        if str(dtype) == "object" and pa.types.is_decimal(field.type):
            wide = field.with_type(pa.decimal128(_WIDEST, field.type.scale))
            table = table.set_column(position, wide, table.column(position).cast(wide.type))
    return table


def _column(values: pa.ChunkedArray) -> Any:
    import pandas

    dtype = _dtype(values)
    if dtype is None:
        return values.to_pandas()
    return pandas.Series(dtype.__from_arrow__(values))


def _dtype(values: pa.ChunkedArray) -> Any:
    """Return the type in pandas that keeps the values; ``None`` where NumPy's does."""
    import pandas

    kind = values.type
    if pa.types.is_decimal(kind) or pa.types.is_nested(kind):
        return pandas.ArrowDtype(kind)
    if pa.types.is_floating(kind) and not pc.any(pc.is_nan(values)).as_py():
        return None
    name = _NULLABLE.get(str(kind))
    return None if name is None else getattr(pandas, name)()


#: pandas' own types that have a NULL, by the texts of Arrow's
_NULLABLE = {
    "bool": "BooleanDtype",
    "float": "Float32Dtype",
    "double": "Float64Dtype",
    **{f"int{bits}": f"Int{bits}Dtype" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"UInt{bits}Dtype" for bits in (8, 16, 32, 64)},
}
