"""Queries over a lake: resolving names, running queries, and answering some without Spark."""
