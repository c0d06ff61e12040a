"""What writing files anew may take: memory, and from which size on Spark does it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import ArgumentError

MEMORY = 256 << 20  # bytes
SPARK_FROM = 2 << 30  # bytes: the calling process is done with less before a session has started
_LEAST_MEMORY = 1 << 20


@dataclass(frozen=True, slots=True)
class Resources:
    """In bytes. Each process that writes holds about ``memory`` at once.

    Where the files of one table that are to be written anew have ``spark_from`` bytes or more in
    all, Spark's executors write them side by side; with ``None``, and in a lake without a session,
    the calling process always does. Raises ArgumentError for less memory than files are read in.
    """

    memory: int = MEMORY
    spark_from: int | None = SPARK_FROM

    def __post_init__(self) -> None:
        if self.memory < _LEAST_MEMORY:
            raise ArgumentError(
                f"memory is {self.memory} bytes, which is too little to read files in",
                hint=f"give {_LEAST_MEMORY} or more; {MEMORY} is the default",
            )


DEFAULT = Resources()
