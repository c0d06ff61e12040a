"""Which names of a query may be hidden columns, and of which tables."""

from __future__ import annotations

import pytest

from penstock.lakes.queries.rewriters import by_table, mentions
from penstock.sql.tables import analyse

NAMED = {
    "SELECT filename FROM t": {"t": "filename"},
    "SELECT t.FileName, a FROM main.t WHERE snapshot_id > 3": {"main.t": "filename snapshot_id"},
    "SELECT x.snapshot_id, y.rowid FROM t x JOIN u y USING (a)": {"t": "snapshot_id", "u": "rowid"},
    "SELECT filename FROM t JOIN u USING (a)": {"t": "filename", "u": "filename"},
    "SELECT upper(filename) AS filename FROM t GROUP BY filename": {"t": "filename"},
    "SELECT upper(b) AS filename FROM t WHERE filename > 'a'": {"t": "filename"},
    "SELECT (SELECT max(snapshot_id) FROM t) FROM u": {"t": "snapshot_id"},
    "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.filename = b)": {"t": "filename"},
    "SELECT filename FROM t, (SELECT 7 AS x) c": {"t": "filename"},
    "WITH c AS (SELECT 7 AS x) SELECT filename FROM c, t": {"t": "filename"},
    "WITH c AS (SELECT filename AS f FROM t) SELECT f FROM c": {"t": "filename"},
    "SELECT filename FROM (t JOIN u ON t.a = u.a)": {"t": "filename", "u": "filename"},
    "SELECT a FROM t ORDER BY file_row_number": {"t": "file_row_number"},
    "SELECT rowid FROM t, (SELECT 1 AS rowid) c": {"t": "rowid"},
    "SELECT file_index FROM t": {"t": "file_index"},
}


def _named(query: str) -> dict[str, str]:
    analysis = analyse(query)
    names = by_table(mentions(analysis))
    return {
        analysis.text[table.start : table.end]: " ".join(sorted(names[table.start]))
        for table in analysis.tables
        if table.start in names
    }


@pytest.mark.parametrize("query", NAMED)
def test_tables_whose_hidden_columns_are_named(query: str) -> None:
    assert _named(query) == NAMED[query]


OTHERS = (
    "SELECT snapshot_id FROM t, (SELECT 7 AS snapshot_id) c",
    "SELECT snapshot_id FROM t, (SELECT * FROM u) c",
    "SELECT snapshot_id FROM t, table_changes('t', 1, 2) c",
    "SELECT c.snapshot_id FROM t, table_changes('t', 1, 2) c",
    "WITH c AS (SELECT 7 AS snapshot_id) SELECT snapshot_id FROM c, t",
    "WITH c (snapshot_id) AS (SELECT 7) SELECT snapshot_id FROM c, t",
    "SELECT filename FROM t LATERAL VIEW explode(names) v AS filename",
    "SELECT upper(b) AS filename, count(*) FROM t GROUP BY filename",
    "SELECT upper(b) AS filename, filename || 'x' FROM t",
    "SELECT s.filename FROM t ORDER BY filename",
    "SELECT filename FROM (SELECT * FROM t)",
    "SELECT transform(names, filename -> upper(filename)) FROM t",
    "SELECT c.filename, (SELECT filename FROM t LIMIT 1) FROM (SELECT * FROM u) c",
    "SELECT filename FROM t AS x (a, b)",
    "SELECT 'filename', s.filename FROM t",
)


@pytest.mark.parametrize("query", OTHERS)
def test_names_of_something_else(query: str) -> None:
    assert _named(query) == {}


def test_a_real_column_of_a_table_around_it_comes_first() -> None:
    analysis = analyse("SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM t WHERE snapshot_id = 2)")
    (mention,) = mentions(analysis)
    assert [table.name for table in mention.tables] == ["t"]
    assert [table.name for table in mention.rivals] == ["t", "u"]
