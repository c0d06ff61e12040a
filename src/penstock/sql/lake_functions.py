"""The names of the lake's table functions: the change feed and what the catalog says."""

from __future__ import annotations

#: these take a table first
FEEDS = frozenset({"table_changes", "table_insertions", "table_deletions"})
OF_LAKE = FEEDS | {
    *("current_snapshot", "last_committed_snapshot", "options", "settings", "snapshots"),
    "table_info",
}
#: these take the lake's name first, and the feeds the schema after it
PREFIX = "ducklake_"
NAMES = OF_LAKE | {f"{PREFIX}{name}" for name in (*OF_LAKE, "list_files")}
