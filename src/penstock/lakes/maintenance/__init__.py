"""Maintenance of a lake: merge, rewrite, expire, clean up; `calls` lists the functions."""
