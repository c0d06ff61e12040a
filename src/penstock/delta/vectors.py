"""Deletion vectors: the rows that are deleted from a file, as a roaring bitmap.

"Deletion Vector Format" of Delta's protocol. A file of vectors begins with its version, 1; each
vector is its size (4 bytes, big-endian), the magic number (little-endian) with the bitmap in the
portable layout of 64 bits, and the CRC-32 of both (big-endian). The place of a file is in the log
as a UUID in Z85, of ZeroMQ's RFC 32.
"""

from __future__ import annotations

import uuid
import zlib
from array import array
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from penstock.delta.actions import DeletionVector
from penstock.errors import DataFileCorrupt
from penstock.lakes import storage
from penstock.lakes.format.files import DeleteFile
from penstock.lakes.reading.deleted.positions import bitmap_positions
from penstock.lazy import pa
from penstock.spark.failures import file_missing, local_path

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {character: at for at, character in enumerate(_Z85)}
_GROUP, _PADDING, _NO_DIGIT = 5, "#", 1 << 32
_MAGIC = (1681511377).to_bytes(4, "little")
_VERSION = b"\x01"
_UUID_LENGTH = 20  # of a UUID in Z85
_THREADS = 16
_FRAME = 8  # bytes around a vector: its size, and a checksum


def positions(
    uri: str, vectors: Mapping[str, DeletionVector], table: str
) -> dict[str, pa.Int64Array]:
    """The deleted positions, ascending, of each file, by its path in the log.

    Raises DataFileMissing and DataFileCorrupt.
    """
    if not vectors:
        return {}
    with ThreadPoolExecutor(min(_THREADS, len(vectors)), "penstock-vectors") as pool:
        read = pool.map(lambda vector: _positions(uri, vector, table), vectors.values())
        return dict(zip(vectors, read, strict=True))


def _positions(uri: str, vector: DeletionVector, table: str) -> pa.Int64Array:
    data, path = _data(uri, vector, table)
    if len(data) != vector.size or data[:4] != _MAGIC:
        raise _corrupt(path, "it has no deletion vector where the log says")
    found = bitmap_positions(data[4:], path)
    if len(found) != vector.cardinality:
        raise _corrupt(path, f"it has {len(found)} rows where the log says {vector.cardinality}")
    return found


def _data(uri: str, vector: DeletionVector, table: str) -> tuple[bytes, str]:
    """The magic number with the bitmap, and where they are."""
    if vector.storage == "i":
        place = f"a deletion vector in the log of {uri}"
        try:
            return decoded(vector.path)[: vector.size], place
        except ValueError as error:
            raise _corrupt(place, str(error)) from None
    path = path_of(uri, vector)
    try:
        content = storage.read_bytes(path)
    except FileNotFoundError:
        raise file_missing(path, table, None) from None
    start = vector.offset or 0
    end = start + 4 + vector.size
    data, checksum = content[start + 4 : end], content[end : end + 4]
    if int.from_bytes(content[start : start + 4], "big") != vector.size:
        raise _corrupt(path, "it has no deletion vector where the log says")
    if zlib.crc32(data) != int.from_bytes(checksum, "big"):
        raise _corrupt(path, "its checksum does not fit")
    return data, path


def path_of(uri: str, vector: DeletionVector) -> str:
    """The path of the file of a vector that is not in the log."""
    if vector.storage == "p":
        return local_path(vector.path)
    prefix, encoded = vector.path[:-_UUID_LENGTH], vector.path[-_UUID_LENGTH:]
    folder = f"{uri.rstrip('/')}/{prefix}/" if prefix else f"{uri.rstrip('/')}/"
    try:
        name = uuid.UUID(bytes=decoded(encoded))
    except ValueError as error:
        raise _corrupt(f"the deletion vector {vector.path!r} of {uri}", str(error)) from None
    return f"{folder}deletion_vector_{name}.bin"


def as_delete_file(uri: str, vector: DeletionVector) -> DeleteFile:
    """Describe a vector as a lake does: by its place in a file of Delta's.

    Args:
        uri: The directory of the table.
        vector: A vector that is not in the log itself.

    Returns:
        The delete file.
    """
    place, size = path_of(uri, vector), vector.size + _FRAME
    return DeleteFile(place, vector.cardinality, size, vector.offset or 0, format="vector")


def framed(data: bytes) -> bytes:
    """Return a vector as files have it: with its size before and its checksum after.

    Args:
        data: The magic number with the bitmap.

    Returns:
        The bytes of the file.
    """
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


def _corrupt(path: str, why: str) -> DataFileCorrupt:
    return DataFileCorrupt(
        f"{path} cannot be read: {why}",
        hint="restore the file, or read a version that does not need it",
        data={"path": path, "why": why},
    )


def write(
    uri: str, deleted: Mapping[str, pa.Int64Array]
) -> tuple[dict[str, DeletionVector], str | None]:
    """Write the positions of each file, by its path in the log, to one file, and return its path.

    Raises DataPathError.
    """
    if not deleted:
        return {}, None
    name = uuid.uuid4()
    place = encoded(name.bytes)
    content = bytearray(_VERSION)
    vectors: dict[str, DeletionVector] = {}
    for path, rows in deleted.items():
        data = _MAGIC + _bitmap(rows)
        vectors[path] = DeletionVector("u", place, len(data), len(rows), len(content))
        content += framed(data)
    target = f"{uri.rstrip('/')}/deletion_vector_{name}.bin"
    with storage.output(target) as out:
        out.write(bytes(content))
    return vectors, target


def _bitmap(rows: pa.Int64Array) -> bytes:
    from pyroaring import BitMap64

    bitmap = BitMap64()
    if len(rows):
        content = memoryview(rows.buffers()[1])[8 * rows.offset : 8 * (rows.offset + len(rows))]
        bitmap.update(array("Q", bytes(content)))
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


def encoded(data: bytes) -> str:
    """Bytes, a multiple of four, in Z85."""
    text = []
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4], "big")
        text += [_Z85[number // 85**power % 85] for power in range(4, -1, -1)]
    return "".join(text)


def decoded(text: str) -> bytes:
    """The bytes of a text in Z85. Raises ValueError for other text.

    A last group of ``#`` is padded: each of them stands for a byte that its four bytes lack. No
    group of four bytes begins so, and Rust's library for Z85, which delta-rs uses, writes it.
    """
    data = bytearray()
    for start in range(0, len(text), _GROUP):
        group = text[start : start + _GROUP]
        digits = group.lstrip(_PADDING) if start + _GROUP >= len(text) else group
        number = 0
        for character in digits:
            number = number * 85 + _VALUES.get(character, _NO_DIGIT)
        size = len(digits) - 1
        if len(group) != _GROUP or size < 1 or number >= 1 << 8 * size:
            raise ValueError(f"{group!r} is not a group of Z85")
        data += number.to_bytes(size, "big")
    return bytes(data)
