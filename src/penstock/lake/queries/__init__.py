"""Queries over a lake: what their names stand for, and how they are run, or answered without."""
