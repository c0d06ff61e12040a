"""Rows as staged data files, by Spark or by Arrow: spread, sorted, with the table's settings."""
