"""Create, list, revoke and verify the tokens of HTTP clients.

A token is shown once, when it is created. The catalog stores only its hash. A token has 256 random
bits, so a plain SHA-256 protects it.
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
from penstock.server.agenda_rows import parse_time
from penstock.server.state_access import StateAccess
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog

EVERYTHING = "*"
"""The name of tokens that permit all messages and all other requests of the HTTP API."""

_PREFIX = "pst_"
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret.

    Attributes:
        id: The id, by which the token is revoked.
        name: The name of the messages that it permits, or `EVERYTHING`.
        created_at: When it was created.
        revoked_at: When it was revoked; None while it is valid.
        user: The user who created it.
    """

    id: str
    name: str
    created_at: datetime
    revoked_at: datetime | None = None
    user: str | None = None


class TokenStore:
    """The tokens of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        """Create a store. It does not read the catalog yet.

        Args:
            catalog: The catalog of the project's first lake.
        """
        self._access = StateAccess(catalog)

    def create(self, name: str, user: str | None = None) -> tuple[Token, str]:
        """Create a token.

        Args:
            name: The name of the messages that it permits, or `EVERYTHING`.
            user: The user who creates it.

        Returns:
            The token and its secret. The secret cannot be read again.

        Raises:
            ArgumentError: If the name is blank.
        """
        if not name.strip():
            raise ArgumentError(
                "a token needs the name of the messages that it permits",
                hint=f"give a name, or {EVERYTHING} for all requests of the HTTP API",
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
        """Return all tokens, the oldest first, including revoked ones.

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
            token_id: The id of the token.

        Returns:
            False if no valid token has this id.
        """

        def act(connection: Connection) -> bool:
            valid = (TOKEN.c.token_id == token_id, TOKEN.c.revoked_at.is_(None))
            values = {"revoked_at": to_text(database_time(connection))}
            return connection.execute(update(TOKEN).where(*valid).values(**values)).rowcount == 1

        return self._access.write(act)

    def verify(self, name: str, secret: str) -> Token | None:
        """Find the valid token with a secret.

        The duration does not depend on the secret.

        Args:
            name: The name of a message, or `EVERYTHING`.
            secret: The secret.

        Returns:
            The token; None if no token for this name or for `EVERYTHING` has the secret.
        """
        valid = (TOKEN.c.name.in_({name, EVERYTHING}), TOKEN.c.revoked_at.is_(None))
        query = select(TOKEN).where(*valid)
        no_rows: list[Row[Any]] = []
        rows = self._access.read(lambda connection: list(connection.execute(query)), no_rows)
        digest = _hash(secret)
        # Compare all hashes, also after a match: the duration must not depend on the secret.
        matches = [row for row in rows if hmac.compare_digest(row.token_hash, digest)]
        return _as_token(matches[0]) if matches else None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _as_token(row: Row[Any]) -> Token:
    created, revoked = to_moment(row.created_at), parse_time(row.revoked_at)
    return Token(row.token_id, row.name, created, revoked, row.user_name)
