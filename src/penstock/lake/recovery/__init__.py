"""The way back: backups of the catalog, rolled back tables, files that are lost or come back."""
