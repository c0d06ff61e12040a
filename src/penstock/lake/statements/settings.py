"""SET and RESET of the settings for retries, which hold for the attached lake and are not stored.

Names, defaults and scopes are those of DuckDB's extension (format 0.3, "Configuration"; measured
on 1.5.5, which takes SESSION and GLOBAL and refuses LOCAL).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from penstock.lake.catalog.commits.retry import RetryPolicy
from penstock.lake.statements.answer import Answer, nothing
from penstock.lake.statements.session import Session
from penstock.sql.statement import Reader
from penstock.sql.tokens import NUMBER


@dataclass(frozen=True, slots=True)
class _Setting:
    """``put`` gives the policy with a value, or ``None`` for one that is not ``wanted``."""

    wanted: str
    default: Decimal
    put: Callable[[RetryPolicy, Decimal], RetryPolicy | None]


def _count(policy: RetryPolicy, value: Decimal) -> RetryPolicy | None:
    return None if value % 1 else replace(policy, retries=int(value))


def _wait(policy: RetryPolicy, milliseconds: Decimal) -> RetryPolicy:
    return replace(policy, wait=float(milliseconds / 1000))


def _backoff(policy: RetryPolicy, factor: Decimal) -> RetryPolicy | None:
    return None if factor < 1 else replace(policy, backoff=float(factor))


_SETTINGS: Mapping[str, _Setting] = {
    "ducklake_max_retry_count": _Setting("a whole number", Decimal(10), _count),
    "ducklake_retry_wait_ms": _Setting("a number of milliseconds", Decimal(100), _wait),
    "ducklake_retry_backoff": _Setting("a number from 1 on", Decimal("1.5"), _backoff),
}
_OTHERS = "use CALL set_option(...) for the lake's options, spark.conf for the session's"


def set_(session: Session, reader: Reader) -> Answer:
    """``SET [SESSION | GLOBAL] name = value``"""
    reader.expect("SET")
    reader.accept_any("SESSION", "GLOBAL")
    setting = _known(reader, "SET")
    if reader.accept_any("=", "TO") is None:
        raise reader.wrong(f"= is expected, not {reader.shown()}")
    token, policy = reader.token, None
    if token.kind == NUMBER:
        policy = setting.put(session.catalog.retry, Decimal(token.text))
    if policy is None:
        raise reader.wrong(f"{setting.wanted} is expected, not {reader.shown()}")
    reader.next()
    reader.finish()
    session.catalog.retry = policy
    return nothing(session.spark)


def reset(session: Session, reader: Reader) -> Answer:
    """``RESET [SESSION | GLOBAL] name``: the default holds again."""
    reader.expect("RESET")
    reader.accept_any("SESSION", "GLOBAL")
    setting = _known(reader, "RESET")
    reader.finish()
    policy = setting.put(session.catalog.retry, setting.default)
    session.catalog.retry = policy or session.catalog.retry
    return nothing(session.spark)


def _known(reader: Reader, word: str) -> _Setting:
    at = reader.token.start
    name = reader.name("a setting").lower()
    if name not in _SETTINGS:
        hint = f"{_OTHERS}; {word} takes {', '.join(_SETTINGS)}"
        raise reader.unsupported(f"{word} {name}", hint, at)
    return _SETTINGS[name]
