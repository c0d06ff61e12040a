"""``exp``: the classes of sqlglot's trees, loaded when the first of them is asked for.

sqlglot takes longer to load than all else that a command needs which finds its scripts in the
cache. Modules that such a command imports take ``exp`` from here, and nothing of it at their top.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp
else:

    class _Late(ModuleType):
        """What was asked for stays in the module's own dictionary, as quick as any other's."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    exp = _Late("sqlglot.expressions")

__all__ = ["exp"]
