"""Data files and delete files: reading, registering and ending their rows."""
