"""Conversions of values: from file to table, between types, and to and from Spark."""
