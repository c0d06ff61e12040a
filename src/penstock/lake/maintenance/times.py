"""How old is old: a moment that was given, or an age that the lake has as an option."""

from __future__ import annotations

import datetime as dt

from penstock.errors import ArgumentError
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.values.intervals import parse_interval


def moment(name: str, given: dt.datetime | None) -> dt.datetime | None:
    """``given`` as it is. Raises ArgumentError for a time without a zone."""
    if given is not None and given.tzinfo is None:
        raise ArgumentError(
            f"{name} is {given}, of which nobody can tell the zone",
            hint="give an aware datetime, such as datetime.now(UTC) - timedelta(days=7)",
        )
    return given


def by_option(catalog: Catalog, key: str) -> dt.datetime | None:
    """Now less the age that the option says; ``None`` where it says none."""
    told = catalog.option(key)
    age = parse_interval(told) if told else None
    return None if age is None else age.before(dt.datetime.now(dt.UTC))


_KEPT = dt.timedelta(days=2)


def age_limit(
    catalog: Catalog, older_than: dt.datetime | None, *, cleanup_all: bool
) -> dt.datetime | None:
    """Before which moment files may go; ``None``: at any age.

    Raises ArgumentError where both are said.
    """
    if cleanup_all and older_than is not None:
        raise ArgumentError(
            "files are removed either all (cleanup_all) or by their age (older_than)",
            hint="give one of the two",
        )
    if cleanup_all:
        return None
    given = moment("older_than", older_than) or by_option(catalog, "delete_older_than")
    return given or dt.datetime.now(dt.UTC) - _KEPT
