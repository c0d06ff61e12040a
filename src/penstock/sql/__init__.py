"""SQL as text and as trees, below models and lakes: no Spark, no catalog."""
