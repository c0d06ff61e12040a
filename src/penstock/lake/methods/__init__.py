"""Methods of tables and lakes that change definitions, options and added files."""
