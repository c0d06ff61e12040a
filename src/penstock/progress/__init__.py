"""Data tests: one file a kind, run on a candidate slice before it is published."""
