"""Definitions in a lake: schemas, tables, views, macros and tags."""
