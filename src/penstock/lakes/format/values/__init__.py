"""Single values as text, and back: bounds, partition values, what DuckDB writes in a catalog."""
