"""Puffin delete files: the positions that a deletion vector holds.

What DuckLake calls puffin is one bare blob of the kind deletion-vector-v1 of Iceberg's Puffin
specification: the length of magic and vector (4 bytes, big-endian), the magic, the vector, its
CRC-32 with the magic (big-endian). The vector is a 64-bit roaring bitmap in the portable layout.
Which snapshot deleted a position it does not tell.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from penstock.errors import DataFileCorrupt, UnsupportedFeature

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = bytes.fromhex("D1D33964")
_CONTAINER = b"PFA1"  # of a Puffin file proper: blobs, and a footer that lists them
_FRAME = 12  # bytes around the vector


def positions(content: bytes, path: str) -> pa.Int64Array:
    """The positions, ascending, that the delete file ``path`` holds.

    Raises DataFileCorrupt where it is cut short or changed, UnsupportedFeature for a Puffin file
    with a footer.
    """
    if content.startswith(_CONTAINER):
        raise UnsupportedFeature(
            f"delete file {path} is a puffin file with a footer; only bare deletion vectors are "
            "read, which is what DuckDB writes",
            hint="rewrite the table with the writer that made the file",
            data={"path": path, "feature": "puffin files with a footer"},
        )
    return _expanded(_vector(content, path), path)


def _vector(content: bytes, path: str) -> bytes:
    length = int.from_bytes(content[:4], "big")
    if len(content) < _FRAME or len(content) != length + 8 or content[4:8] != _MAGIC:
        raise _corrupt(path, "it is no deletion vector, or not a whole one")
    if zlib.crc32(content[4:-4]) != int.from_bytes(content[-4:], "big"):
        raise _corrupt(path, "its checksum does not fit")
    return content[8:-4]


def _expanded(vector: bytes, path: str) -> pa.Int64Array:
    import pyarrow as pa
    from pyroaring import BitMap64

    try:
        values = BitMap64.deserialize(vector).to_array()
    except (ValueError, IndexError) as error:
        raise _corrupt(path, "it holds no roaring bitmap") from error
    unsigned = pa.Array.from_buffers(pa.uint64(), len(values), [None, pa.py_buffer(values)])
    return unsigned.cast(pa.int64())


def _corrupt(path: str, why: str) -> DataFileCorrupt:
    return DataFileCorrupt(
        f"delete file {path} cannot be read: {why}",
        hint="restore the file, or read a snapshot that does not need it",
        data={"path": path, "why": why},
    )
