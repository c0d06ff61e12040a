"""Upkeep of a lake: merge, rewrite, expire, clean up. One function a file; `calls` lists them."""
