"""What other lakes alter of a table, and what does it here."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.sql.statement import Reader

_PARTITIONS = "partitions come and go with their rows: use DELETE or UPDATE with a condition"
_RIGHTS = "give rights in the catalog's database and on the files"
_COMMENT = "use COMMENT ON TABLE t IS '...'"
_OPTION = "use CALL set_option(..., table_name => ...)"

NEAREST: Mapping[str, str] = {
    "CLUSTER": "use SET SORTED BY (...)",
    "COMMENT": _COMMENT,
    "COMPACT": "use CALL ducklake_merge_adjacent_files('lake', 't')",
    "EXECUTE": "use CALL ducklake_merge_adjacent_files('lake', 't') and its like",
    "OWNER": _RIGHTS,
    "PARTITION": _PARTITIONS,
    "RECOVER": "use CALL ducklake_add_data_files('lake', 't', path) for files from elsewhere",
    "REPLACE": "use DROP COLUMNS (a, b), then ADD COLUMNS (c INT), or CREATE OR REPLACE TABLE",
    "UNSET": _OPTION,
    "WRITE": "use SET SORTED BY (...) or SET PARTITIONED BY (...)",
}
NEAREST_OF_SET: Mapping[str, str] = {
    "COMMENT": _COMMENT,
    "LOCATION": "set data_path when the lake is attached",
    "OWNER": _RIGHTS,
    "SCHEMA": "CREATE TABLE s.t AS SELECT * FROM t, then DROP t",
    "SERDE": "leave it out: files are Parquet",
    "SERDEPROPERTIES": "leave it out: files are Parquet",
    "TAGS": _COMMENT,
    "TBLPROPERTIES": f"{_OPTION}, or COMMENT ON TABLE",
}
_NOT_COLUMNS = {
    "CONSTRAINT": ("a constraint", "test the rows in a model (not_null, unique)"),
    "PRIMARY": ("a primary key", "test the rows in a model (not_null, unique)"),
    "FOREIGN": ("a foreign key", "test the rows in a model"),
    "PARTITION": ("a partition by itself", f"{_PARTITIONS}, or SET PARTITIONED BY (...)"),
}


def refuse_constraint(reader: Reader) -> None:
    """``ADD CONSTRAINT ...`` and its like; ``DROP primary`` alone is of a column."""
    word = reader.token.upper
    if word in _NOT_COLUMNS and reader.ahead(1).text != "":
        raise reader.unsupported(*_NOT_COLUMNS[word])


def refuse_place(reader: Reader) -> None:
    """``FIRST``, ``AFTER a``"""
    if reader.token.upper in {"FIRST", "AFTER"}:
        raise reader.unsupported(
            f"the place {reader.token.upper} of a column", "columns come last; SELECT orders them"
        )
