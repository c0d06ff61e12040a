"""What a lake defines: schemas, tables, views, macros and tags."""
