"""Name what DESCRIBE HISTORY shows of a commit: parameters and metrics, as Delta's writers do.

The names are those of delta-spark 4.4, seen in the logs of tests/delta/fixtures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

INSERTED, UPDATED, DELETED, WRITTEN = "inserted", "updated", "deleted", "written"  # rows
FILES, BYTES = "files", "bytes"  # that were added
# The counts that an operation reports. Another operation reports what it wrote.
_METRICS: Mapping[str, Mapping[str, str]] = {
    "MERGE": {
        INSERTED: "numTargetRowsInserted",
        UPDATED: "numTargetRowsUpdated",
        DELETED: "numTargetRowsDeleted",
        WRITTEN: "numOutputRows",
    },
    "DELETE": {DELETED: "numDeletedRows"},
    "UPDATE": {UPDATED: "numUpdatedRows"},
}
_WRITE_METRICS = {WRITTEN: "numOutputRows", FILES: "numFiles", BYTES: "numOutputBytes"}


def name_metrics(operation: str, counts: Mapping[str, int]) -> dict[str, str]:
    """Return the metrics of a commit.

    Args:
        operation: What the commit is, as ``WRITE``.
        counts: Numbers by INSERTED, UPDATED, DELETED, WRITTEN, FILES and BYTES.

    Returns:
        The counts that Delta's writers report for the operation, as texts.
    """
    names = _METRICS.get(operation, _WRITE_METRICS)
    return {name: str(counts[kind]) for kind, name in names.items() if kind in counts}


def name_parameters(
    operation: str, partition_by: Sequence[str], *, is_overwrite: bool
) -> dict[str, str]:
    """Return the parameters of a commit.

    Args:
        operation: What the commit is, as ``WRITE``.
        partition_by: The columns by which the table is partitioned.
        is_overwrite: Whether the commit removes files of the previous version.

    Returns:
        The mode of a write, and the partitions of a write or of a new table. Other operations have
        none. Penstock does not report ``predicate``, because it keeps conditions as Spark
        expressions and not as the user's text.
    """
    partitions = json.dumps(list(partition_by))
    if operation == "WRITE":
        return {"mode": "Overwrite" if is_overwrite else "Append", "partitionBy": partitions}
    return {"partitionBy": partitions} if "TABLE" in operation and "SET" not in operation else {}
