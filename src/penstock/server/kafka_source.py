"""Messages of a Kafka topic, read by a consumer group.

The position of the group is committed when a message is acknowledged, never before: a message comes
at least once. Its id is its topic, partition and offset, so that recording it again changes
nothing. Messages of one partition are acknowledged in their order.
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

_LOOK = 500  # milliseconds after which a source that is closed ends
_CONNECT = 5000  # milliseconds for which one attempt to connect waits
_PORT = 9092
_LONGEST_WAIT = 30.0  # seconds between two attempts to connect


class KafkaSource:
    """The messages of one topic."""

    def __init__(
        self, servers: str, topic: str, group: str, options: Mapping[str, Any] | None = None
    ) -> None:
        """Read a topic. The connection is made when messages are read.

        Args:
            servers: Brokers as ``HOST:PORT,HOST:PORT``.
            topic: The topic.
            group: The consumer group. A new group begins with the oldest message.
            options: Further options of kafka-python's consumer, such as ``security_protocol``.
        """
        self._servers, self._topic, self._group = servers.split(","), topic, group
        self._options = dict(options or {})
        self._closed = Event()

    def messages(self) -> Iterator[Message]:
        """Yield messages until the source is closed.

        Yields:
            Message: The next one. A broker that cannot be reached is tried again, with growing
                pauses.
        """
        consumer = self._connect()
        if consumer is None:
            return
        try:
            while not self._closed.is_set():
                for records in consumer.poll(timeout_ms=_LOOK).values():
                    for record in records:
                        yield self._message(consumer, record)
                        if self._closed.is_set():
                            return
        finally:
            consumer.close(autocommit=False)

    def close(self) -> None:
        """End `messages` within half a second."""
        self._closed.set()

    def _message(self, consumer: KafkaConsumer, record: Any) -> Message:
        text = (record.value or b"").decode(errors="replace")
        id_ = f"kafka:{record.topic}/{record.partition}/{record.offset}"
        return Message(id_, payload_of(text), partial(_acknowledge, consumer, record))

    def _connect(self) -> KafkaConsumer | None:
        """Connect; None where the source was closed meanwhile."""
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
            _reach(self._servers)
            return KafkaConsumer(
                self._topic,
                bootstrap_servers=self._servers,
                group_id=self._group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                bootstrap_timeout_ms=_CONNECT,
                **self._options,
            )

        def is_passing(error: BaseException) -> bool:
            return isinstance(error, OSError) or bool(getattr(error, "retriable", False))

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_passing),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=_LONGEST_WAIT),
            sleep=tenacity.sleep_using_event(self._closed),
        )(connect)


def _reach(servers: Sequence[str]) -> None:
    """Raise OSError unless one of the brokers can be reached.

    A consumer of kafka-python that reaches none leaves a thread behind (seen with 3.0.12), which
    would be one for each attempt.
    """
    fault = OSError("there is no broker to connect to")
    for server in servers:
        place = urlsplit(f"//{server.strip()}")
        try:
            socket.create_connection((place.hostname, place.port or _PORT), _CONNECT / 1000).close()
        except OSError as error:
            fault = error
        else:
            return
    raise fault


def _acknowledge(consumer: KafkaConsumer, record: Any) -> None:
    """Commit the position behind a message.

    Where the group has given the partition to another consumer meanwhile, that one reads the
    message again.
    """
    from kafka.errors import CommitFailedError
    from kafka.structs import OffsetAndMetadata, TopicPartition

    position = OffsetAndMetadata(record.offset + 1, "", -1)
    try:
        consumer.commit({TopicPartition(record.topic, record.partition): position})
    except CommitFailedError:
        return
