"""What the lake needs of a Spark session: its settings, cached objects and errors."""
