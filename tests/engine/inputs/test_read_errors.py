"""Which file an error of Spark is about."""

from __future__ import annotations

from pathlib import Path

from penstock.engine.inputs.read_errors import innermost, is_about, path_in
from penstock.errors import QueryFailed


def test_the_file_of_an_error() -> None:
    reading = "Encountered error while reading file file:///data/a%20b.csv. Bad."
    error = QueryFailed(reading, data={"condition": "FAILED_READ_FILE.NO_HINT"})
    assert path_in(error) == Path("/data/a b.csv")
    assert is_about(error, ["/data"])
    assert not is_about(error, ["/other"])


def test_errors_that_name_no_file() -> None:
    malformed = QueryFailed("Malformed", data={"condition": "MALFORMED_RECORD_IN_PARSING"})
    assert is_about(malformed, ["/data"])
    assert not is_about(QueryFailed("no", data={}), ["/data"])


def test_the_cause_of_an_error() -> None:
    error = QueryFailed("failed")
    error.__cause__ = RuntimeError(
        "x\nCaused by: java.io.EOFException: [A_B] the end SQLSTATE: 1\n"
    )
    assert innermost(error) == "the end"
