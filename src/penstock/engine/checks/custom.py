"""``data_test <path/of/script>``: a SELECT of the project; every row it returns is a failure.

It reads the candidate state of the step's own table, whole: ``'{partition}'`` narrows it down.
"""

from __future__ import annotations

from penstock.engine.checks.check import Check
from penstock.engine.checks.scope import Scope
from penstock.model.data_test import CustomTest


def build(test: CustomTest, scope: Scope) -> Check:
    found = scope.script(test.path)
    return Check(test.name, found.df, one_task=found.one_task)
