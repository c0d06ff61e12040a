"""A script's query: what it reads and needs, and its text made ready for Spark."""
