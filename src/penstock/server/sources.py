"""Messages from elsewhere: the interface of a source, and the sources that there are, by kind.

A source yields messages. Whoever reads them records each one and then acknowledges it. A message
that was recorded and not acknowledged comes again, with the same id: recording it again changes
nothing. So a message counts exactly once, if the source keeps what was not acknowledged. A source
that does not says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from penstock.errors import ConfigError
from penstock.sql.identifiers import nearest

#: the key of a payload that is not a JSON object
TEXT = "text"


def _nothing() -> None:
    """Acknowledge nothing: the source keeps no messages."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        id: The same for the same message, however often it comes.
        payload: Its values.
        acknowledge: To be called when the message is recorded.
    """

    id: str
    payload: Mapping[str, Any]
    acknowledge: Callable[[], None] = _nothing


class MessageSource(Protocol):
    """A source of messages. One thread reads it; another may close it."""

    def messages(self) -> Iterator[Message]:
        """Return messages as they come, until the source is closed.

        Returns:
            The messages. It waits for them, and connects again where a connection breaks.
        """
        ...

    def close(self) -> None:
        """End `messages`, at the latest after a few seconds."""
        ...


# The function of each kind's module that opens a source by its options. They are loaded on use:
# their libraries are extras.
_KINDS: Mapping[str, tuple[str, str]] = {
    "kafka": ("penstock.server.kafka_source", "KafkaSource"),
    "postgres": ("penstock.server.postgres_source", "PostgresSource"),
}


def open_source(kind: str, options: Mapping[str, Any]) -> MessageSource:
    """Open a source.

    Args:
        kind: ``kafka`` or ``postgres``.
        options: The arguments of its class.

    Returns:
        The source. It connects when it is read.

    Raises:
        ConfigError: There is no such kind, or it has no such option, or lacks one.
    """
    if kind not in _KINDS:
        near = nearest(kind, _KINDS)
        raise ConfigError(
            f"messages of {kind!r} are not supported",
            hint=f"did you mean {near!r}?" if near else f"the kinds are {', '.join(_KINDS)}",
        )
    module, name = _KINDS[kind]
    make: Callable[..., MessageSource] = getattr(import_module(module), name)
    try:
        return make(**options)
    except TypeError as error:
        fault = str(error).partition("() ")[2] or str(error)
        raise ConfigError(
            f"the source {kind} {fault}", hint="docs/serve.md lists the options of each source"
        ) from None


def payload_of(text: str) -> Mapping[str, Any]:
    """Return the payload of a text: a JSON object as it is, all else under the key ``text``.

    Args:
        text: The text.

    Returns:
        The payload.
    """
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {TEXT: text}
    return parsed if isinstance(parsed, dict) else {TEXT: text}
