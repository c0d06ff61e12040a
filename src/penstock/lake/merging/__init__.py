"""Merges: their source, its matches in the target, and the files that come of them."""
