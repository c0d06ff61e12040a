"""Sinks for the events of runs: progress, notifications, OpenLineage."""
