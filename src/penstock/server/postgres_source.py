"""Messages that PostgreSQL sends to a channel by ``NOTIFY``.

PostgreSQL keeps no notification: one that is sent while nobody listens is lost, also during the
moment that it takes to connect again. A message that must not be lost belongs in a table that a
model reads, or is sent by HTTP.

PostgreSQL gives notifications no id, so each gets one of its own when it comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import TYPE_CHECKING

from penstock.errors import EnvironmentMissing
from penstock.server.sources import Message, payload_of
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    import psycopg

_LOOK = 0.5  # seconds after which a source that is closed ends
_LONGEST_WAIT = 30.0  # seconds between two attempts to connect


class PostgresSource:
    """The notifications of one channel."""

    def __init__(self, conninfo: str, channel: str) -> None:
        """Listen to a channel. The connection is made when messages are read.

        Args:
            conninfo: A libpq string or URI.
            channel: The channel, in the letters in which PostgreSQL has it.
        """
        self._conninfo, self._channel = conninfo, channel
        self._closed = Event()
        self._listens = Event()

    def wait_until_listening(self, seconds: float) -> bool:
        """Wait until notifications arrive from now on.

        Args:
            seconds: How long to wait at most.

        Returns:
            True when the source listens.
        """
        return self._listens.wait(seconds)

    def messages(self) -> Iterator[Message]:
        """Yield notifications until the source is closed.

        Yields:
            Message: The next one. Where the connection breaks, it is made again, with growing
                pauses.
        """
        import psycopg

        while not self._closed.is_set():
            connection = self._connect()
            if connection is None:
                return
            try:
                yield from self._notifications(connection)
            except psycopg.OperationalError:  # the server went away: connect again
                continue
            finally:
                self._listens.clear()
                connection.close()

    def close(self) -> None:
        """End `messages` within half a second."""
        self._closed.set()

    def _notifications(self, connection: psycopg.Connection) -> Iterator[Message]:
        while not self._closed.is_set():
            for notification in connection.notifies(timeout=_LOOK):
                id_ = f"postgres:{self._channel}/{new_uuid7()}"
                yield Message(id_, payload_of(notification.payload))
                if self._closed.is_set():
                    return

    def _connect(self) -> psycopg.Connection | None:
        """Connect and listen; None where the source was closed meanwhile."""
        try:
            import psycopg
            import tenacity
            from psycopg import sql
        except ImportError as error:
            raise EnvironmentMissing(
                f"messages of PostgreSQL need {error.name}",
                hint="pip install 'penstock-spark[serve,postgres]'",
            ) from error

        def connect() -> psycopg.Connection | None:
            if self._closed.is_set():
                return None
            connection = psycopg.connect(self._conninfo, autocommit=True)
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            self._listens.set()
            return connection

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(psycopg.OperationalError),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=_LONGEST_WAIT),
            sleep=tenacity.sleep_using_event(self._closed),
        )(connect)
