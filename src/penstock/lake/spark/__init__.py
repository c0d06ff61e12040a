"""What the lake needs from a Spark session: settings, cached objects and errors."""
