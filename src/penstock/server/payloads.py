"""Read the payload of a request: a JSON object of limited size and depth.

JSON that parsers interpret differently is rejected: duplicate keys, NaN, numbers that no type can
represent, and lone surrogates.
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
MAX_DIGITS = 38  # of DECIMAL
_DYNAMIC = "dynamic"
_TOO_LARGE_HINT = "store the data where a model can read it, and send its name"
_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"


def check_content(request: Request) -> None:
    """Check the headers that describe the body, before the body is read.

    Args:
        request: The request.

    Raises:
        RefusedRequest: If the body is not JSON, or is compressed.
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
    """Read a body. A body over the limit is not kept in memory.

    Args:
        request: The request.
        limit: The maximum number of bytes.
        seconds: The time limit in seconds.

    Returns:
        The body.

    Raises:
        RefusedRequest: If the body is too long, too slow or incomplete.
    """
    from starlette.requests import ClientDisconnect

    too_large = f"the body is longer than {limit} bytes"
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > limit:
        raise RefusedRequest(413, too_large, hint=_TOO_LARGE_HINT)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                if len(body) + len(chunk) > limit:
                    raise RefusedRequest(413, too_large, hint=_TOO_LARGE_HINT)
                body += chunk
    except TimeoutError:
        raise RefusedRequest(
            408, f"the body did not arrive in {seconds:g} seconds", hint="send it again"
        ) from None
    except ClientDisconnect:
        raise RefusedRequest(400, "the body is incomplete", hint="send it again") from None
    return bytes(body)


def parse_payload(body: bytes) -> dict[str, Any]:
    """Parse the JSON object of a body.

    Args:
        body: The body.

    Returns:
        The object.

    Raises:
        RefusedRequest: If the body is not JSON (400) or not an object (422).
    """
    value = _parse_json(body)
    if not isinstance(value, dict):
        raise RefusedRequest(
            422,
            "the payload is not a JSON object",
            hint='send names with values: {"key": "value"}',
        )
    return value


def _parse_json(body: bytes) -> Any:
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_build_object,
            parse_int=_parse_integer,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
        check_value(value)
    except UnicodeDecodeError as error:
        raise _invalid_json(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _invalid_json(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _invalid_json(_TOO_DEEP) from None
    except ArgumentError as error:
        raise _invalid_json(error.message) from None
    return value


def _invalid_json(reason: str) -> RefusedRequest:
    return RefusedRequest(
        400, f"the body is not valid JSON: {reason}", hint="send one JSON object in UTF-8"
    )


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ArgumentError("an object has a key twice")
    return value


def _parse_integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ArgumentError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ArgumentError("a number is too large")
    return number


def _refuse_constant(text: str) -> NoReturn:
    raise ArgumentError(f"{text} is not a JSON number")


def check_value(value: Any) -> None:
    """Check the depth and the strings of a JSON value, without recursion.

    Args:
        value: The value.

    Raises:
        ArgumentError: If the value is nested too deeply, or a string has a lone surrogate.
    """
    level: list[Any] = [value]
    depth = 0
    while level:
        texts = (item for item in level if isinstance(item, str))
        if not all(_has_encoding(text) for text in texts):
            raise ArgumentError("a string has a lone surrogate (half of a character)")
        containers = [item for item in level if isinstance(item, dict | list)]
        depth += bool(containers)
        if depth > MAX_DEPTH:
            raise ArgumentError(_TOO_DEEP)
        level = list(_list_items(containers))


def _list_items(containers: Iterable[Any]) -> Iterator[Any]:
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
    """Read the dynamic partitions from a payload.

    A value that is missing, or is not one segment of a path, is a PartitionError.

    Args:
        payload: The payload.
        specs: The partition formats of the models that the message triggers.

    Returns:
        A value for each dynamic partition. Partitions by time have no value in a payload.
    """
    return tuple(_read_partition(payload, spec) for spec in specs if spec.kind == _DYNAMIC)


def _read_partition(payload: Mapping[str, Any], spec: PartitionSpec) -> str:
    hint = f"send {spec.key} in the payload"
    try:
        value = value_from(spec, payload)
    except PartitionError as error:
        raise PartitionError(error.message, hint=hint, data=error.data) from None
    reason = why_no_segment(value)
    if reason is not None:
        raise PartitionError(f"the partition {spec.key} of the payload {reason}", hint=hint)
    return value
