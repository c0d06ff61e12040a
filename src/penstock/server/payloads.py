"""Read the payload of a request: a JSON object of bounded size and depth.

Payloads are data. What one JSON reader takes and another refuses, or reads differently, is refused
here: a key that comes twice, NaN, numbers that no type holds, halves of characters.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.errors import ArgumentError, PartitionError
from penstock.model.script.file_uris import why_no_segment
from penstock.model.time.partition import PartitionSpec, value_from
from penstock.server.http_security import RefusedRequest

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_DEPTH = 64
MAX_DIGITS = 38  # what DECIMAL holds
_DYNAMIC = "dynamic"
_TOO_LARGE = "store the data where a model reads it, and send its name"


def check_content(request: Request) -> None:
    """Check the headers that describe a body, before any of it is read.

    Args:
        request: The request.

    Raises:
        RefusedRequest: Unless the body is JSON without compression.
    """
    types = request.headers.getlist("content-type")
    media_type = types[0].partition(";")[0].strip().lower() if len(types) == 1 else ""
    if media_type != "application/json":
        raise RefusedRequest(
            415, "the body is not JSON", hint="send the header Content-Type: application/json"
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedRequest(415, "the body is compressed", hint="send it without compression")


async def read_body(request: Request, *, limit: int, seconds: float) -> bytes:
    """Read a body up to a limit. A longer one is not held in memory.

    Args:
        request: The request.
        limit: Its bytes at most.
        seconds: The time in which it has to arrive.

    Returns:
        The body.

    Raises:
        RefusedRequest: If it is longer, slower, or ends early.
    """
    from starlette.requests import ClientDisconnect

    too_large = f"the body is longer than {limit} bytes"
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced[:20]) > limit:
        raise RefusedRequest(413, too_large, hint=_TOO_LARGE)
    chunks = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                if len(chunks) + len(chunk) > limit:
                    raise RefusedRequest(
                        413, f"the body is longer than {limit} bytes", hint=_TOO_LARGE
                    )
                chunks += chunk
    except TimeoutError:
        raise RefusedRequest(
            408, f"the body did not arrive in {seconds:g} seconds", hint="send it again"
        ) from None
    except ClientDisconnect:
        raise RefusedRequest(400, "the body ends early", hint="send it again") from None
    return bytes(chunks)


def parse_payload(body: bytes) -> dict[str, Any]:
    """Parse the JSON object of a body.

    Args:
        body: The body.

    Returns:
        The object.

    Raises:
        RefusedRequest: If the body is no JSON (400), or no object (422).
    """
    value = _load(body)
    if not isinstance(value, dict):
        raise RefusedRequest(
            422,
            "the payload is not a JSON object",
            hint='send names with values: {"key": "value"}',
        )
    return value


def _load(body: bytes) -> Any:
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
        check_value(value)
    except UnicodeDecodeError as error:
        raise _invalid(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _invalid(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _invalid(_too_deep()) from None
    except ArgumentError as error:
        raise _invalid(error.message) from None
    return value


def _invalid(reason: str) -> RefusedRequest:
    return RefusedRequest(
        400, f"the body is not valid JSON: {reason}", hint="send one JSON object in UTF-8"
    )


def _too_deep() -> str:
    return f"it is nested deeper than {MAX_DEPTH} levels"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ArgumentError("an object has a key twice")
    return value


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ArgumentError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ArgumentError("a number is too large")
    return number


def _constant(text: str) -> NoReturn:
    raise ArgumentError(f"{text} is not a number of JSON")


def check_value(value: Any) -> None:
    """Check the depth and the texts of a value, without recursion.

    Args:
        value: A value of JSON.

    Raises:
        ArgumentError: If it is nested too deeply, or a text holds half of a character.
    """
    level: list[Any] = [value]
    depth = 0
    while level:
        texts = (item for item in level if isinstance(item, str))
        if not all(_has_encoding(text) for text in texts):
            raise ArgumentError("a text has half of a character (a surrogate)")
        containers = [item for item in level if isinstance(item, dict | list)]
        depth += bool(containers)
        if depth > MAX_DEPTH:
            raise ArgumentError(_too_deep())
        level = list(_parts(containers))


def _parts(containers: Iterable[Any]) -> Iterator[Any]:
    for container in containers:
        if isinstance(container, dict):
            yield from container.keys()
            yield from container.values()
        else:
            yield from container


def _has_encoding(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def partitions_of(payload: Mapping[str, Any], specs: Iterable[PartitionSpec]) -> tuple[str, ...]:
    """Read the partitions that a payload names.

    A value that is missing, or is not one segment of a path, is a PartitionError.

    Args:
        payload: The payload.
        specs: The partitions of the models that the message triggers. Those by time take no value
            from payloads.

    Returns:
        A value for each dynamic partition.
    """
    return tuple(_partition(payload, spec) for spec in specs if spec.kind == _DYNAMIC)


def _partition(payload: Mapping[str, Any], spec: PartitionSpec) -> str:
    hint = f"send {spec.key} in the payload"
    try:
        value = value_from(spec, payload)
    except PartitionError as error:
        raise PartitionError(error.message, hint=hint, data=error.data) from None
    reason = why_no_segment(value)
    if reason is not None:
        raise PartitionError(f"the partition {spec.key} of the payload {reason}", hint=hint)
    return value
