"""Dispatch of macros: ``penstock__``, then ``spark__``, then ``default__``.

Packages write their macros for Spark as ``spark__x``. An adapter finds those of another one by its
plugin's dependencies; that would load dbt-spark, whose own macros create tables in another way. So
the name alone is added, and the macros are those of packages and projects.
"""

from __future__ import annotations

from typing import Protocol

ADAPTER = "penstock"
PARENT = "spark"


class AdapterNames(Protocol):
    """The part of dbt's container of adapters that names those whose macros apply."""

    def get_adapter_type_names(self, name: str | None) -> list[str]:
        """Return an adapter and its parents, in the order of dispatch."""
        ...


def add_parent(container: AdapterNames) -> None:
    """Let macros and materializations for Spark apply to Penstock. A second call does nothing."""
    names_of = container.get_adapter_type_names
    if getattr(names_of, "adds_parent", False):
        return

    def with_parent(name: str | None) -> list[str]:
        names = names_of(name)
        return [*names, PARENT] if name == ADAPTER and PARENT not in names else names

    with_parent.adds_parent = True  # type: ignore[attr-defined] # a mark on the function itself
    container.get_adapter_type_names = with_parent  # type: ignore[method-assign] # dbt has no hook
