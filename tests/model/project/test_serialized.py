"""What is packed of a script is the same when it is unpacked."""

from __future__ import annotations

import pickle
from pathlib import Path

from penstock.model.project.serialized import PackedStatement, pack, restore, unpack
from penstock.model.values.asset import TableName
from tests.model.project.test_loader import scan

SCRIPT = """\
-- pipeline
-- partitioned daily
-- materialize ducklake://main/orders
-- test unique id
-- test relationships id ducklake://main/raw.id
CREATE TEMP TABLE t AS SELECT * FROM raw;
SELECT id FROM t WHERE day = '{partition}'
"""


def test_models_are_the_same(tmp_path: Path) -> None:
    (model,) = scan(tmp_path, models__orders=SCRIPT).models
    packed = pack(model, [model.query])
    again = unpack(packed, None)
    assert again == model
    assert type(again.query) is type(model.query)
    assert isinstance(again.query.parts[0].statement, PackedStatement)
    assert b"_dataclass_setstate" not in packed


def test_a_value_is_made_of_its_fields() -> None:
    table = TableName("main", "main", "orders")
    assert restore(TableName, "main", "main", "orders") == table
    assert unpack(pack(table, ()), None) == table


def test_what_was_packed_otherwise_is_nothing() -> None:
    assert unpack(pickle.dumps(restore), None) is restore
    assert unpack(pickle.dumps(pickle.Pickler), None) is None
    assert unpack(b"nonsense", None) is None
