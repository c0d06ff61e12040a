"""The state of a lake within a transaction, before it commits: tables, definitions, names."""
