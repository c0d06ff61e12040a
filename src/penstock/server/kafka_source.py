"""Read the messages of a Kafka topic with a consumer group.

The offset of the group is committed when a message is acknowledged, never before. So each message
is delivered at least once. The id of a message is its topic, partition and offset, so recording it
again changes nothing. The messages of a partition are acknowledged in order.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from penstock.errors import EnvironmentMissing
from penstock.server.sources import Message, payload_of

if TYPE_CHECKING:
    from kafka import KafkaConsumer

_POLL_TIMEOUT = 500  # milliseconds; a closed source ends after at most this time
_CONNECT_TIMEOUT = 5000  # milliseconds
_PORT = 9092
_MAX_WAIT = 30.0  # seconds between two attempts to connect


class KafkaSource:
    """The messages of one topic."""

    def __init__(
        self, servers: str, topic: str, group: str, options: Mapping[str, Any] | None = None
    ) -> None:
        """Create a source. It connects when its messages are read.

        Args:
            servers: The brokers as ``HOST:PORT,HOST:PORT``.
            topic: The topic.
            group: The consumer group. A new group starts at the oldest message.
            options: Further options of kafka-python's consumer, such as ``security_protocol``.
        """
        self._servers, self._topic, self._group = servers.split(","), topic, group
        self._options = dict(options or {})
        self._closed = Event()

    def messages(self) -> Iterator[Message]:
        """Yield messages until the source is closed.

        Yields:
            Message: The next message. A failed connection is retried with exponential backoff.
        """
        consumer = self._connect()
        if consumer is None:
            return
        try:
            while not self._closed.is_set():
                for records in consumer.poll(timeout_ms=_POLL_TIMEOUT).values():
                    for record in records:
                        yield self._make_message(consumer, record)
                        if self._closed.is_set():
                            return
        finally:
            consumer.close(autocommit=False)

    def close(self) -> None:
        """End `messages` within half a second."""
        self._closed.set()

    def _make_message(self, consumer: KafkaConsumer, record: Any) -> Message:
        text = (record.value or b"").decode(errors="replace")
        id_ = f"kafka:{record.topic}/{record.partition}/{record.offset}"
        return Message(id_, payload_of(text), partial(_acknowledge, consumer, record))

    def _connect(self) -> KafkaConsumer | None:
        """Connect to the brokers. Return None if the source was closed meanwhile."""
        if self._closed.is_set():
            return None
        try:
            import tenacity
            from kafka import KafkaConsumer
        except ImportError as error:
            raise EnvironmentMissing(
                f"messages of Kafka need {error.name}",
                hint="pip install 'penstock-spark[serve,kafka]'",
            ) from error

        def connect() -> KafkaConsumer | None:
            if self._closed.is_set():
                return None
            _check_reachable(self._servers)
            return KafkaConsumer(
                self._topic,
                bootstrap_servers=self._servers,
                group_id=self._group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                bootstrap_timeout_ms=_CONNECT_TIMEOUT,
                **self._options,
            )

        def is_transient(error: BaseException) -> bool:
            return isinstance(error, OSError) or bool(getattr(error, "retriable", False))

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_transient),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=_MAX_WAIT),
            sleep=tenacity.sleep_using_event(self._closed),
        )(connect)


def _check_reachable(servers: Sequence[str]) -> None:
    """Raise OSError if no broker can be reached.

    A consumer of kafka-python 3.0.12 that cannot connect leaves a thread behind. Without this
    check, each attempt would leave one.
    """
    last_error = OSError("there is no broker to connect to")
    for server in servers:
        address = urlsplit(f"//{server.strip()}")
        pair = (address.hostname, address.port or _PORT)
        try:
            socket.create_connection(pair, _CONNECT_TIMEOUT / 1000).close()
        except OSError as error:
            last_error = error
        else:
            return
    raise last_error


def _acknowledge(consumer: KafkaConsumer, record: Any) -> None:
    """Commit the offset after a message.

    The commit fails if the group has assigned the partition to another consumer. Then that consumer
    reads the message again.
    """
    from kafka.errors import CommitFailedError
    from kafka.structs import OffsetAndMetadata, TopicPartition

    offset = OffsetAndMetadata(record.offset + 1, "", -1)
    try:
        consumer.commit({TopicPartition(record.topic, record.partition): offset})
    except CommitFailedError:
        return
