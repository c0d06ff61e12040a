"""The nearest row of an ASOF JOIN by binary search in a sorted array of each key's rows.

Spark has no function that searches an array, and evaluates lambdas row by row without generated
code: so each halving is a subquery of its own, ``p`` being how many elements are known to match.
Spark would put the expression for ``p`` into each place that uses it, and so double the query with
each halving; it does not do so with what it takes to be non-deterministic, as `spark_partition_id`.
"""

from __future__ import annotations

from collections.abc import Sequence

FIELDS = 64  # of both sides: Spark generates no code for more than 100, and copies arrays then
BYTES = 32 << 20  # of the right side as Spark estimates it: all rows of a key stand in one array
_HALVINGS = 26  # arrays of structs have at most 2**31 bytes, and an element at least 48
_NEVER = "spark_partition_id() < 0"


def search(operator: str, time: str) -> tuple[str, str]:
    """Return what stands around ``SELECT ..., a, 0 AS p``: it adds ``r``, the element nearest in
    time.

    ``a`` is sorted so that what matches comes first, and the nearest of them last.
    """
    halvings = "".join(
        f"SELECT * EXCEPT (p), "
        f"p + IF({time} {operator} get(a, p + {2**n - 1}).t, {2**n}, 0) AS p FROM ("
        for n in range(_HALVINGS)
    )
    head = f"SELECT *, IF({_NEVER}, NULL, get(a, p - 1).d) AS r FROM ({halvings}"
    return head, ")" * (_HALVINGS + 1)


def start() -> str:
    """The position that the search starts from."""
    return f"IF({_NEVER}, 1, 0) AS p"


def arrays(operator: str, keys: int) -> tuple[str, str]:
    """Return what stands around a query of the right side's ``k0 ...`` and
    ``d``: one array a key.
    """
    names = [f"k{n}" for n in range(keys)]
    ascending = "true" if operator in {">=", ">"} else "false"
    listed = f"sort_array(collect_list(struct(k{keys} AS t, d)), {ascending}) AS a"
    grouped = f" GROUP BY {', '.join(names)}" if names else ""
    return f"SELECT {', '.join([*names, listed])} FROM (", f"){grouped}"


def joined(null_safe: Sequence[bool]) -> str:
    """The condition of the join with those arrays, by whether NULLs of each key match."""
    equal = [f"l.k{n} {'<=>' if safe else '='} x.k{n}" for n, safe in enumerate(null_safe)]
    return " AND ".join(equal) or "true"
