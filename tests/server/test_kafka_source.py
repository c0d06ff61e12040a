"""Messages of Kafka, against a real broker."""

from __future__ import annotations

import gc
import json
import time
import warnings
from collections.abc import Iterator
from itertools import islice
from threading import Timer, active_count

import pytest

from penstock.server.kafka_source import KafkaSource
from penstock.server.sources import Message
from tests.server import kafka_broker
from tests.server.kafka_broker import Broker

# kafka-python 3.0 reads its schemas by functions that Python 3.11 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.fixture(autouse=True)
def sockets() -> Iterator[None]:
    """Collect the sockets that kafka-python leaves open while it connects again."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for _ in range(3):  # objects with finalizers take more than one
            gc.collect()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka_broker.running(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def send(broker: Broker, topic: str, *values: bytes, partition: int = 0) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=broker.servers)
    try:
        for value in values:
            producer.send(topic, value, partition=partition).get(30)
    finally:
        producer.close()


def read(broker: Broker, topic: str, count: int, *, acknowledged: int) -> list[Message]:
    """Read some messages with a consumer of its own, and acknowledge the first of them."""
    source = KafkaSource(broker.servers, topic, "penstock")
    messages = source.messages()
    received = []
    for message in islice(messages, count):
        received.append(message)
        if len(received) <= acknowledged:
            message.acknowledge()
    source.close()
    assert list(messages) == []
    return received


@pytest.mark.extended
def test_what_is_not_acknowledged_comes_again(broker: Broker) -> None:
    values = [json.dumps({"n": n}).encode() for n in range(5)]
    send(broker, "orders", *values, partition=1)
    received = read(broker, "orders", 4, acknowledged=2)
    assert [message.id for message in received] == [f"kafka:orders/1/{n}" for n in range(4)]
    assert [message.payload for message in received] == [{"n": n} for n in range(4)]
    again = read(broker, "orders", 3, acknowledged=3)
    assert [message.id for message in again] == [f"kafka:orders/1/{n}" for n in (2, 3, 4)]


@pytest.mark.extended
def test_values_that_are_no_objects(broker: Broker) -> None:
    send(broker, "texts", b"plain", b"[1]", b"\xff", b'{"a": 1}')
    payloads = [message.payload for message in read(broker, "texts", 4, acknowledged=4)]
    assert payloads == [{"text": "plain"}, {"text": "[1]"}, {"text": "\ufffd"}, {"a": 1}]


@pytest.mark.extended
def test_goes_on_after_the_broker_was_away(broker: Broker) -> None:
    send(broker, "away", b"1")
    source = KafkaSource(broker.servers, "away", "penstock")
    messages = source.messages()
    first = next(messages)
    first.acknowledge()
    broker.stop()
    broker.start()
    send(broker, "away", b"2")
    second = next(messages)
    second.acknowledge()
    source.close()
    assert [first.id, second.id] == ["kafka:away/0/0", "kafka:away/0/1"]


def test_a_source_that_is_closed_ends_without_a_broker() -> None:
    source = KafkaSource("127.0.0.1:1", "orders", "penstock")
    timer = Timer(0.5, source.close)
    began = time.monotonic()
    timer.start()
    threads = active_count()
    assert list(source.messages()) == []
    assert 0.4 <= time.monotonic() - began < 20
    assert active_count() <= threads
