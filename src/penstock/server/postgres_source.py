"""Receive the notifications of a PostgreSQL channel (``NOTIFY``).

PostgreSQL does not store notifications. A notification is lost if no process listens, for example
during a reconnect. For messages that must not be lost, use a table that a model reads, or HTTP.

Notifications have no id in PostgreSQL. Each one gets a new id when it arrives.
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

_POLL_TIMEOUT = 0.5  # seconds; a closed source ends after at most this time
_MAX_WAIT = 30.0  # seconds between two attempts to connect


class PostgresSource:
    """The notifications of one channel."""

    def __init__(self, conninfo: str, channel: str) -> None:
        """Create a source. It connects when its messages are read.

        Args:
            conninfo: A libpq connection string or URI.
            channel: The channel. Upper and lower case differ.
        """
        self._conninfo, self._channel = conninfo, channel
        self._closed = Event()
        self._is_listening = Event()

    def wait_until_listening(self, seconds: float) -> bool:
        """Wait until the source listens to the channel.

        Args:
            seconds: The maximum wait.

        Returns:
            True if the source listens.
        """
        return self._is_listening.wait(seconds)

    def messages(self) -> Iterator[Message]:
        """Yield notifications until the source is closed.

        Yields:
            Message: The next message. A failed connection is retried with exponential backoff.
        """
        import psycopg

        while not self._closed.is_set():
            connection = self._connect()
            if connection is None:
                return
            try:
                yield from self._read_notifications(connection)
            except psycopg.OperationalError:  # the connection is lost: connect again
                continue
            finally:
                self._is_listening.clear()
                connection.close()

    def close(self) -> None:
        """End `messages` within half a second."""
        self._closed.set()

    def _read_notifications(self, connection: psycopg.Connection) -> Iterator[Message]:
        while not self._closed.is_set():
            for notification in connection.notifies(timeout=_POLL_TIMEOUT):
                id_ = f"postgres:{self._channel}/{new_uuid7()}"
                yield Message(id_, payload_of(notification.payload))
                if self._closed.is_set():
                    return

    def _connect(self) -> psycopg.Connection | None:
        """Connect and listen. Return None if the source was closed meanwhile."""
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
            self._is_listening.set()
            return connection

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(psycopg.OperationalError),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=_MAX_WAIT),
            sleep=tenacity.sleep_using_event(self._closed),
        )(connect)
