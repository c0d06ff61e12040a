"""The terms on which rows of a model are published, which its definition leaves out: what decides
whether they are, and what is written about them.
"""

from __future__ import annotations

import hashlib
import json

from penstock.model.definition.model import Model


def hash_of_terms(model: Model) -> str:
    """Return a hash of the data tests, of the comments on a table and its columns, of its layout
    and of what becomes of columns that only one of the table and the SELECT has.
    """
    about, layout, change = model.about, model.layout, model.schema_change
    terms = {
        "tests": [test.to_dict() for test in model.data_tests],
        "scripts": [[script.text, dict(script.arguments)] for script in model.test_scripts],
        "comments": [about.description, about.column_descriptions],
        "layout": [layout.partitioned_by, layout.clustered_by],
        "columns": [change.added, change.missing],
    }
    text = json.dumps(terms, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
