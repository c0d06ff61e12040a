"""Snapshots: what changed since, and which expire."""
