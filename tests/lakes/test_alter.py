from __future__ import annotations

import pytest

from penstock.errors import ColumnNotFound, SchemaMismatch, UnsupportedFeature
from penstock.lakes import alter
from penstock.lakes.format.schema import Column, TableSchema, assign_ids, type_text

SCHEMA = assign_ids(
    TableSchema(
        (
            Column("id", "int32"),
            Column(
                "s",
                "struct",
                children=(
                    Column("a", "int16"),
                    Column(
                        "l",
                        "list",
                        children=(Column("element", "struct", children=(Column("x", "int8"),)),),
                    ),
                ),
            ),
            Column("m", "map", children=(Column("key", "varchar"), Column("value", "float32"))),
        )
    )
)


def text(schema: TableSchema) -> str:
    return ", ".join(f"{column.name} {type_text(column)}" for column in schema.columns)


def test_a_column_is_added_at_the_end_with_its_default_in_rows_that_are_there() -> None:
    added = alter.add_column(SCHEMA, (), Column("n", "int32", default="7")).columns[-1]
    assert (added.name, added.initial_default, added.default, added.id) == ("n", "7", "7", None)


def test_a_field_is_added_inside_a_list_of_structs() -> None:
    after = alter.add_column(SCHEMA, ("S", "l", "element"), Column("y", "date"))
    assert "element" not in text(after)
    assert "struct<x: int8, y: date>" in text(after)


def test_what_is_there_is_not_added_again_unless_that_is_allowed() -> None:
    with pytest.raises(SchemaMismatch, match=r"'s.A' already"):
        alter.add_column(SCHEMA, ("s",), Column("A", "int32"))
    same = alter.add_column(SCHEMA, ("s",), Column("A", "int32"), if_not_exists=True)
    assert same == SCHEMA


def test_rows_that_are_there_need_a_value_for_a_required_column() -> None:
    with pytest.raises(UnsupportedFeature, match="without a default"):
        alter.add_column(SCHEMA, (), Column("n", "int32", nullable=False))
    with pytest.raises(UnsupportedFeature, match="not a plain value"):
        alter.add_column(
            SCHEMA, (), Column("n", "int32", default="now()", default_kind="expression")
        )


@pytest.mark.parametrize("path", [("m",), ("id",), ("s", "l")])
def test_only_structs_take_fields(path: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedFeature, match="fields are fixed"):
        alter.add_column(SCHEMA, path, Column("n", "int32"))


def test_columns_and_fields_are_dropped() -> None:
    assert alter.drop_column(SCHEMA, ("m",)).names == ("id", "s")
    assert text(alter.drop_column(SCHEMA, ("s", "a"))).startswith("id int32, s struct<l: list")
    assert alter.drop_column(SCHEMA, ("s", "b"), if_exists=True) == SCHEMA


def test_the_last_field_stays_and_so_does_the_inside_of_a_map() -> None:
    with pytest.raises(SchemaMismatch, match=r"only column of struct 's.l.element'"):
        alter.drop_column(SCHEMA, ("s", "l", "element", "x"))
    with pytest.raises(UnsupportedFeature, match="fields are fixed"):
        alter.drop_column(SCHEMA, ("m", "key"))


def test_a_rename_keeps_the_id() -> None:
    renamed = alter.rename_column(SCHEMA, ("s", "l", "element", "x"), "xx")
    assert alter.column_at(renamed, ("s", "l", "element", "XX")).id == 6
    assert alter.rename_column(SCHEMA, ("id",), "ID").names[0] == "ID"
    with pytest.raises(SchemaMismatch, match="'M' already"):
        alter.rename_column(SCHEMA, ("id",), "M")


def test_types_are_promoted_at_any_depth() -> None:
    wider = alter.set_type(SCHEMA, ("s", "l", "element", "x"), Column("", "int64"))
    wider = alter.set_type(wider, ("m", "value"), Column("", "float64"))
    assert "x: int64" in text(wider)
    assert "map<varchar, float64>" in text(wider)


def test_a_struct_takes_the_fields_that_its_new_type_has() -> None:
    new = Column("", "struct", children=(Column("A", "int32"), Column("n", "date")))
    assert "s struct<a: int32, n: date>" in text(alter.set_type(SCHEMA, ("s",), new))


@pytest.mark.parametrize(
    ("path", "new", "allowed"),
    [
        (("id",), "int16", "it can become int64"),
        (("id",), "varchar", "it can become int64"),
        (("s", "a"), "uint32", "it can become int32 or int64"),
        (("m", "key"), "json", "no type is wider than varchar"),
        (("s",), "int32", "no type is wider than struct"),
    ],
)
def test_other_types_are_refused_with_those_that_are_allowed(
    path: tuple[str, ...], new: str, allowed: str
) -> None:
    with pytest.raises(UnsupportedFeature, match="cannot become") as refused:
        alter.set_type(SCHEMA, path, Column("", new))
    assert allowed in str(refused.value)


def test_defaults_and_required_columns() -> None:
    after = alter.set_default(SCHEMA, ("id",), "5")
    assert (after.columns[0].default, after.columns[0].initial_default) == ("5", None)
    assert not alter.set_nullable(SCHEMA, ("m",), False).columns[2].nullable
    with pytest.raises(UnsupportedFeature, match="inside a column"):
        alter.set_nullable(SCHEMA, ("s", "a"), False)
    with pytest.raises(UnsupportedFeature, match="no default but NULL"):
        alter.set_default(SCHEMA, ("s",), "{}")


def test_what_is_not_there_is_named_with_what_is() -> None:
    with pytest.raises(ColumnNotFound, match=r"column 's.b' does not exist") as missing:
        alter.drop_column(SCHEMA, ("s", "b"))
    assert "there are a, l" in str(missing.value)
