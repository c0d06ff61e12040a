"""Places where steps make their tables: what the engine asks of each, and which there are."""
