"""Backups of the catalog, restoring them, and tables rolled back to a snapshot."""
