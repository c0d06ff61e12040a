"""``MODEL (...)`` and ``AUDIT (...)``: properties in a table, one small function each."""
