"""Needs of the lake and the engine from a Spark session: settings, cached objects and errors."""
