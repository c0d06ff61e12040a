"""Needs of the lake from a Spark session: settings, cached objects and errors."""
