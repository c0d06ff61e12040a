"""pyarrow and sqlglot's classes of trees, loaded when something of them is used.

What a command does not need it does not load: sqlglot takes longer to load than all else that a
command needs which finds its scripts in the cache. Modules take these names from here, at their
top; those of Spark's functions are in `penstock.spark.functions`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Late(ModuleType):
    """Stand for a module, by its full name, until an attribute of it is asked for.

    Each attribute stays in this module's own dictionary, as quick as any other's.
    """

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from sqlglot import exp
else:
    exp = Late("sqlglot.expressions")
    pa = Late("pyarrow")
    pc = Late("pyarrow.compute")
    pq = Late("pyarrow.parquet")

__all__ = ["exp", "pa", "pc", "pq"]
