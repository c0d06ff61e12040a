"""Steps in Python: run in a process of their own, or beside the run's Spark session."""
