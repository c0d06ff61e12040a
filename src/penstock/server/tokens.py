"""Tokens of those who send messages: created, listed, revoked and verified.

A token is shown once, when it is created. The catalog has its hash only. The token is random and
long, so that a plain SHA-256 tells nothing of it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, insert, select, update

from penstock.engine.state.agenda_tables import TOKEN
from penstock.engine.state.claims import database_time
from penstock.engine.state.tables import to_moment, to_text
from penstock.errors import ArgumentError
from penstock.server.agenda_rows import moment_or_none
from penstock.server.state_access import StateAccess
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog

EVERYTHING = "*"
"""The name of tokens for all messages and for all else that the HTTP API does."""

_PREFIX = "pst_"
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret.

    Attributes:
        id: What it is revoked by.
        name: The name of the messages that it may send, or `EVERYTHING`.
        created_at: When it was created.
        revoked_at: When it was revoked; None while it is valid.
        user: Who created it.
    """

    id: str
    name: str
    created_at: datetime
    revoked_at: datetime | None = None
    user: str | None = None


class TokenStore:
    """The tokens of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        """Use a catalog, without asking it anything.

        Args:
            catalog: The catalog of the project's first lake.
        """
        self._access = StateAccess(catalog)

    def create(self, name: str, user: str | None = None) -> tuple[Token, str]:
        """Create a token.

        Args:
            name: The name of the messages that it may send, or `EVERYTHING`.
            user: Who creates it.

        Returns:
            The token, and its secret, which nothing returns again.

        Raises:
            ArgumentError: There is no name.
        """
        if not name.strip():
            raise ArgumentError(
                "a token needs the name of the messages that it may send",
                hint=f"give a name, or {EVERYTHING} for all that the HTTP API does",
            )
        secret = _PREFIX + secrets.token_urlsafe(_BYTES)

        def act(connection: Connection) -> Token:
            token = Token(new_uuid7(), name, database_time(connection), user=user)
            row: dict[str, Any] = {"token_id": token.id, "name": name, "token_hash": _hash(secret)}
            row |= {"created_at": to_text(token.created_at), "user_name": user}
            connection.execute(insert(TOKEN).values(**row))
            return token

        return self._access.write(act), secret

    def list_tokens(self) -> list[Token]:
        """Return all tokens, the oldest first, with those that were revoked.

        Returns:
            The tokens.
        """
        query = select(TOKEN).order_by(TOKEN.c.created_at, TOKEN.c.token_id)
        return self._access.read(
            lambda connection: [_as_token(row) for row in connection.execute(query)], []
        )

    def revoke(self, token_id: str) -> bool:
        """Revoke a token.

        Args:
            token_id: Its id.

        Returns:
            False where no valid token has this id.
        """

        def act(connection: Connection) -> bool:
            valid = (TOKEN.c.token_id == token_id, TOKEN.c.revoked_at.is_(None))
            ended = {"revoked_at": to_text(database_time(connection))}
            return connection.execute(update(TOKEN).where(*valid).values(**ended)).rowcount == 1

        return self._access.write(act)

    def verify(self, name: str, secret: str) -> Token | None:
        """Return the valid token with a secret.

        The time that this takes does not depend on the secret.

        Args:
            name: The name of a message; `EVERYTHING` for what only such tokens may do.
            secret: What a caller shows.

        Returns:
            The token; None where there is none for this name.
        """
        valid = (TOKEN.c.name.in_({name, EVERYTHING}), TOKEN.c.revoked_at.is_(None))
        query = select(TOKEN).where(*valid)
        no_rows: list[Row[Any]] = []
        rows = self._access.read(lambda connection: list(connection.execute(query)), no_rows)
        shown = _hash(secret)
        # All hashes are compared, also after a match.
        matches = [row for row in rows if hmac.compare_digest(row.token_hash, shown)]
        return _as_token(matches[0]) if matches else None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _as_token(row: Row[Any]) -> Token:
    created, revoked = to_moment(row.created_at), moment_or_none(row.revoked_at)
    return Token(row.token_id, row.name, created, revoked, row.user_name)
