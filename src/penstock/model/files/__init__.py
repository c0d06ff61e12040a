"""The files of a project as they stand: texts with their places, YAML, Python."""
