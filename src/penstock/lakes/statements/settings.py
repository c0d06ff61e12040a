"""SET and RESET of the settings for retries, which hold for the attached lake and are not stored;
USE, which sets the schema of names without one.

Names, defaults and scopes are those of DuckDB's extension (format 0.3, "Configuration"; measured
on 1.5.5, which takes SESSION and GLOBAL and refuses LOCAL).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from penstock.lakes.catalog.commits.retry import RetryPolicy
from penstock.lakes.format import naming
from penstock.lakes.format.naming import DEFAULT_SCHEMA, fold
from penstock.lakes.statements.session import Answer, Session, nothing
from penstock.sql.statement import Reader, StatementText
from penstock.sql.tokens import NUMBER


@dataclass(frozen=True, slots=True)
class _Setting:
    """``put`` returns the policy with a value, or ``None`` for a value that is not ``wanted``."""

    wanted: str
    default: Decimal
    put: Callable[[RetryPolicy, Decimal], RetryPolicy | None]


_SETTINGS: Mapping[str, _Setting] = {
    "ducklake_max_retry_count": _Setting(
        "a whole number",
        Decimal(10),
        lambda policy, count: None if count % 1 else replace(policy, retries=int(count)),
    ),
    "ducklake_retry_wait_ms": _Setting(
        "a number of milliseconds",
        Decimal(100),
        lambda policy, milliseconds: replace(policy, wait=float(milliseconds / 1000)),
    ),
    "ducklake_retry_backoff": _Setting(
        "a number from 1 on",
        Decimal("1.5"),
        lambda policy, factor: None if factor < 1 else replace(policy, backoff=float(factor)),
    ),
}
# Settings of DuckDB's session that are options of the lake here, for all who write to it.
_OPTIONS: Mapping[str, str] = {
    "ducklake_default_data_inlining_row_limit": "data_inlining_row_limit",
    "ducklake_target_file_size": "target_file_size",
    "ducklake_write_deletion_vectors": "write_deletion_vectors",
}
_OTHERS = "use CALL set_option(...) for the lake's options, spark.conf for the session's"


@dataclass(frozen=True, slots=True)
class Set:
    """A SET, or the RESET of a setting to its default."""

    name: str
    value: Decimal


@dataclass(frozen=True, slots=True)
class Use:
    """``USE schema`` or, with the lake before it, ``USE lake.schema``."""

    before: tuple[str, ...]
    name: str
    at: int
    statement: StatementText


def parse(reader: Reader) -> Set:
    """``SET [SESSION | GLOBAL] name = value``"""
    reader.expect("SET")
    reader.accept_any("SESSION", "GLOBAL")
    name = _known(reader, "SET")
    if reader.accept_any("=", "TO") is None:
        raise reader.wrong(f"= is expected, not {reader.shown()}")
    token, setting = reader.token, _SETTINGS[name]
    value = Decimal(token.text) if token.kind == NUMBER else None
    if value is None or setting.put(RetryPolicy(), value) is None:
        raise reader.wrong(f"{setting.wanted} is expected, not {reader.shown()}")
    reader.next()
    reader.finish()
    return Set(name, value)


def parse_reset(reader: Reader) -> Set:
    """``RESET [SESSION | GLOBAL] name``: back to the default."""
    reader.expect("RESET")
    reader.accept_any("SESSION", "GLOBAL")
    name = _known(reader, "RESET")
    reader.finish()
    return Set(name, _SETTINGS[name].default)


def execute(session: Session, setting: Set) -> Answer:
    policy = _SETTINGS[setting.name].put(session.catalog.retry, setting.value)
    session.catalog.retry = policy or session.catalog.retry
    return nothing(session.spark)


def parse_use(reader: Reader) -> Use:
    """``USE schema``, ``USE lake`` (its schema ``main``) or ``USE lake.schema``."""
    reader.expect("USE")
    at = reader.token.start
    *before, name = reader.qualified(1, "a schema")
    reader.finish()
    return Use(tuple(before), name, at, reader.statement)


def use(session: Session, wanted: Use) -> Answer:
    """Set the thread's current schema: names are looked up in it first, then in ``main``, and
    objects are created in it.
    """
    if not wanted.before and session.has_schema(wanted.name):
        session.current.schema = wanted.name
    elif not wanted.before and fold(wanted.name) in session.lakes:
        session.current.schema = DEFAULT_SCHEMA
    else:
        raise wanted.statement.wrong(
            f"schema {'.'.join((*wanted.before, wanted.name))!r} does not exist",
            wanted.at,
            f"CREATE SCHEMA makes one; the lake is called {naming.called(session.lakes)}",
        )
    return nothing(session.spark)


def _known(reader: Reader, word: str) -> str:
    at = reader.token.start
    name = reader.name("a setting").lower()
    if name in _OPTIONS:
        hint = f"write CALL lake.set_option('{_OPTIONS[name]}', ...): it is an option of the lake"
        raise reader.unsupported(f"{word} {name}", hint, at)
    if name not in _SETTINGS:
        hint = f"{_OTHERS}; {word} takes {', '.join(_SETTINGS)}"
        raise reader.unsupported(f"{word} {name}", hint, at)
    return name
