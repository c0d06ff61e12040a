"""The names of a lake's functions, folded."""

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
#: functions of CALL, which a statement may also read from: ``SELECT ... FROM lake.checkpoint()``
MAINTENANCE = frozenset(
    {
        *("add_data_files", "checkpoint", "cleanup_old_files", "delete_orphaned_files"),
        *("expire_snapshots", "flush_inlined_data", "merge_adjacent_files"),
        *("rewrite_data_files", "set_option"),
    }
)
