"""Records that a commit carries, where its data is published before they are written.

A commit of a Delta table is one file of its log. A run that is killed right after it has published
data without their records: the next look at the table finds them in the commit, and writes them. So
an append is not made a second time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.engine.results import ColumnInfo
from penstock.engine.state.records import InputRead, KeptPart, Publication, ReadRecord, SliceRecord
from penstock.engine.state.store import StepRecords
from penstock.engine.state.tables import migrate

if TYPE_CHECKING:
    from sqlalchemy import Connection

KEY = "records"  # in the note of a commit
_NOT_CARRIED = frozenset({"checks", "requires"})  # of a test that passed only its record is lost


def noted(note: str, records: StepRecords) -> str:
    """The note of a commit with its records."""
    published = [_published(each) for each in records.published]
    carried = {"published": published, "reads": [asdict(each) for each in records.reads]}
    return json.dumps({**json.loads(note), KEY: carried}, default=_text)


def restore(connection: Connection, snapshot_id: int, note: str) -> None:
    """Write the records that a commit carries, which made a snapshot."""
    carried = json.loads(note).get(KEY)
    if not carried:
        return
    migrate(connection)
    published = tuple(map(_publication, carried["published"]))
    reads = tuple(map(_read, carried["reads"]))
    StepRecords(published, snapshot_id - 1, reads=reads).write(connection, snapshot_id)


def _text(value: object) -> str:
    assert isinstance(value, datetime), "the only values that JSON does not have"
    return value.isoformat()


def _published(what: Publication) -> dict[str, Any]:
    plain = replace(what, checks=(), requires=None)
    found = asdict(plain)
    return {name: value for name, value in found.items() if name not in _NOT_CARRIED}


def _publication(found: Mapping[str, Any]) -> Publication:
    values = {each.name: found[each.name] for each in fields(Publication) if each.name in found}
    values |= {
        "checks": (),
        "at": datetime.fromisoformat(found["at"]),
        "built": None if found["built"] is None else datetime.fromisoformat(found["built"]),
        "keys": None if found["keys"] is None else tuple(found["keys"]),
        "gone": tuple(found["gone"]),
        "columns": tuple(ColumnInfo(**each) for each in found["columns"]),
        "left": tuple(map(_slice, found["left"])),
        "parts": tuple(KeptPart(**each) for each in found["parts"]),
    }
    return Publication(**values)


def _slice(found: Mapping[str, Any]) -> SliceRecord:
    keys = None if found["keys"] is None else tuple(found["keys"])
    at = datetime.fromisoformat(found["published_at"])
    return SliceRecord(**{**found, "keys": keys, "published_at": at})


def _read(found: Mapping[str, Any]) -> ReadRecord:
    inputs = tuple(InputRead(**each) for each in found["inputs"])
    return ReadRecord(**{**found, "inputs": inputs})
