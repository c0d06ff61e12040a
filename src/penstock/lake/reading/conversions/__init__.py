"""What values become: from file to table, from one type to another, for Spark and from it."""
