"""SQLMesh's macros that Penstock lacks, each with what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

_CLAUSE = "write @IF(condition, ...) inside of the clause, or AND @IF(condition, a > 1, TRUE)"
_OF_ENVIRONMENTS = "there are no environments; take it out"

#: by their names in small letters
ELSEWHERE: Mapping[str, str] = {
    "star": "list the columns, or write SELECT * EXCEPT (a, b)",
    "union": "write SELECT a, b FROM t UNION ALL SELECT a, b FROM u",
    "with": "write the WITH; a common table expression that nothing reads costs nothing",
    "join": "write the JOIN, or two models",
    "where": _CLAUSE,
    "group_by": _CLAUSE,
    "having": _CLAUSE,
    "order_by": _CLAUSE,
    "limit": _CLAUSE,
    "blueprint_var": "write a file for each model, with @DEF(name, value)",
    "resolve_template": "write the path; @this_model is the table",
    "physical_location": "write the path; @this_model is the table",
    "this_env": _OF_ENVIRONMENTS,
    "schemas": _OF_ENVIRONMENTS,
    "views": _OF_ENVIRONMENTS,
    "date_spine": "write SELECT explode(sequence(DATE '2026-01-01', DATE '2026-12-31'))",
}
