"""Spark's SQL over Arrow columns: exactly what Spark computes, or nothing."""
