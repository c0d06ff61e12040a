"""The versions of a history: rows of a load, chained after those that the table has."""
