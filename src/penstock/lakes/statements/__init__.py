"""SQL statements, one file each. `dispatch.run` finds out which one a text is."""
