"""The Spark session and the lakes of a project, opened once and shared."""
