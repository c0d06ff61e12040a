"""What a transaction makes of the lake before it commits: tables, definitions, names."""
