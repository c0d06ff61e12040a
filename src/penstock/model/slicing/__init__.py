"""Many slices of a model in one query: whether that is certain, and the query."""
