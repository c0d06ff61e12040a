"""Which options there are, and the texts of their values."""

from __future__ import annotations

import datetime as dt

import pytest

from penstock.errors import ArgumentError, UnsupportedFeature
from penstock.lakes.format.option_values import OPTIONS, bytes_of, option_text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("target_file_size", "512MB", "512000000"),
        ("target_file_size", "1.5 GiB", "1610612736"),
        ("target_file_size", 1000, "1000"),
        ("Parquet_Compression", "ZSTD", "zstd"),
        ("parquet_version", 2, "V2"),
        ("data_inlining_row_limit", "0", "0"),
        ("hive_file_pattern", False, "false"),
        ("rewrite_delete_threshold", 0.3, "0.300000"),
        ("expire_older_than", dt.timedelta(days=3), "3 days"),
        ("delete_older_than", "1 Week", "1 Week"),
        ("delete_older_than", "", ""),
    ],
)
def test_text(key: str, value: object, text: str) -> None:
    assert option_text(key, value) == (key.lower(), text)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("target_file_size", "many", "512MB"),
        ("target_file_size", 0, "512MB"),
        ("data_inlining_row_limit", -1, "whole number"),
        ("data_inlining_row_limit", True, "whole number"),
        ("parquet_row_group_size", 0, "from 1 on"),
        ("parquet_compression", "lzo", "snappy"),
        ("parquet_version", 3, "1 or 2"),
        ("rewrite_delete_threshold", 1.5, "between 0 and 1"),
        ("require_commit_message", "perhaps", "true or false"),
        ("expire_older_than", "soon", "7 days"),
        ("target_filesize", 1, "did you mean target_file_size"),
    ],
)
def test_refused(key: str, value: object, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        option_text(key, value)


@pytest.mark.parametrize("key", ["version", "data_path", "encrypted", "compaction_schema"])
def test_fixed(key: str) -> None:
    with pytest.raises(UnsupportedFeature, match=key):
        option_text(key, "x")


def test_sizes() -> None:
    assert [bytes_of(text) for text in ("10b", "1kb", "1 KiB", "x", "1 m")] == [
        *(10, 1000, 1024),
        *(None, None),
    ]
    assert all(kind.values and kind.honoured for kind in OPTIONS.values())
