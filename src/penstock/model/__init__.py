"""Models, without Spark."""
