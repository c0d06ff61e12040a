"""Tables of Delta Lake: their log, their rows read and written by Spark, changes as values."""
