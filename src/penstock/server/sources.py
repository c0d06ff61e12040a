"""Sources of messages other than HTTP: their interface, and the kinds of sources.

A source yields messages. Its reader records each message and then acknowledges it. A message that
was recorded but not acknowledged is delivered again with the same id, and recording it again
changes nothing. So each message counts exactly once, if the source keeps unacknowledged messages.
The docstring of a source states if it does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from penstock.errors import ConfigError
from penstock.sql.identifiers import nearest

TEXT = "text"
"""The key in the payload for a text that is not a JSON object."""


def _ignore() -> None:
    """Do nothing: the source keeps no messages to acknowledge."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        id: The id. A message that is delivered again has the same id.
        payload: The payload.
        acknowledge: The function to call after the message is recorded.
    """

    id: str
    payload: Mapping[str, Any]
    acknowledge: Callable[[], None] = _ignore


class MessageSource(Protocol):
    """A source of messages. One thread reads it; another may close it."""

    def messages(self) -> Iterator[Message]:
        """Return messages until the source is closed.

        Returns:
            An iterator that waits for messages. It reconnects if a connection is lost.
        """
        ...

    def close(self) -> None:
        """End `messages` within a few seconds."""
        ...


# The module and the class of each kind. They are imported on use: their libraries are extras.
_KINDS: Mapping[str, tuple[str, str]] = {
    "kafka": ("penstock.server.kafka_source", "KafkaSource"),
    "postgres": ("penstock.server.postgres_source", "PostgresSource"),
}


def open_source(kind: str, options: Mapping[str, Any]) -> MessageSource:
    """Create a source.

    Args:
        kind: ``kafka`` or ``postgres``.
        options: The arguments of its class.

    Returns:
        The source. It connects when its messages are read.

    Raises:
        ConfigError: If the kind or an option does not exist, or if a required option is missing.
    """
    if kind not in _KINDS:
        guess = nearest(kind, _KINDS)
        raise ConfigError(
            f"messages of {kind!r} are not supported",
            hint=f"did you mean {guess!r}?" if guess else f"the kinds are {', '.join(_KINDS)}",
        )
    module, name = _KINDS[kind]
    create: Callable[..., MessageSource] = getattr(import_module(module), name)
    try:
        return create(**options)
    except TypeError as error:
        problem = str(error).partition("() ")[2] or str(error)
        raise ConfigError(
            f"the source {kind} {problem}", hint="docs/serve.md lists the options of each source"
        ) from None


def payload_of(text: str) -> Mapping[str, Any]:
    """Return a text as a payload: a JSON object as it is, any other text under the key `TEXT`.

    Args:
        text: The text of a message.

    Returns:
        The payload.
    """
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {TEXT: text}
    return parsed if isinstance(parsed, dict) else {TEXT: text}
